"""Enrolling waits for the account stack's yes, in the real sshd, su, sudo and login."""

import os
import re
from pathlib import Path

import pytest

from support.hosts import PASSWORD, SCRATCH, as_user, edit
from support.sallyport import MODULE
from test_enrolling import (  # noqa: F401: nothing_left is a fixture
    ACCOUNT, DEMAND, FIRST, LAST, OFFER, PASS, SU, SUDO, YES, enrolled, login, nothing_left, policy,
    stack)

HOSTS = ["sshd", "su", "sudo", "login"]
PAM_UNIX = "account required pam_unix.so"
EXEC = "account required pam_exec.so quiet"
# Of alice, in /etc/shadow behind her password.
FINE, EXPIRED, MUST_CHANGE = "19000:0:99999:7:::", "19000:0:99999:7::1:", "0:0:99999:7:::"


@pytest.fixture(params=HOSTS)
def host(request, daemons):
    name = request.param
    ssh = daemons["keyboard-interactive"].command("alice", "-t")
    return name, {"sshd": ssh, "su": SU, "sudo": SUDO, "login": ["login", "alice"]}[name]


@pytest.fixture(autouse=True)
def machine_as_it_was(store):
    """alice's shell only says that she is in, so that login ends too."""
    shell = SCRATCH / "only-in"
    shell.write_text('#!/bin/sh\n[ "$1" = -c ] && exec /bin/sh "$@"\necho IN-42\n')
    shell.chmod(0o755)
    paths = [Path("/etc/passwd"), Path("/etc/shadow")]
    before = [path.read_text() for path in paths]
    edit("/etc/passwd", lambda text: re.sub("(?m)^(alice:.*:)/bin/sh$", rf"\1{shell}", text))
    yield
    for path, text in zip(paths, before):
        path.write_text(text)
    Path("/etc/nologin").unlink(missing_ok=True)


def ageing(fields):
    edit("/etc/shadow", lambda text: re.sub("(?m)^(alice:[^:]*):.*", rf"\1:{fields}", text))


def refusal(kind):
    """Makes the account stack refuse alice; the line that does, beside pam_unix."""
    if kind == "expired":
        ageing(EXPIRED)
        return PAM_UNIX
    if kind == "nologin":
        Path("/etc/nologin").write_text("closed\n")
        return "account required pam_nologin.so"
    if kind == "access":
        rules = SCRATCH / "access.conf"
        rules.write_text("- : alice : ALL\n+ : ALL : ALL\n")
        return f"account required pam_access.so accessfile={rules}"
    return f"{EXEC} /bin/false"


# shows: enroll-allowed
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", ["expired", "access", "nologin", "exec"])
@pytest.mark.parametrize("level", ["required", "offer"])
def test_who_may_not_log_in_here_enrolls_nothing(host, store, level, kind, place):
    name, words = host
    policy(f"enrollment = {level}")
    line = refusal(kind)
    stack(name, account=(line, ACCOUNT) if place == "before" else (ACCOUNT, line))
    entered, asked, written = login(words, {DEMAND: ["y"], OFFER: ["y"], **YES})
    assert not entered and asked == [PASS] and not enrolled(store), written
    # The same login by one who may.
    Path("/etc/nologin").unlink(missing_ok=True)
    ageing(FINE)
    stack(name)
    entered, asked, written = login(words, {DEMAND: ["y"], OFFER: ["y"], **YES})
    question = DEMAND if level == "required" else OFFER
    assert entered and asked == [PASS, question, FIRST, LAST] and enrolled(store), written


@pytest.mark.parametrize("level", ["required", "offer"])
def test_whose_password_must_be_changed_first_enrolls(host, store, level):
    """The change comes after the account phase, asked for by the host."""
    name, words = host
    ageing(MUST_CHANGE)
    policy(f"enrollment = {level}")
    stack(name)
    _, asked, written = login(words, {DEMAND: ["y"], OFFER: ["y"], **YES})
    question = DEMAND if level == "required" else OFFER
    assert asked[:4] == [PASS, question, FIRST, LAST] and enrolled(store), written


@pytest.mark.parametrize("words", [["-v"], ["-l"]])
def test_sudo_without_a_command_asks_and_enrolls_alike(store, words):
    policy("enrollment = required")
    stack("sudo")
    command = as_user("alice", "sh", "-c", f"sudo -k {' '.join(words)} && echo IN-$((6*7))")
    before = Path("/etc/shadow").read_text()
    ageing(EXPIRED)
    entered, asked, written = login(command, {DEMAND: ["y"], **YES})
    assert not entered and DEMAND not in asked and not enrolled(store), written
    Path("/etc/shadow").write_text(before)
    entered, asked, written = login(command, {DEMAND: ["n"]})
    assert not entered and asked == [PASS, DEMAND], written
    entered, asked, written = login(command, {DEMAND: ["y"], **YES})
    assert entered and asked == [PASS, DEMAND, FIRST, LAST] and enrolled(store), written


@pytest.mark.decisive
def test_our_lines_twice_in_a_stack_of_a_real_host_ask_once(host, store):
    """Also by way of an include, and in the question itself."""
    name, words = host
    notes = SCRATCH / f"notes-{name}"
    notes.unlink(missing_ok=True)
    script = SCRATCH / "note"
    script.write_text(f'#!/bin/sh\necho "$PAM_USER $PAM_SERVICE" >> {notes}\n')
    script.chmod(0o755)
    Path("/etc/pam.d/test-again").write_text(f"{ACCOUNT}\n{EXEC} seteuid {script}\n")
    policy("enrollment = required")
    stack(name, account=(ACCOUNT, "account include test-again", ACCOUNT))
    try:
        entered, asked, written = login(words, {DEMAND: ["y"], **YES})
    finally:
        os.unlink("/etc/pam.d/test-again")
    assert entered and asked == [PASS, DEMAND, FIRST, LAST] and enrolled(store), written
    assert notes.read_text() == f"alice {name}\n" * 2


# shows: enroll-allowed
def test_a_variable_that_somebody_forges_changes_nothing(store, daemons):
    """Whatever the environment of the host or of PAM says of such a question."""
    policy("enrollment = required")
    stack("su", "auth required pam_env.so user_readenv=1", "auth required pam_unix.so nodelay")
    Path("/home/alice/.pam_environment").write_text("SALLYPORT_PROBE DEFAULT=1\n")
    words = as_user("bob", "env", "SALLYPORT_PROBE=1", "su", "alice", "-c", "echo IN-$((6*7))")
    try:
        assert login(words, {DEMAND: ["n"]})[:2] == (False, [PASS, DEMAND])
    finally:
        Path("/home/alice/.pam_environment").unlink()
