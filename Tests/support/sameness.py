"""The time to a refusal: the states a user can be in, measured beside each other, twice each.

The two equal runs of one state are the control: states may differ by no more than equal runs do.
"""

import random
import statistics

from support.pam_driver import AUTH_ERR
from support.sallyport import aligned_now

ROUNDS = 300
ORIGIN = "192.0.2.1"
TOLERATED = 0.05  # of the time: less than what one system call more would cost


def furnish(driver, store):
    """(an injected time, {state: (user, answer)}); the bucket of the throttled user is empty."""
    now = aligned_now()
    alice, carol = store.enroll("alice", digits=8), store.enroll("carol")
    for _ in range(20):
        driver.login("sshd", "carol", carol.wrong(now), rhost=ORIGIN, at=now)
    wrong = alice.wrong(now)
    return now, {
        "wrong code": ("alice", wrong), "unknown user": ("nobody-here", wrong[:6]),
        "not enrolled": ("daemon", wrong[:6]), "throttled": ("carol", carol.wrong(now)),
    }


def medians(driver, store, now, attempts, rounds=ROUNDS, seed=1):
    """{(state, run): median seconds}: two equal runs of each state, all in shuffled order."""
    times = {(state, run): [] for state in attempts for run in (1, 2)}
    dice = random.Random(seed)
    for turn in range(rounds):
        for state, run in dice.sample(list(times), len(times)):
            user, answer = attempts[state]
            login = driver.login("sshd", user, answer, rhost=ORIGIN, at=now)
            assert login.result == AUTH_ERR
            times[state, run].append(login.seconds)
        if turn % 9 == 8:
            store.unlock("alice")  # she stays at wrong codes, and is never throttled
    return {key: statistics.median(values) for key, values in times.items()}


def _states(found):
    return list(dict.fromkeys(state for state, _ in found))


def spread(found):
    """(greatest difference between states, between equal runs), as parts of the time."""
    mean = {state: (found[state, 1] + found[state, 2]) / 2 for state in _states(found)}
    noise = max(abs(found[state, 1] - found[state, 2]) for state in mean)
    shortest = min(mean.values())
    return (max(mean.values()) - shortest) / shortest, noise / shortest


def is_the_same(difference, noise):
    return difference <= max(TOLERATED, noise)


def told(found):
    return ", ".join(f"{state} {found[state, 1] * 1e6:.1f} and {found[state, 2] * 1e6:.1f}"
                     for state in _states(found))
