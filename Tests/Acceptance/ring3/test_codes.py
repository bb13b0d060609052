"""Codes and backup codes through the real module: what gets in, once, and what the log says."""

import os
import subprocess

import pytest

from support.pam_driver import AUTH_ERR, ECHO_OFF, ECHO_ON, SUCCESS
from support.sallyport import aligned_now, our_line, reason

PROMPT = [[ECHO_OFF, "Verification code: "]]


# shows: one-use
@pytest.mark.decisive
def test_the_right_code_gets_in_once(driver, store, sink):
    code = store.enroll().code()
    with sink.watch() as first:
        login = driver.login("login", "alice", code)
    with sink.watch() as second:
        again = driver.login("login", "alice", code)
    assert (login.result, login.prompts) == (SUCCESS, PROMPT)
    assert (again.result, again.prompts) == (AUTH_ERR, PROMPT)
    assert [line.level for line in first + second] == ["INFO", "NOTICE"]
    assert "pam_sallyport(login:auth): code accepted: user=alice" in first[0].text
    assert 'authenticator="phone"' in first[0].text
    assert reason(second) == "replayed"


# shows: host-state
def test_a_wrong_code_is_refused(driver, store, sink):
    enrollment = store.enroll()
    with sink.watch() as lines:
        login = driver.login("login", "alice", enrollment.wrong())
    assert (login.result, login.prompts) == (AUTH_ERR, PROMPT)
    assert (lines[0].level, len(lines), reason(lines)) == ("NOTICE", 1, "wrong-code")
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


@pytest.mark.parametrize("steps", [-6, -5, -1, 0, 1, 5, 6])
def test_five_adjacent_intervals_on_either_side_are_accepted(driver, store, steps):
    enrollment, now = store.enroll(), aligned_now()
    code = enrollment.code(now + 30 * steps)
    result = driver.login("login", "alice", code, at=now).result
    assert result == (SUCCESS if abs(steps) <= 5 else AUTH_ERR)


