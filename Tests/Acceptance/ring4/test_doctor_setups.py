"""The set-ups of Tests/Vectors/setups.txt on a real libpam and a real sshd: doctor finds in them
what stands there, and who gets in is who gets in."""

import shutil

import pytest

from clinic import SSHD_CONFIG, close, doctor, wrong
from support.hosts import PAM_D, Su, Sudo, converse
from setups import SETUPS
from test_doctor import clinic, disk, healthy  # noqa: F401: fixtures
from test_doctor_truth import Daemon

REAL = [name for name, setup in SETUPS.items() if setup.unreal is None]


@pytest.fixture
def machine_of(healthy, installed):  # noqa: F811
    """Puts a set-up's files in place; what was there is back afterwards."""
    kept = {path: path.read_bytes() for path in PAM_D.iterdir() if path.is_file()}

    def place(setup):
        # Where wrong passwords and authfail lines have locked alice.
        shutil.rmtree("/run/faillock", ignore_errors=True)
        for name, lines in setup.files.items():
            path = SSHD_CONFIG if name == "sshd_config" else PAM_D / name
            path.write_text("\n".join(lines) + "\n")
        close(*{"sudo-i", "su-l"} - {setup.service})
        return healthy
    yield place
    for path in PAM_D.iterdir():
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)


class Pamtester:
    """For login, which wants a terminal of its own."""

    def __init__(self, service):
        self.service = service

    def enter(self, user, code, **more):
        command = f"pamtester {self.service} {user} authenticate acct_mgmt && echo IN-$((6*7))"
        return converse(["/bin/sh", "-c", command], code, **more)[0]


def tries(setup):
    """Ways to try a code, and what ends them."""
    if setup.service != "sshd":
        host = {"sudo": Sudo, "su": Su}.get(setup.service, lambda: Pamtester(setup.service))()
        return [host.enter], lambda: None
    daemon = Daemon()

    def with_key(user, code):
        return daemon.runs and daemon.enter(user, code)

    def without_key(user, code):
        return daemon.runs and daemon.enter(user, code, ("-o", "PubkeyAuthentication=no"))
    return [without_key, with_key], daemon.stop


def effects(said, kind):
    """Of the findings: whom the table names beside them is for Tests/Acceptance/machines."""
    found = [one["effect"]["who"] for one in said["findings"]
             if one["effect"] is not None and one["effect"]["kind"] == kind]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("name", REAL)
def test_who_gets_in_is_who_doctor_said(machine_of, name):
    setup = SETUPS[name]
    alice = machine_of(setup).enrolled["alice"]
    said = doctor("--service", setup.service)
    ways, end = tries(setup)
    try:
        owner = any(way("alice", code) for way, code in zip(ways, alice.backup_codes))
        thief = any(way("alice", "000000") for way in ways)
        shutil.rmtree(machine_of(setup).store.of("alice"))
        unenrolled = any(way("alice", "000000") for way in ways)
    finally:
        end()
    assert (effects(said, "locksOut"), effects(said, "letsIn")) == (
        setup.locked_out, setup.let_in), wrong(said)
    assert [found for found in wrong(said) if found in setup.findings] == setup.findings
    is_open = any(who not in ("backup over ssh",) for who in setup.let_in)
    is_shut = any(who.startswith("everybody") for who in setup.locked_out)
    assert (owner, thief) == (not is_shut, is_open and not is_shut)
    is_voluntary = any("nullok" in line and "pam_sallyport" in line
                       for lines in setup.files.values() for line in lines)
    spares = is_voluntary and not setup.locked_out
    assert unenrolled == (thief or spares)
