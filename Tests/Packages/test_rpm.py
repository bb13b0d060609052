"""The RPM packages, installed by rpm into the root directory of another system. That is a Debian 12:
the files, the scripts and the database are tried, dnf and EL's own libraries are not."""

import os
import shutil
import subprocess

import pytest

from clean import MODULES, Machine
from conftest import REPOSITORY

NAMES = {"pam-sallyport", "sallyport", "sallyport-verifier", "pam-sallyport-selinux"}
MODULE = "/usr/lib64/security/pam_sallyport.so"
POLICY = "etc/security/sallyport.conf"


def built(directory, later=0, repository=REPOSITORY):
    """{name: path} of packages that are made now, of the same stage."""
    if shutil.which("rpmbuild") is None:
        pytest.skip("rpmbuild is not installed")
    epoch = int(os.environ["SOURCE_DATE_EPOCH"]) + later
    subprocess.run([repository / "pam/rpm/build", directory], check=True, capture_output=True,
                   env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)})
    return {path.name.rsplit("-", 2)[0]: path for path in directory.glob("*.rpm")}


@pytest.fixture(scope="module")
def rpms(tmp_path_factory):
    return built(tmp_path_factory.mktemp("rpm"))


def queried(path, *what):
    done = subprocess.run(["rpm", "-qp", *what, path], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


class System(Machine):
    """A machine whose packages rpm looks after."""

    def rpm(self, *words):
        """As for an image: nothing is in /proc of the root directory that the scripts run in."""
        assert not any((self.root / "proc").iterdir())
        return subprocess.run(["rpm", f"--root={self.root}", *map(str, words)], capture_output=True,
                              text=True, timeout=120, check=False)

    def have(self, *words):
        done = self.rpm(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def verify(self):
        return self.rpm("-V", "--nodeps", *NAMES).stdout.splitlines()


@pytest.fixture(scope="module")
def system(clean, rpms, tmp_path_factory):
    """The tests below go through one life of the packages in it."""
    system = System(clean, tmp_path_factory.mktemp("system") / "root", {})
    system.have("-i", "--nodeps", *rpms.values())
    return system


def test_the_packages_want_each_other_and_what_they_link(rpms):
    assert set(rpms) == NAMES
    [version] = set(queried(rpms["sallyport"], "--qf", "%{VERSION}-%{RELEASE}\n"))
    wanted = queried(rpms["pam-sallyport"], "--requires")
    assert f"sallyport = {version}" in wanted
    assert f"(pam-sallyport-selinux = {version} if selinux-policy-targeted)" in wanted
    libraries = {word.split("(")[0] for word in wanted if ".so" in word}
    assert {"libpam.so.0", "libc.so.6"} <= libraries
    # What the module loads later, by way of the command.
    assert any(word.startswith("libcrypto.so.3") for word in queried(rpms["sallyport"], "--requires"))
    assert not any("qrcodegen" in name or "swift" in name for name in libraries)
    assert not any("pam_sallyport.so" in word for word in queried(rpms["pam-sallyport"], "--provides"))
    assert any("libpq.so.5" in word for word in queried(rpms["sallyport-verifier"], "--requires"))
    assert queried(rpms["pam-sallyport-selinux"], "--qf", "%{ARCH}") == ["noarch"]


def test_two_builds_of_one_stage_are_the_same_files(rpms, tmp_path):
    for name, path in built(tmp_path / "again").items():
        assert path.read_bytes() == rpms[name].read_bytes(), name


def test_a_directory_with_anything_else_in_it_is_not_built_into(tmp_path):
    """Also `.`, which is where the caller is, not the sources."""
    (tmp_path / "mine").write_text("mine\n")
    for directory in (".", tmp_path):
        done = subprocess.run([REPOSITORY / "pam/rpm/build", directory], cwd=tmp_path, check=False,
                              capture_output=True, text=True)
        assert done.returncode == 73, done.stdout + done.stderr
        assert f"{tmp_path} " in done.stderr and "hint: " in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_temporary_directory_that_rpmbuild_would_take_apart_is_refused(rpms, tmp_path):
    for name in ("two words", "100%nil"):
        (tmp_path / name).mkdir()
        done = subprocess.run([REPOSITORY / "pam/rpm/build", tmp_path / "out"], check=False,
                              capture_output=True, text=True,
                              env=os.environ | {"TMPDIR": str(tmp_path / name)})
        assert done.returncode == 73 and "TMPDIR" in done.stderr, done.stderr
        assert not any((tmp_path / name).iterdir())


def test_rpm_finds_every_file_as_it_was_packed(system):
    assert system.verify() == []
    files = set(system.have("-ql", *NAMES).split())
    assert {MODULE, "/usr/sbin/sallyportd", "/etc/pam.d/sallyport", "/etc/security/sallyport-gate",
            "/etc/security/sallyport-gate-inner", "/usr/share/doc/sallyport-verifier/alerts.md",
            "/usr/share/doc/sallyport-verifier/examples/prometheus/sallyport.rules.yml",
            "/usr/share/selinux/packages/sallyport.cil"} <= files
    assert not any("pam-configs" in path or "init.d" in path for path in files)
    assert "system-auth" in (system.root / "etc/pam.d/sallyport").read_text()
    keys = system.root / "etc/sallyport-verifier"
    assert keys.stat().st_mode & 0o777 == 0o700
    assert keys.stat().st_uid != 0
    gate = system.root / "etc/security/sallyport-gate"
    content = gate.read_bytes()
    gate.write_bytes(b"")
    assert [line.split()[-1] for line in system.verify()] == ["/etc/security/sallyport-gate"]
    gate.write_bytes(content)


def test_a_policy_that_is_not_loaded_is_told_of(system, rpms):
    """There is no semodule in it."""
    done = system.rpm("-U", "--force", "--nodeps", rpms["pam-sallyport-selinux"])
    assert done.returncode == 0
    assert "hint: semodule -X 200 -i /usr/share/selinux/packages/sallyport.cil" in done.stderr


def test_an_installed_module_asks_for_the_code(system):
    store = system.root / "var/lib/sallyport"
    assert store.stat().st_mode & 0o777 == 0o700
    system.succeed("useradd", "-m", "alice")
    backup = system.enroll("alice")["backupCodes"]
    (system.root / "etc/pam.d/x").write_text(
        f"auth required {MODULE}\naccount required pam_permit.so\n")
    assert not system.login("x", "alice", "000000")
    assert system.login("x", "alice", backup[0])
    assert not system.login("x", "alice", backup[0])


def test_an_upgrade_keeps_store_and_configuration(system, tmp_path):
    enrollment = system.root / "var/lib/sallyport/users/alice/enrollment"
    before = enrollment.read_bytes()
    with (system.root / POLICY).open("a") as policy:
        policy.write("# mine\n")
    old = system.have("-q", "pam-sallyport")
    # /etc/pam.d/x names the module all the while.
    system.have("-U", "--nodeps", *built(tmp_path / "next", later=1).values())
    assert system.have("-q", "pam-sallyport") != old
    assert enrollment.read_bytes() == before
    assert (system.root / POLICY).read_text().endswith("# mine\n")
    assert [line.split()[-1] for line in system.verify()] == [f"/{POLICY}"]


# As it was before it had an inner file.
FORMER_GATE = """auth  [success=done default=ignore]  pam_permit.so
auth  required                       pam_sallyport.so wrong-password
"""


def with_the_former_gate(directory):
    """Sources whose packages have it."""
    directory.mkdir()
    for path in REPOSITORY.iterdir():
        if path.name not in ("pam", ".git"):
            (directory / path.name).symlink_to(path)
    shutil.copytree(REPOSITORY / "pam", directory / "pam", symlinks=True)
    (directory / "pam/gate").write_text(FORMER_GATE)
    for name in ("install", "rpm/build", "rpm/sallyport.spec"):
        path = directory / "pam" / name
        lines = [line for line in path.read_text().splitlines(keepends=True)
                 if "gate-inner" not in line or "DESTDIR/etc/security/sallyport-gate\"" in line]
        path.write_text("".join(lines))
    return directory


def test_an_upgrade_from_the_gate_without_an_inner_file_is_shut_at_each_step(system, tmp_path):
    """rpm puts one file after the other, so a login may meet the old gate with the new inner file."""
    (system.root / MODULES / "pam_sallyport.so").symlink_to(MODULE)
    system.succeed("useradd", "-m", "bob")
    codes = system.enroll("bob")["backupCodes"]
    for name, first in (("right", "permit"), ("wrong", "deny")):
        (system.root / f"etc/pam.d/{name}-first").write_text(f"auth required pam_{first}.so\n")
        (system.root / f"etc/pam.d/{name}").write_text(
            f"auth substack {name}-first\nauth substack /etc/security/sallyport-gate\n"
            "auth required pam_sallyport.so\naccount required pam_permit.so\n")

    def is_shut():
        code = codes.pop()
        assert not system.login("wrong", "bob", code)
        assert not system.login("right", "bob", "000000")
        # It was not asked for behind the wrong password: it is still good, once.
        assert system.login("right", "bob", code)
        assert not system.login("right", "bob", code)

    gate, inner = (system.root / f"etc/security/sallyport-gate{end}" for end in ("", "-inner"))
    new, before = inner.read_bytes(), system.verify()
    is_shut()
    system.have("-U", "--nodeps", "--force",
                *built(tmp_path / "former", repository=with_the_former_gate(tmp_path / "sources")).values())
    assert gate.read_text() == FORMER_GATE and not inner.exists()
    is_shut()
    inner.write_bytes(new)
    is_shut()
    inner.unlink()
    system.have("-U", "--nodeps", *built(tmp_path / "again", later=2).values())
    assert inner.read_bytes() == new and gate.read_text() != FORMER_GATE
    is_shut()
    assert system.verify() == before
    for name in ("right", "wrong", "right-first", "wrong-first"):
        (system.root / f"etc/pam.d/{name}").unlink()
    (system.root / MODULES / "pam_sallyport.so").unlink()


def refused(system, path):
    """Each of a host's packages: rpm erases the others where one refuses."""
    done = system.rpm("-e", "--nodeps", *NAMES - {"sallyport-verifier"})
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"{path}\n" in said and "sallyport pam disable" in said
    system.have("-q", *NAMES)
    assert (system.root / MODULE[1:]).exists() and (system.root / "usr/bin/sallyport").exists()


def test_removal_is_refused_while_a_stack_names_the_module(system):
    enrollment = system.root / "var/lib/sallyport/users/alice/enrollment"
    stack = system.root / "etc/pam.d/x"
    for line in ("auth required pam_sallyport.so", f"session required {MODULE}",
                 "auth substack /etc/security/sallyport-gate"):
        stack.write_text(f"#auth x\n{line}\n")
        refused(system, "/etc/pam.d/x")
    stack.write_text(f"#{line}\n")
    for path in ("usr/lib/pam.d/y", "etc/authselect/custom/ours/system-auth"):
        named = system.root / path
        named.parent.mkdir(parents=True)
        named.write_text("auth required pam_sallyport.so\n")
        refused(system, f"/{path}")
        named.unlink()
        # grep cannot read it, and says so by its status.
        named.symlink_to("nowhere")
    stack.write_text("auth required pam_sallyport.so\n")
    refused(system, "/etc/pam.d/x")
    # What packages and editors leave behind is no stack.
    for ending in ("~", ".bak", ".rpmsave", ".rpmnew"):
        (stack.parent / f"x{ending}").write_text("auth required pam_sallyport.so\n")
    stack.write_text("")
    settings = system.root / "etc/ssh/sshd_config.d/00-sallyport.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("# Written by sallyport pam enable sshd --sshd password+code\n")
    done = system.rpm("-e", "--nodeps", *NAMES - {"sallyport-verifier"})
    assert done.returncode != 0 and "00-sallyport.conf still sets" in done.stdout + done.stderr
    system.have("-q", *NAMES)
    settings.unlink()
    system.have("-e", "--nodeps", *NAMES)
    assert not (system.root / MODULE[1:]).exists()
    assert enrollment.exists()
