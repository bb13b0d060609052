"""Machines on which doctor was wrong: what really happens there, and that doctor says so now."""

import pytest

from comparing import faults, told
from dimensions import plain
from forecast import doctor, forecast
from ground import Daemon
from ways import ASKED, OPEN, REFUSED, Ways

NOTHING = {"sudo": "no rule"}
ROBOT = {"password": "none", "enrolled": "no"}
KEYS, PROMPTS = "sshd publickey,keyboard-interactive", "sshd keyboard-interactive"
KNOWN = {  # values of the machine, of people; what really happens
    "NOPASSWD without a phone": (
        {}, {"ansible": ROBOT | {"sudo": "NOPASSWD"}},
        {("ansible", "sudo"): OPEN, ("ansible", "sudo -i"): OPEN}),
    "a program with a key and no password": (
        {}, {"git": ROBOT | {"uid": "a program's"}},
        {("git", KEYS): REFUSED, ("alice", KEYS): ASKED}),
    "the same in its own block": (
        {"match": "robots by key"}, {"git": ROBOT | {"uid": "a program's"}},
        {("git", "sshd publickey"): OPEN, ("alice", KEYS): ASKED}),
    "a rule for one person": (
        {"sshd": "prompts", "policy": "nothing of alice"}, {},
        {("alice", PROMPTS): OPEN, ("bob", PROMPTS): ASKED}),
    "a rule for one person, and a line that asks all the same": (
        {"stack of login": "a misspelt word", "policy": "nothing of alice"}, {},
        {("alice", "login"): ASKED, ("alice", "su"): OPEN}),
    "a misspelt module": (
        {"stack of sudo": "a misspelt module"}, {"alice": {"sudo": "all"}},
        {("alice", "sudo"): REFUSED}),
    "polkit beside sudo, sshd, su and login": (
        {"stack of polkit-1": "not ours"}, {},
        {("alice", "sudo"): ASKED, ("alice", "pkexec"): OPEN, ("root", "su"): ASKED}),
    "an administrator without a password": (
        {"stack of polkit-1": "counts for nothing"},
        {"bob": {"password": "empty"}} | {name: NOTHING for name in ("alice", "git", "ansible")},
        {("alice", "pkexec"): OPEN}),
    "sudo -i by the password of somebody whose shell ends at once": (
        {"sudoers": "targetpw", "twins": "left out"},
        {"bob": {"password": "none"}, "ansible": {"password": "none"},
         "git": {"shell": "/usr/sbin/nologin"}},
        {("alice", "sudo -u web"): ASKED, ("alice", "sudo -i -u web"): REFUSED}),
    "keys and passwords mixed, each as they like": (
        {"sshd": "key and prompts, or prompts"},
        {"bob": {"key": "no key"}, "git": {"password": "none"}},
        {("alice", KEYS): ASKED, ("bob", PROMPTS): ASKED, ("git", PROMPTS): REFUSED}),
}


@pytest.fixture
def tried(ground, polkit):
    """(machine, the real cells of these keys, the forecast) of a machine that is built."""
    daemons = []

    def of(machine, keys):
        enrollments = ground.become(machine)
        said = doctor()
        daemons.append(Daemon(ground))
        ways, cells = Ways(ground, machine, enrollments, daemons[0], polkit), []
        for name, way in keys:
            ground.renew_store()
            cells.append(ways.cell(machine.person(name), way))
        return cells, forecast(said, keys)
    yield of
    for daemon in daemons:
        daemon.stop()


@pytest.mark.parametrize("name", KNOWN)
def test_doctor_says_of_a_known_machine_what_its_logins_show(tried, polkit, name):
    values, people, expected = KNOWN[name]
    keys = [key for key in expected if key[1] != "pkexec" or polkit]
    machine = plain().put(values, people)
    cells, said = tried(machine, keys)
    real = {(cell.account, cell.way): cell.result for cell in cells}
    assert real == {key: expected[key] for key in keys}, "\n".join(
        f"{cell.account} by {cell.way}\n{cell.evidence()}" for cell in cells)
    found = [fault for fault in faults(cells, said) if (fault.account, fault.way) in real]
    assert not found, told(machine, found)
