"""`sallyport pam` on Debian's own files, in the hosts that they are for."""

import os
import subprocess
from collections import defaultdict

import pytest

from support.hosts import DEBIAN, PAM_D, Su, Sudo
from support.sallyport import COMMAND, sallyport
from support.steps import broken_at
from support.whole import STRIDE

pytestmark = pytest.mark.usefixtures("base")
SERVICES = ["sshd", "sudo", "su"]
# Of programs with one field, which may be installed: common-auth is refused where they use it.
ONE_FIELD = ["dovecot", "radiusd", "vsftpd", "xrdp-sesman"]
BASE = {name: content for name, content in DEBIAN.items() if name not in ONE_FIELD}


@pytest.fixture
def base(debian):
    for name in ONE_FIELD:
        (PAM_D / name).unlink(missing_ok=True)


# sshd's own settings have tests of their own, in test_pam_sshd.py. By those of the machine nobody
# could answer; the daemons of these tests have others.
UNSET = defaultdict(tuple, sshd=("--sshd", "none", "--force"))


def directory():
    return {path.name: path.read_bytes() for path in PAM_D.iterdir()}


def pam(*arguments):
    done = sallyport("pam", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def the_host(name, daemons):
    return {"sshd": daemons["keyboard-interactive"], "sudo": Sudo(), "su": Su()}[name]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_asks_from_enable_to_disable(service, daemons, store):
    host = the_host(service, daemons)
    alice = store.enroll(allow_missing=False)
    store.enroll("bob", allow_missing=False)
    assert host.enter("alice", None), "Debian's own stack lets a password in"
    pam("enable", service, "--yes", *UNSET[service])
    assert not host.enter("alice", alice.wrong())
    assert not host.enter("alice", alice.code(), password="guessed")
    assert host.enter("alice", alice.code())
    assert not host.enter("alice", alice.code()), "good once"
    done = sallyport("unenroll", "--user", "alice", "--force")
    assert done.returncode == 0, done.stderr
    assert not host.enter("alice", "123456"), "anyone not enrolled is refused"
    pam("disable", service, "--yes")
    assert directory() == BASE
    assert host.enter("alice", None)


def test_a_code_is_asked_for_everywhere_with_common_auth(daemons, store):
    alice = store.enroll(allow_missing=False)
    said = pam("enable", "common-auth", "--yes")
    assert "The same in:" in said and "sshd" in said
    for service in SERVICES:
        assert not the_host(service, daemons).enter("alice", alice.wrong())
    assert the_host("su", daemons).enter("alice", alice.code())
    pam("disable", "common-auth", "--yes")
    assert directory() == BASE


@pytest.mark.parametrize("service", ["sshd", "sudo", "su", "login", "common-auth"])
def test_the_old_file_is_back_to_the_byte(service, store):
    store.enroll(allow_missing=False)
    os.chmod(PAM_D / service, 0o640)
    pam("enable", service, "--yes", *UNSET[service])
    assert (PAM_D / service).stat().st_mode & 0o777 == 0o640
    backup = [name for name in directory() if name.startswith(f"{service}.before-sallyport-")]
    assert len(backup) == 1 and (PAM_D / backup[0]).read_bytes() == DEBIAN[service]
    pam("disable", service, "--yes")
    assert directory() == BASE
    assert (PAM_D / service).stat().st_mode & 0o777 == 0o640


# Between any two steps of a change stands one of these calls.
CALLS = ["flock", "unlink", "write", "fchown", "fchmod", "fsync", "link", "rename"]


def killed(call, count, *arguments):
    """Runs the command; True if it was killed at its `count`th `call`."""
    done = subprocess.run([*broken_at(call, count), COMMAND, *arguments], capture_output=True, timeout=60)
    return done.returncode in (-9, 137)


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_a_kill_leaves_the_old_file_or_the_new_one(verb, store):
    store.enroll(allow_missing=False)
    on = ["pam", "enable", "sshd", "--yes", *UNSET["sshd"]]
    off = ["pam", "disable", "sshd", "--yes"]
    assert sallyport(*on).returncode == 0
    enabled = (PAM_D / "sshd").read_bytes()
    kills = 0
    for call in CALLS:
        for count in range(1, 30, STRIDE):
            is_enabled = (PAM_D / "sshd").read_bytes() == enabled
            if is_enabled == (verb == "enable"):
                assert sallyport(*(off if is_enabled else on)).returncode == 0
            if not killed(call, count, *(on if verb == "enable" else off)):
                break
            kills += 1
            assert (PAM_D / "sshd").read_bytes() in (DEBIAN["sshd"], enabled), f"{call} {count}"
    assert kills * STRIDE >= 10
    sallyport(*on)
    pam("disable", "sshd", "--yes")
    assert directory() == BASE, "nothing is left over"
