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


def test_the_time_to_the_verdict_is_the_same(driver, store, cases, figure):
    """Median of 300 each, in shuffled order; the noise is what two runs of one case differ by."""
    now, attempts = cases
    runs = {case: (case, attempt) for case, attempt in attempts.items()}
    runs |= {"wrong code again": ("wrong code", attempts["wrong code"]),
             "unknown user again": ("unknown user", attempts["unknown user"])}
    times = {run: [] for run in runs}
    dice = random.Random(1)
    for turn in range(300):
        for run in dice.sample(list(runs), len(runs)):
            user, answer = runs[run][1]
            login = driver.login("sshd", user, answer, rhost="192.0.2.1", at=now)
            assert login.result == AUTH_ERR
            times[run].append(login.seconds)
        if turn % 15 == 14:
            store.unlock("alice")  # stays a wrong code, never a throttled one
    medians = {run: statistics.median(values) for run, values in times.items()}
    for run, median in medians.items():
        figure(f"time to the verdict, {run}: median {median * 1e6:.0f} µs of {len(times[run])}")
    noise = max(abs(medians[case] - medians[f"{case} again"])
                for case in ("wrong code", "unknown user"))
    reference = medians["wrong code"]
    for case in CASES:
        assert abs(medians[case] - reference) <= max(0.05 * reference, noise), (case, medians)


def test_trouble_is_the_same_for_right_and_wrong_codes(driver, store, sink):
    enrollment = store.enroll()
    store.state().chmod(0o644)
    logins = [driver.login("login", "alice", answer) for answer in
              (enrollment.code(), enrollment.wrong(), enrollment.backup_codes[0], "letters")]
    assert len({(login.result, str(login.prompts)) for login in logins}) == 1
    assert logins[0].result != SUCCESS
