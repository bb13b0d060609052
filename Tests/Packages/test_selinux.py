"""What SELinux lets the programs that log people in do in the store: our policy on top of Debian's,
built in a directory of its own and searched, never loaded."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

STORE = Path("/var/lib/selinux/default/active")
DOMAINS = ["sshd_t", "local_login_t", "remote_login_t", "xdm_t", "cockpit_session_t", "newrole_t",
           "staff_su_t", "sysadm_su_t"]
WANTED = {
    "file": {"getattr", "open", "read", "write", "append", "lock", "create", "rename", "unlink",
             "setattr"},
    "dir": {"search", "open", "read", "lock", "add_name", "remove_name", "create", "rename"},
}


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout


class Policy:
    def __init__(self, root):
        [self.file] = (root / "etc/selinux/default/policy").glob("policy.*")
        self.contexts = root / "etc/selinux/default/contexts/files/file_contexts"
        # {type: itself and its attributes}
        self.names = {name: {name, *re.findall(r"\w+", attributes)} for name, attributes in re.findall(
            r"^   type (\w+)(?: alias (?:\{[^}]*\}|\w+))?(.*);$",
            run("seinfo", self.file, "-x", "-t"), re.MULTILINE)}
        self.rules = {}

    def sudo(self):
        """The domains that sudo runs in."""
        return sorted(name for name, names in self.names.items() if "sudodomain" in names)

    def allowed(self, domain, target, kind):
        """What is allowed whatever the booleans are."""
        if (target, kind) not in self.rules:
            said = run("sesearch", "-A", "-t", target, "-c", kind, self.file)
            self.rules[target, kind] = re.findall(
                r"^allow (\w+) \w+:\w+ \{?\s*([\w ]+?)\s*\}?;$", said, re.MULTILINE)
        return {right for source, rights in self.rules[target, kind]
                if source in self.names[domain] for right in rights.split()}

    def noes(self):
        return [f"{domain} {kind} {right}" for domain in DOMAINS + self.sudo()
                for kind, rights in WANTED.items()
                for right in sorted(rights - self.allowed(domain, "var_auth_t", kind))]


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Debian's policy, and with ours on top."""
    if not STORE.exists() or not all(map(shutil.which, ["semodule", "sesearch", "seinfo"])):
        pytest.skip("selinux-policy-default, policycoreutils or setools is not installed")
    roots = []
    for name in ("theirs", "ours"):
        root = tmp_path_factory.mktemp(name)
        for directory in ("etc/selinux", "var/lib/selinux"):
            shutil.copytree(f"/{directory}", root / directory, symlinks=True)
        roots.append(root)
    run("semodule", "-p", roots[1], "-N", "-X", "200", "-i", REPOSITORY / "pam/rpm/sallyport.cil")
    return [Policy(root) for root in roots]


def test_every_domain_that_logs_people_in_may_do_all_that_a_login_needs(policies):
    theirs, ours = policies
    assert len(ours.sudo()) >= 3
    assert ours.noes() == []
    # Without ours there are noes, and they are found.
    without = theirs.noes()
    assert "sshd_t dir create" in without and "user_sudo_t file open" in without


def test_every_domain_that_logs_people_in_may_read_the_catalogs(policies):
    ours = policies[1]
    for domain in DOMAINS + ours.sudo():
        assert {"getattr", "open", "read"} <= ours.allowed(domain, "usr_t", "file"), domain
        assert {"search"} <= ours.allowed(domain, "usr_t", "dir"), domain
    found = run("matchpathcon", "-n", "-f", ours.contexts, "/usr/share/sallyport/messages/fr").strip()
    assert found == "system_u:object_r:usr_t:s0"


def test_su_and_sudo_may_ask_the_service(policies):
    theirs, ours = policies
    for domain in ["staff_su_t", *ours.sudo()]:
        for service in ("init_t", "initrc_t"):
            assert "connectto" in ours.allowed(domain, service, "unix_stream_socket")
        assert {"getattr", "write"} <= ours.allowed(domain, "var_run_t", "sock_file")
    assert "connectto" not in theirs.allowed("user_sudo_t", "initrc_t", "unix_stream_socket")


def test_users_programs_still_may_not_read_the_store(policies):
    for domain in ("user_t", "staff_t"):
        for kind, what in (("file", "read"), ("file", "open"), ("dir", "read")):
            assert what not in policies[1].allowed(domain, "var_auth_t", kind), domain


def test_the_store_has_the_label_in_the_policy_and_not_without_it(policies):
    for policy, label in zip(policies, ("var_lib_t", "var_auth_t")):
        for path in ("/var/lib/sallyport", "/var/lib/sallyport/users/alice/state"):
            found = run("matchpathcon", "-n", "-f", policy.contexts, path).strip()
            assert found == f"system_u:object_r:{label}:s0", path
