"""sshd (two ways), sudo and su, as a person meets them."""

import pytest

from support.hosts import AGAIN, PASSWORD, PROMPTS, Sshd, converse
from support.pam_driver import Driver
from support.sallyport import reason
from support.typist import Child


@pytest.mark.decisive
def test_the_right_code_gets_in_and_is_good_once(host, store, sink):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    with sink.watch() as first:
        assert host.enter("alice", code)
    with sink.watch() as second:
        assert not host.enter("alice", code)
    assert len(first) == 1 and "code accepted: user=alice" in first[0].text
    assert reason(second) == "replayed"


def test_a_wrong_code_is_refused(host, store, sink):
    enrollment = store.enroll(allow_missing=False)
    with sink.watch() as lines:
        assert not host.enter("alice", enrollment.wrong())
    assert reason(lines) == "wrong-code"
    assert host.enter("alice", enrollment.code())


def test_a_refusal_over_ssh_is_told_and_the_next_code_lets_in(daemons, store, sink):
    enrollment = store.enroll(allow_missing=False)
    wrong = enrollment.wrong()
    answers = [wrong, wrong, enrollment.code()]
    child = Child(daemons["keyboard-interactive"].command("alice"))
    try:
        with sink.watch() as lines:
            child.expect(PROMPTS[:1])
            child.answer(PASSWORD)
            for number, answer in enumerate(answers):
                child.expect(PROMPTS[1:2])
                assert (AGAIN in child.before) == (number > 0), child.before
                child.answer(answer)
            child.expect("IN-42")
            child.wait()
    finally:
        child.close(force=True)
    assert [reason([line]) for line in lines[:2]] == ["wrong-code", "malformed"]
    assert "code accepted: user=alice" in lines[2].text


@pytest.mark.decisive
def test_a_fourth_try_needs_the_password_once_more(daemons, store):
    wrong = store.enroll(allow_missing=False).wrong()
    child = Child(daemons["keyboard-interactive"].command("alice"))
    try:
        child.expect(PROMPTS[:1])
        child.answer(PASSWORD)
        for _ in range(3):
            child.expect(PROMPTS[1:2])
            child.answer(wrong)
        child.expect("denied")
    finally:
        child.close(force=True)


@pytest.mark.decisive
def test_a_backup_code_gets_in_once(host, store, sink):
    code = store.enroll(allow_missing=False).backup_codes[0]
    assert host.enter("alice", code)
    assert not host.enter("alice", code)


def test_a_right_code_behind_a_wrong_password_is_refused(host, store, sink):
    enrollment = store.enroll(allow_missing=False)
    assert not host.enter("alice", enrollment.code(), password="guessed")


# shows: same-for-all
def test_who_is_not_enrolled_is_asked_and_refused(host, store, sink):
    store.enroll("bob", allow_missing=False)
    with sink.watch() as lines:
        assert not host.enter("alice", "123456")
    assert reason(lines) == "not-enrolled"


def test_the_log_tells_where_a_login_comes_from(daemons, store, sink):
    enrollment = store.enroll(allow_missing=False)
    with sink.watch() as lines:
        assert daemons["keyboard-interactive"].enter("alice", enrollment.code())
    assert "origin=127.0.0.1" in lines[0].text


def test_a_key_alone_opens_nothing(daemons, store, sink):
    store.enroll(allow_missing=False)
    daemon = daemons["publickey,keyboard-interactive"]
    command = daemon.command("alice", "-o", "PreferredAuthentications=publickey")
    entered, written = converse(command, "")
    assert not entered and "denied" in written


# shows: password-typed
@pytest.mark.decisive
def test_method_password_never_takes_the_password_for_a_code(machine, store, sink):
    """sshd answers every prompt with the password there: refused, and the log says why."""
    store.enroll(allow_missing=False)
    daemon = Sshd("password")
    try:
        with sink.watch() as lines:
            assert not daemon.enter("alice", "")
    finally:
        daemon.stop()
    assert reason(lines) == "malformed" and "PasswordAuthentication" in lines[0].text
    assert len(lines) == 1, "asked once, as nobody reads the prompt"


# shows: odd-response
def test_root_forbidden_by_sshd_is_refused_at_no_cost(daemons, store, sink):
    """sshd hands on a password of its own making there, whatever was typed."""
    enrollment = store.enroll("root", allow_missing=False)
    for _ in range(2):
        with sink.watch() as lines:
            assert not daemons["keyboard-interactive"].enter("root", enrollment.code())
        assert reason(lines) == "malformed" and "PermitRootLogin" in lines[0].text


# shows: owner-throttled
def test_twenty_strangers_at_the_door_leave_the_owners_console_open(daemons, store, services, sink):
    enrollment = store.enroll(allow_missing=False)
    wrong = enrollment.wrong()
    with Driver(services) as driver:
        for _ in range(30):
            driver.login("sshd", "alice", wrong, rhost="198.51.100.9")
        with sink.watch() as lines:
            assert not daemons["keyboard-interactive"].enter("alice", wrong)
        assert reason(lines) == "throttled"
        assert driver.login("login", "alice", enrollment.code()).result == "PAM_SUCCESS"
