"""A stack for both: those whose key sshd has accepted are asked for a code alone, the others for the
password and a code."""

import stat

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import our_line

PASSWORD = "Password: "
CODE = "Verification code: "
KEY = {"sets": "SSH_AUTH_INFO_0=publickey ssh-ed25519 AAAA"}
CONTROL = "[success=done perm_denied=ignore default=die]"


@pytest.fixture
def host(services, store, tmp_path):
    """Starts a driver over the stack, with further words on both of our lines."""
    checker = tmp_path / "checker"
    checker.write_text('#!/bin/sh\nread -r word\n[ "$word" = staple ]\n')
    checker.chmod(checker.stat().st_mode | stat.S_IXUSR)
    opened = []

    def start(*words, service="sshd"):
        services.write(
            service, our_line(store, "after-key", "nodelay", *words, control=CONTROL),
            f"auth requisite pam_exec.so quiet expose_authtok {checker}",
            our_line(store, "nodelay", *words), "account required pam_permit.so")
        opened.append(Driver(services).__enter__())
        return opened[-1]
    yield start
    for driver in opened:
        driver.__exit__(None, None, None)


def asked(login):
    return [text for _, text in login.prompts]


@pytest.mark.decisive
def test_a_key_takes_the_place_of_the_password_and_nothing_else_does(host, store):
    enrollment = store.enroll()
    driver = host()
    wrong = driver.login("sshd", "alice", "000000", **KEY)
    assert (wrong.result, asked(wrong)) == (AUTH_ERR, [CODE])
    right = driver.login("sshd", "alice", enrollment.code(), **KEY)
    assert (right.result, asked(right)) == (SUCCESS, [CODE])
    # Used once: by the other line as well.
    for answers, key in ((["000000"], KEY), (["wrong"], {}), (["staple", "000000"], {})):
        login = driver.login("sshd", "alice", *answers, **key)
        assert login.result not in (SUCCESS, "PAM_IGNORE")
    for said in ("", "password", "none", "PUBLICKEY x", "\npublickey"):
        login = driver.login("sshd", "alice", "wrong", sets=f"SSH_AUTH_INFO_0={said}")
        assert asked(login) == [PASSWORD]


def test_a_password_and_a_code_let_in_those_without_a_key(host, store):
    enrollment = store.enroll()
    driver = host()
    wrong = driver.login("sshd", "alice", "wrong")
    assert asked(wrong) == [PASSWORD] and wrong.result != SUCCESS
    right = driver.login("sshd", "alice", "staple", enrollment.code())
    assert (right.result, asked(right)) == (SUCCESS, [PASSWORD, CODE])


def test_those_who_need_no_code_need_the_key_or_the_password(host, store):
    store.enroll()
    driver = host("nullok")
    assert driver.login("sshd", "bob", **KEY).result == SUCCESS
    assert driver.login("sshd", "bob", "staple").result == SUCCESS
    assert driver.login("sshd", "bob", "wrong").result != SUCCESS


def test_in_another_service_a_key_means_nothing(host, store):
    store.enroll()
    login = host(service="sudo").login("sudo", "alice", "wrong", **KEY)
    assert asked(login) == [PASSWORD] and login.result != SUCCESS