# shows: one-use
def test_an_earlier_step_is_no_good_after_a_later_one(driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    assert driver.login("login", "alice", enrollment.code(now + 60), at=now).result == SUCCESS
    for steps in range(-5, 3):
        with sink.watch() as lines:
            login = driver.login("login", "alice", enrollment.code(now + 30 * steps), at=now)
        assert (login.result, reason(lines)) == (AUTH_ERR, "replayed")
    assert driver.login("login", "alice", enrollment.code(now + 90), at=now).result == SUCCESS


# shows: digits
@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("digits", [6, 7, 8])
@pytest.mark.parametrize("period", [15, 30, 300])
def test_every_kind_of_totp_agrees_with_oathtool(driver, store, algorithm, digits, period):
    enrollment = store.enroll(algorithm=algorithm, digits=digits, period=period)
    now = aligned_now()
    code = enrollment.code(now)
    assert driver.login("login", "alice", code[1:], at=now).result == AUTH_ERR
    assert driver.login("login", "alice", code, at=now).result == SUCCESS


# shows: one-use
@pytest.mark.decisive
def test_hotp_looks_ahead_and_never_back(driver, store):
    enrollment = store.enroll(type="hotp")
    codes = enrollment.codes(40, counter=enrollment.counter)
    for index, expected in [(0, SUCCESS), (0, AUTH_ERR), (11, SUCCESS), (5, AUTH_ERR),
                            (23, AUTH_ERR), (22, SUCCESS), (22, AUTH_ERR), (23, SUCCESS)]:
        assert driver.login("login", "alice", codes[index]).result == expected, index


@pytest.mark.decisive
def test_a_backup_code_works_once_and_in_any_spelling(driver, store, sink):
    first, second, third = store.enroll().backup_codes[:3]
    with sink.watch() as lines:
        assert driver.login("login", "alice", first).result == SUCCESS
        assert driver.login("login", "alice", first).result == AUTH_ERR
    assert "backup code accepted: user=alice left=9" in lines[0].text
    assert driver.login("login", "alice", second.lower().replace("-", "")).result == SUCCESS
    assert driver.login("login", "alice", second).result == AUTH_ERR
    forgiven = third.replace("0", "O").replace("1", "l").replace("-", " ")
    assert driver.login("login", "alice", forgiven).result == SUCCESS
    assert store.status()["backupCodes"]["left"] == 7


def test_new_backup_codes_replace_the_old(driver, store):
    old = store.enroll().backup_codes
    new = store.regenerate()
    assert driver.login("login", "alice", old[0]).result == AUTH_ERR
    assert driver.login("login", "alice", new[0]).result == SUCCESS


def test_another_users_code_is_no_good(driver, store):
    alice, bob = store.enroll("alice"), store.enroll("bob")
    assert driver.login("login", "bob", alice.code()).result == AUTH_ERR
    assert driver.login("login", "bob", alice.backup_codes[0]).result == AUTH_ERR
    assert driver.login("login", "bob", bob.code()).result == SUCCESS


def test_the_other_phases_leave_the_stack_alone(driver, store, services):
    line, others = our_line(store, "nodelay").removeprefix("auth"), ("account", "session", "password")
    services.write("all", *(f"{kind} {line}" for kind in ("auth", *others)),
                   *(f"{kind} required pam_permit.so" for kind in others))
    phases = ("auth", "setcred", "acct", "open", "close", "chauthtok")
    login = driver.login("all", "alice", store.enroll().code(), phases=phases)
    assert login.results == [SUCCESS] * len(phases)
    assert login.prompts == PROMPT


def test_the_words_prompt_and_echo(driver, store, services):
    services.code("worded", store, "nodelay", "echo", "[prompt=Second door: ]")
    login = driver.login("worded", "alice", store.enroll().code())
    assert (login.result, login.prompts) == (SUCCESS, [[ECHO_ON, "Second door: "]])


def test_nullok_lets_only_the_unenrolled_pass(driver, store, services):
    services.write("optional", our_line(store, "nodelay", "nullok"), "auth required pam_permit.so")
    enrollment = store.enroll("alice")
    stranger = driver.login("optional", "daemon")
    assert (stranger.result, stranger.prompts) == (SUCCESS, [])
    assert driver.login("optional", "alice", enrollment.wrong()).result == AUTH_ERR
    assert driver.login("optional", "alice", enrollment.code()).result == SUCCESS


# shows: unknown-word
def test_an_unknown_word_is_logged_and_opens_nothing(driver, store, services, sink):
    line = our_line(store, "nodelay", "nullok", "nulok")
    services.write("typo", line, "auth required pam_permit.so")
    store.enroll("alice")
    with sink.watch() as lines:
        assert driver.login("typo", "daemon", "123456").result == AUTH_ERR
    assert any(line.level == "ERR" and "nulok" in line.text for line in lines)


def test_a_refusal_is_delayed_unless_the_line_says_nodelay(store, services, sink):
    services.code("slow", store)
    enrollment = store.enroll()
    done = pamtester(services, "slow", enrollment.wrong())
    assert done.returncode != 0
    assert 1.0 <= done.seconds <= 6


def test_pamtester_gets_in_with_the_right_code_only(store, services, sink):
    enrollment = store.enroll()
    code = enrollment.code()
    assert pamtester(services, "login", enrollment.wrong()).returncode != 0
    assert pamtester(services, "login", code).returncode == 0
    assert pamtester(services, "login", code).returncode != 0
    assert pamtester(services, "login", enrollment.backup_codes[0]).returncode == 0


def pamtester(services, service, answer):
    """An independent application; libpam finds the service by pam_wrapper."""
    start = os.times().elapsed
    done = subprocess.run(
        ["pamtester", service, "alice", "authenticate", "acct_mgmt"], input=answer + "\n",
        text=True, capture_output=True, timeout=30, env=os.environ | {
            "LD_PRELOAD": "libpam_wrapper.so", "PAM_WRAPPER": "1",
            "PAM_WRAPPER_SERVICE_DIR": str(services.directory)})
    done.seconds = os.times().elapsed - start
    return done
