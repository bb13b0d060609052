"""A pass that must end in enrolling, typed at the real sshd, sudo and su."""

import time
from pathlib import Path

import pytest

from support.sallyport import first_code, sallyport
from test_enrolling import (  # noqa: F401: command and nothing_left are fixtures
    CODE, DEMAND, FIRST, LAST, PASS, YES, command, login, nothing_left, policy,
    stack)


@pytest.fixture
def old(store):
    policy("")
    return store.enroll("alice", allow_missing=False)


def next_code(screen, used):
    """What the new phone shows next, as oathtool has it."""
    deadline = time.monotonic() + 45
    while time.monotonic() < deadline:
        code = first_code(screen)
        if code not in used:
            return code
        time.sleep(1)
    raise AssertionError("no other code within a period")


@pytest.mark.decisive
def test_alice_enrolls_a_new_phone_with_it_and_restore_brings_the_old_one_back(
        command, store, old):
    name, words = command
    stack(name)
    before = old.code()
    assert login(words, {CODE: [before]})[:2] == (True, [PASS, CODE])
    code = store.give_pass("--enroll")
    entered, asked, written = login(words, {CODE: [code], DEMAND: ["y"], **YES})
    assert entered and asked == [PASS, CODE, DEMAND, FIRST, LAST], written
    shown = written[:written.index("Backup codes")]
    first = first_code(shown)
    # The old phone, its backup codes and the pass are refused, and the new phone gets in.
    for typed in (old.code(time.time() + 30), old.backup_codes[0], code):
        assert not login(words, {CODE: [typed]})[0]
    assert login(words, {CODE: [next_code(shown, {first})]})[:2] == (True, [PASS, CODE])
    told = sallyport("status", "alice").stdout
    assert "by a pass" in told and "restore brings back" in told, told
    done = sallyport("restore", "alice", "--yes")
    assert done.returncode == 0, done.stderr
    assert not login(words, {CODE: [first_code(shown)]})[0]
    assert not login(words, {CODE: [before]})[0]
    assert login(words, {CODE: [old.backup_codes[0]]})[:2] == (True, [PASS, CODE])
    assert login(words, {CODE: [old.code(time.time() + 60)]})[:2] == (True, [PASS, CODE])


def test_who_does_not_enroll_with_it_does_not_get_in(command, store, old):
    name, words = command
    stack(name)
    code = store.give_pass("--enroll")
    for answers in ({DEMAND: ["n"]}, {}, {DEMAND: ["y"]}):
        assert not login(words, {CODE: [code], **answers})[0]
    # Three times it was claimed.
    entered, asked, _ = login(words, {CODE: [code], DEMAND: ["y"], **YES})
    assert not entered and DEMAND not in asked
    assert login(words, {CODE: [old.code()]})[0]


def test_it_is_refused_where_no_line_of_ours_is_in_the_account_phase(command, store, old, sink):
    name, words = command
    stack(name, account=())
    code = store.give_pass("--enroll")
    with sink.watch() as lines:
        assert not login(words, {CODE: [code], DEMAND: ["y"], **YES})[0]
    assert any("reason=must-enroll" in line.text for line in lines), lines
    assert store.status()["passes"][0]["usesLeft"] == 3
    assert login(words, {CODE: [old.code()]})[0]


def test_a_line_without_the_word_enroll_refuses_it(command, store, old):
    name, words = command
    stack(name)
    path = Path("/etc/pam.d", name)
    path.write_text(path.read_text().replace(" enroll ", " "))
    code = store.give_pass("--enroll")
    assert not login(words, {CODE: [code], DEMAND: ["y"], **YES})[0]
    assert store.status()["passes"][0]["usesLeft"] == 3
