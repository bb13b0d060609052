"""A stranger learns nothing: who is enrolled, throttled or exists looks like a wrong code."""

import time

import pytest

from support import sameness
from support.pam_driver import AUTH_ERR, ECHO_OFF, SUCCESS, Barrier, Driver, Reply
from support.sallyport import reason

pytestmark = pytest.mark.decisive

PROMPT = [[ECHO_OFF, "Verification code: "]]
CASES = {
    "wrong code": "wrong-code", "unknown user": "unknown-user",
    "not enrolled": "not-enrolled", "throttled": "throttled",
}


@pytest.fixture
def cases(store, driver):
    return sameness.furnish(driver, store)


# shows: same-for-all
def test_prompts_and_return_code_are_identical(driver, cases, sink):
    now, attempts = cases
    for case, (user, answer) in attempts.items():
        with sink.watch() as lines:
            login = driver.login("sshd", user, answer, rhost="192.0.2.1", at=now)
        assert (login.result, login.prompts) == (AUTH_ERR, PROMPT), case
        assert (reason(lines), len(lines), lines[0].level) == (CASES[case], 1, "NOTICE")


AGAIN = [[ECHO_OFF, "Not accepted. A code works once: wait for the next one, or use a backup code.\n"
                    "Verification code: "]]
DUMMY = "\b\n\r\x7fINCORRECT"


def test_three_prompts_of_one_transaction_are_identical_for_everybody_and_every_reason(
        driver, cases, store):
    """As in sshd's keyboard-interactive: wrong, used, throttled, malformed, forbidden by sshd."""
    now, attempts = cases
    used = store.enroll("dave").code(now)
    assert driver.login("sshd", "dave", used, rhost="192.0.2.9", at=now).result == SUCCESS
    attempts = {**attempts, "replayed": ("dave", used)}
    others = ["letters", "12", used, DUMMY[:6], DUMMY]
    for case, (user, answer) in attempts.items():
        for other in others:
            typed = (answer, other, answer[::-1])
            login = driver.login("sshd", user, *typed, rhost="192.0.2.1", at=now, person=1)
            assert (login.result, login.prompts, login.unused) == (AUTH_ERR, PROMPT + 2 * AGAIN, 0), case
            login = driver.login("sshd", user, other, other, rhost="192.0.2.1", at=now, person=1)
            assert login.unexpected == 1, "the same answer does not end it"
            login = driver.login("sshd", user, other, "", rhost="192.0.2.1", at=now, person=1)
            assert (login.result, login.prompts) == (AUTH_ERR, PROMPT + AGAIN), case


def test_malformed_responses_are_answered_alike_too(driver, cases):
    now, attempts = cases
    for user, _ in attempts.values():
        login = driver.login("sshd", user, "letters", rhost="192.0.2.1", at=now)
        assert (login.result, login.prompts) == (AUTH_ERR, PROMPT)


def test_a_further_prompt_comes_a_fixed_time_after_the_answer(services, store):
    """What a try takes tells how many authenticators somebody has, and that somebody has none."""
    store.enroll()
    for number in range(7):
        store.add(f"number {number}")
    services.code("sshd", store)
    for user in ("alice", "daemon", "nobody-here"):
        barrier = Barrier()
        with Driver(services, barrier) as driver:
            begun = time.monotonic()
            driver.send("sshd", user, "482913", Reply.at_barrier(""), rhost="192.0.2.1", person=1)
            driver.wait_for_prompt()
            assert 1.999 < time.monotonic() - begun < 4, user
            barrier.release(1)
            assert driver.verdict().prompts == PROMPT + AGAIN
        barrier.close()


def measured(driver, store, cases, figure, where, rounds=sameness.ROUNDS):
    """(greatest difference between cases, between equal runs), as parts of the time; shows both."""
    found = sameness.medians(driver, store, *cases, rounds)
    figure(f"time to the verdict, store {where}, medians of {rounds} in µs, "
           f"two equal runs each: {sameness.told(found)}")
    return sameness.spread(found)


# shows: same-for-all
@pytest.mark.alone
@pytest.mark.in_memory
def test_the_time_to_the_verdict_is_the_same(driver, store, cases, figure):
    """On a tmpfs, where nothing hides a difference. A real one is there in all three measurements."""
    for _ in range(3):
        difference, noise = measured(driver, store, cases, figure, "in memory")
        if sameness.is_the_same(difference, noise):
            return
    pytest.fail(f"the cases differ by {difference:.1%}, equal runs by {noise:.1%}")


# shows: same-for-all, slow-flush
@pytest.mark.alone
def test_the_time_to_the_verdict_on_a_disk(driver, store, cases, figure):
    """For the record: the disk's own noise decides here, so no more than a factor is asked for."""
    difference, _ = measured(driver, store, cases, figure, "on disk", 100)
    assert difference < 1


# shows: unforeseen
def test_trouble_is_the_same_for_right_and_wrong_codes(driver, store, sink):
    enrollment = store.enroll()
    store.state().chmod(0o644)
    logins = [driver.login("login", "alice", answer) for answer in
              (enrollment.code(), enrollment.wrong(), enrollment.backup_codes[0], "letters")]
    assert len({(login.result, str(login.prompts)) for login in logins}) == 1
    assert logins[0].result != SUCCESS
