"""Many processes at once: a code is good once, and nobody waits out the lock."""

import pytest

from support import whole
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Crowd
from support.sallyport import aligned_now

pytestmark = pytest.mark.decisive

PROCESSES = 32
# 200 rounds before a release; most in memory, where a round is short, some where the lock is held for a disk's flush.
rounds = pytest.mark.parametrize("where, count", [
    pytest.param("in memory", whole.rounds(180, 60), marks=pytest.mark.in_memory), ("on disk", 20)])


def tally(logins):
    counts = {}
    for login in logins:
        counts[login.result] = counts.get(login.result, 0) + 1
    return counts


# shows: one-use
@rounds
def test_one_of_32_processes_gets_in_with_the_same_code(
        store, services, sink, figure, where, count):
    enrollment, now = store.enroll(), aligned_now()
    codes = enrollment.codes(count, now)
    slowest = 0
    with Crowd(services, PROCESSES) as crowd:
        for turn, code in enumerate(codes):
            attempt = (("login", "alice", code), {"at": now + 30 * turn})
            logins = crowd.race([attempt] * PROCESSES)
            assert tally(logins) == {SUCCESS: 1, AUTH_ERR: PROCESSES - 1}, f"round {turn}"
            slowest = max([slowest] + [login.seconds for login in logins])
    figure(f"same code, {PROCESSES} processes, {count} rounds {where}: one success in each, "
           f"slowest {slowest:.3f} s")


# shows: one-use
def test_one_of_32_processes_gets_in_with_the_same_hotp_code(store, services, sink):
    enrollment = store.enroll(type="hotp")
    codes = enrollment.codes(10, counter=enrollment.counter)
    with Crowd(services, PROCESSES) as crowd:
        for code in codes:
            logins = crowd.race([(("login", "alice", code), {})] * PROCESSES)
            assert tally(logins) == {SUCCESS: 1, AUTH_ERR: PROCESSES - 1}
            store.unlock()  # a HOTP code that was used is a wrong one, and is counted


# shows: one-use
@rounds
def test_one_of_32_processes_gets_in_with_the_same_backup_code(
        store, services, sink, figure, where, count):
    codes, slowest = store.enroll().backup_codes, 0
    with Crowd(services, PROCESSES) as crowd:
        for turn in range(count):
            if not codes:
                codes = store.regenerate()
            logins = crowd.race([(("login", "alice", codes.pop()), {})] * PROCESSES)
            assert tally(logins) == {SUCCESS: 1, AUTH_ERR: PROCESSES - 1}, f"round {turn}"
            slowest = max([slowest] + [login.seconds for login in logins])
    figure(f"same backup code, {PROCESSES} processes, {count} rounds {where}: one success in each, "
           f"slowest {slowest:.3f} s")


# shows: guesses
def test_different_codes_of_one_user_at_once_spend_one_step_each(store, services, sink):
    """Every backup code is good, whatever else is verified in the same instant."""
    codes = store.enroll().backup_codes
    with Crowd(services, len(codes)) as crowd:
        logins = crowd.race([(("login", "alice", code), {}) for code in codes])
    assert tally(logins) == {SUCCESS: len(codes)}
    assert store.status()["backupCodes"]["left"] == 0


# shows: owner-waits
@pytest.mark.parametrize("turn", range(3))
def test_the_owner_gets_in_while_127_strangers_guess(store, services, sink, figure, turn):
    enrollment, now = store.enroll(), aligned_now()
    wrong = enrollment.wrong(now)
    code = {"known": enrollment.code(now), "backup": enrollment.backup_codes[0]}
    strangers = [(("sshd", "alice", wrong if i % 2 else f"ABCD-EFGH-JKMN-{i:04}"),
                  {"rhost": f"198.51.100.{i}", "at": now}) for i in range(126)]
    owner = [(("login", "alice", code["known"]), {"at": now}),
             (("sshd", "alice", code["backup"]), {"rhost": "198.51.100.200", "at": now})]
    with Crowd(services, 128) as crowd:
        logins = crowd.race(strangers[:63] + owner + strangers[63:])
    assert [login.result for login in logins[63:65]] == [SUCCESS, SUCCESS]
    assert tally(logins) == {SUCCESS: 2, AUTH_ERR: 126}
    assert TROUBLE not in tally(logins)
    figure(f"128 at once: slowest verdict {max(login.seconds for login in logins):.3f} s")


@rounds
def test_one_of_32_processes_gets_in_with_the_same_pass(store, services, sink, where, count):
    store.enroll()
    with Crowd(services, PROCESSES) as crowd:
        for turn in range(count):
            code = store.give_pass()
            logins = crowd.race([(("login", "alice", code), {})] * PROCESSES)
            assert tally(logins) == {SUCCESS: 1, AUTH_ERR: PROCESSES - 1}, f"round {turn}"
        code = store.give_pass("--uses", "5")
        logins = crowd.race([(("login", "alice", code), {})] * PROCESSES)
        assert tally(logins) == {SUCCESS: 5, AUTH_ERR: PROCESSES - 5}


# shows: frozen-login
def test_eight_users_at_once_all_get_in(store, services, sink):
    now = aligned_now()
    users = [store.enroll(f"user{i}") for i in range(8)]
    with Crowd(services, 8) as crowd:
        for turn in range(50):
            at = now + 30 * turn
            attempts = [(("login", user.user, user.code(at)), {"at": at}) for user in users]
            logins = crowd.race(attempts)
            assert tally(logins) == {SUCCESS: 8}


def test_enrolling_again_during_logins_never_lets_a_login_see_half(store, services, sink):
    """`enroll --force` exchanges the directory at once: each login is verified by the old or the new."""
    now = aligned_now()
    old = store.enroll()
    with Crowd(services, 4) as crowd:
        for turn in range(20):
            at = now + 30 * turn
            for driver in crowd.drivers:
                driver.send("login", "alice", old.code(at), at=at)
            new = store.enroll()
            results = [driver.verdict().result for driver in crowd.drivers]
            assert set(results) <= {SUCCESS, AUTH_ERR} and results.count(SUCCESS) <= 1
            old = new
