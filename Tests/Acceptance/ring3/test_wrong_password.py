"""Stacks as password-auth and system-auth of Fedora and EL9 are: a wrong password lets libpam go on
behind the substack, and the gate stops it there."""

import os
import stat

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import MODULE, REPOSITORY, our_line

INNER = "/etc/security/sallyport-gate-inner"
PASSWORD = "Password: "
CODE = "Verification code: "
IGNORED = "PAM_PERM_DENIED"  # libpam's answer of a stack in which nobody said yes


@pytest.fixture
def checker(tmp_path):
    """Makes a line's module: it asks for the password and says yes to this one."""
    def make(name, password):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\nread -r word\n[ "$word" = {password} ]\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return f"pam_exec.so quiet expose_authtok {script}"
    return make


def stacks(checker):
    """{name: lines of the substack}: of files alone, with a directory behind, with faillock's die."""
    local, remote = checker("local", "staple"), checker("remote", "horse")
    head = ["auth required pam_env.so", "auth required pam_faildelay.so delay=0"]
    end = ["auth required pam_deny.so"]
    return {
        "files": [*head, f"auth sufficient {local}", *end],
        "directory": [
            *head, "auth [default=1 ignore=ignore success=ok] pam_usertype.so isregular",
            "auth [default=1 ignore=ignore success=ok] pam_localuser.so",
            f"auth sufficient {local}", f"auth sufficient {remote} use_first_pass", *end],
        "dies": [*head, f"auth sufficient {local}", f"auth sufficient {remote} use_first_pass",
                 "auth [default=die] pam_deny.so"],
        "ignores": ["auth required pam_debug.so auth=ignore"],
        "negative": [f"auth required {local}", "auth required pam_debug.so auth=ignore"],
    }


@pytest.fixture
def host(services, store, checker, tmp_path):
    """Starts a driver over one of the stacks; `gated` as pam enable writes it."""
    gate, inner = tmp_path / "gate", tmp_path / "gate-inner"
    gate.write_text((REPOSITORY / "pam/gate").read_text().replace(INNER, str(inner)))
    inner.write_text(
        (REPOSITORY / "pam/gate-inner").read_text().replace("pam_sallyport.so", MODULE))
    opened = []

    def start(name, gated=True, *words):
        services.write("password-auth", *stacks(checker)[name])
        services.write(
            "sshd", f"auth substack {services.directory}/password-auth", *[f"auth substack {gate}"] * gated,
            our_line(store, "nodelay", *words), "account required pam_permit.so")
        opened.append(Driver(services).__enter__())
        return opened[-1]
    yield start
    for driver in opened:
        driver.__exit__(None, None, None)


def asked(login):
    # pam_debug says what it returns.
    return [text for _, text in login.prompts if text != "auth=ignore"]


# shows: wrong-password
@pytest.mark.decisive
@pytest.mark.parametrize("name", ["files", "directory", "dies"])
def test_a_wrong_password_never_reaches_the_code_prompt(name, host, store):
    enrollment = store.enroll()
    before = store.state().read_bytes()
    driver = host(name)
    for user in ("alice", "bob", "nobody-here"):
        login = driver.login("sshd", user, "wrong", rhost="192.0.2.7")
        assert (login.result, asked(login)) == (AUTH_ERR, [PASSWORD])
    assert store.state().read_bytes() == before
    right = driver.login("sshd", "alice", "staple", enrollment.code(), rhost="192.0.2.7")
    assert (right.result, asked(right)) == (SUCCESS, [PASSWORD, CODE])


@pytest.mark.parametrize("name", ["directory", "dies"])
def test_the_password_of_a_second_sufficient_module_reaches_it(name, host, store):
    enrollment = store.enroll()
    driver = host(name)
    wrong = driver.login("sshd", "alice", "horse", "000000", rhost="192.0.2.7")
    assert (wrong.result, asked(wrong)) == (AUTH_ERR, [PASSWORD, CODE])
    right = driver.login("sshd", "alice", "horse", enrollment.code(), rhost="192.0.2.7")
    assert right.result == SUCCESS


def test_without_the_gate_a_wrong_password_reaches_it(host, store):
    store.enroll()
    login = host("files", gated=False).login("sshd", "alice", "wrong", "000000")
    assert (login.result, asked(login)) == (AUTH_ERR, [PASSWORD, CODE])


@pytest.mark.parametrize("word", ["nullok", "enroll"])
def test_nobody_is_let_in_by_a_wrong_password_where_no_code_is_asked_for(word, host, store):
    store.enroll()
    driver = host("directory", True, word)
    login = driver.login("sshd", "bob", "wrong")
    assert (login.result, asked(login)) == (AUTH_ERR, [PASSWORD])


# shows: gate
@pytest.mark.parametrize("gated", [True, False])
def test_the_gate_says_nothing_where_no_line_before_it_has(gated, host, store):
    enrollment = store.enroll()
    driver = host("ignores", gated, "nullok")
    nobody = driver.login("sshd", "bob")
    assert (nobody.result, asked(nobody)) == (IGNORED, [])
    wrong = driver.login("sshd", "alice", "000000")
    assert (wrong.result, asked(wrong)) == (AUTH_ERR, [CODE])
    # As the line alone does: what it says is the only answer.
    assert driver.login("sshd", "alice", enrollment.code()).result == SUCCESS


def test_a_failure_before_the_gate_stays_one_behind_it(host, store):
    enrollment = store.enroll()
    driver = host("negative", True, "nullok")
    for user in ("alice", "bob"):
        login = driver.login("sshd", user, "wrong")
        # What pam_exec has said.
        assert (login.result, asked(login)) == ("PAM_SYSTEM_ERR", [PASSWORD])
    assert driver.login("sshd", "bob", "staple").result == SUCCESS
    right = driver.login("sshd", "alice", "staple", enrollment.code())
    assert (right.result, asked(right)) == (SUCCESS, [PASSWORD, CODE])


def test_a_second_try_on_the_same_handle_asks_for_the_code(host, store):
    enrollment = store.enroll()
    login = host("files").login(
        "sshd", "alice", "wrong", "staple", enrollment.code(), phases=("auth", "auth"))
    assert login.results == [AUTH_ERR, SUCCESS]
    assert asked(login) == [PASSWORD, PASSWORD, CODE]
