"""A stranger learns nothing: who is enrolled, throttled or exists looks like a wrong code."""

import random
import statistics

import pytest

from pam_driver import AUTH_ERR, ECHO_OFF, SUCCESS
from sallyport import aligned_now, reason

PROMPT = [[ECHO_OFF, "Verification code: "]]
CASES = {
    "wrong code": "wrong-code", "unknown user": "unknown-user",
    "not enrolled": "not-enrolled", "throttled": "throttled",
}


@pytest.fixture
def cases(store, driver):
    """{case: (user, answer)} at one injected time; the throttled user's bucket is empty."""
    now = aligned_now()
    alice, carol = store.enroll("alice", digits=8), store.enroll("carol")
    for _ in range(20):
        driver.login("sshd", "carol", carol.wrong(now), rhost="192.0.2.1", at=now)
    wrong = alice.wrong(now)
    return now, {
        "wrong code": ("alice", wrong), "unknown user": ("nobody-here", wrong[:6]),
        "not enrolled": ("daemon", wrong[:6]), "throttled": ("carol", carol.wrong(now)),
    }


def test_prompts_and_return_code_are_identical(driver, cases, sink):
    now, attempts = cases
    for case, (user, answer) in attempts.items():
        with sink.watch() as lines:
            login = driver.login("sshd", user, answer, rhost="192.0.2.1", at=now)
        assert (login.result, login.prompts) == (AUTH_ERR, PROMPT), case
        assert (reason(lines), len(lines), lines[0].level) == (CASES[case], 1, "NOTICE")


def test_malformed_responses_are_answered_alike_too(driver, cases):
    now, attempts = cases
    for user, _ in attempts.values():
        login = driver.login("sshd", user, "letters", rhost="192.0.2.1", at=now)
        assert (login.result, login.prompts) == (AUTH_ERR, PROMPT)


def medians(driver, store, now, attempts):
    """{(case, run): median seconds of 300}: two equal runs of each case, all in shuffled order."""
    times = {(case, run): [] for case in attempts for run in (1, 2)}
    dice = random.Random(1)
    for turn in range(300):
        for case, run in dice.sample(list(times), len(times)):
            user, answer = attempts[case]
            login = driver.login("sshd", user, answer, rhost="192.0.2.1", at=now)
            assert login.result == AUTH_ERR
            times[case, run].append(login.seconds)
        if turn % 9 == 8:
            store.unlock("alice")  # she stays at wrong codes, and is never throttled
    return {key: statistics.median(values) for key, values in times.items()}


def spread(found, figure, where):
    """(greatest difference between cases, between equal runs), as parts of the time; shows both."""
    mean = {case: (found[case, 1] + found[case, 2]) / 2 for case in CASES}
    noise = max(abs(found[case, 1] - found[case, 2]) for case in CASES)
    figure(f"time to the verdict, store {where}, medians of 300 in µs, two equal runs each: " + ", ".join(
        f"{case} {found[case, 1] * 1e6:.1f} and {found[case, 2] * 1e6:.1f}" for case in CASES))
    shortest = min(mean.values())
    return (max(mean.values()) - shortest) / shortest, noise / shortest


@pytest.mark.in_memory
def test_the_time_to_the_verdict_is_the_same(driver, store, cases, figure):
    """On a tmpfs, where nothing hides a difference. A real one is there in all three measurements."""
    for _ in range(3):
        difference, noise = spread(medians(driver, store, *cases), figure, "in memory")
        if difference <= max(0.05, noise):
            return
    pytest.fail(f"the cases differ by {difference:.1%}, equal runs by {noise:.1%}")


def test_the_time_to_the_verdict_on_a_disk(driver, store, cases, figure):
    """For the record: the disk's own noise decides here, so no more than a factor is asked for."""
    difference, _ = spread(medians(driver, store, *cases), figure, "on disk")
    assert difference < 1


def test_trouble_is_the_same_for_right_and_wrong_codes(driver, store, sink):
    enrollment = store.enroll()
    store.state().chmod(0o644)
    logins = [driver.login("login", "alice", answer) for answer in
              (enrollment.code(), enrollment.wrong(), enrollment.backup_codes[0], "letters")]
    assert len({(login.result, str(login.prompts)) for login in logins}) == 1
    assert logins[0].result != SUCCESS
