"""The guess budget, with a clock of the test's own."""

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS
from support.sallyport import aligned_now, reason

pytestmark = pytest.mark.in_memory
HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
STRANGER = {"rhost": "198.51.100.9"}


@pytest.fixture
def guess(driver, sink):
    """guess(enrollment, at, …): the reason for which a wrong code was refused."""
    wrong_codes = {}

    def guess(enrollment, at, service="sshd", **more):
        if at not in wrong_codes:
            wrong_codes[at] = enrollment.wrong(at)
        with sink.watch() as lines:
            login = driver.login(service, enrollment.user, wrong_codes[at], at=at, **more)
        assert login.result == AUTH_ERR
        return reason(lines)
    return guess


def empty(guess, enrollment, at, **more):
    """Guesses until throttled; how many were verified."""
    count = 0
    while guess(enrollment, at, **more) == "wrong-code":
        count += 1
        assert count < 100
    return count


# shows: guesses
def test_twenty_wrong_codes_at_once_then_a_wait(guess, driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    assert empty(guess, enrollment, now, **STRANGER) == 20
    with sink.watch() as lines:
        login = driver.login("sshd", "alice", enrollment.code(now), at=now, **STRANGER)
    assert (login.result, reason(lines)) == (AUTH_ERR, "throttled")


@pytest.mark.first
def test_the_bucket_refills_at_one_wrong_code_every_twenty_hours(guess, store, figure):
    enrollment, now = store.enroll(), aligned_now()
    empty(guess, enrollment, now, **STRANGER)
    verified = [hour for hour in range(1, 30 * 24)
              if guess(enrollment, now + hour * HOUR, **STRANGER) == "wrong-code"]
    gaps = [later - earlier for earlier, later in zip(verified, verified[1:])]
    assert 19 <= sum(gaps) / len(gaps) <= 21.5
    figure(f"throttle, six digits: after the first 20 one wrong code every "
           f"{sum(gaps) / len(gaps):.1f} h")


# shows: guesses
@pytest.mark.first
def test_a_year_of_guessing_from_everywhere_has_less_than_one_per_cent_of_luck(
        guess, store, figure):
    """Both buckets, asked far more often than they refill; the luck is in what was verified."""
    enrollment, now = store.enroll(), aligned_now()
    verified = 0
    for step in range(0, YEAR, 9 * HOUR):
        for more in ({"service": "login"}, STRANGER):
            for _ in range(25 if step == 0 else 1):
                verified += guess(enrollment, now + step, **more) == "wrong-code"
    luck = verified * 11 / 10 ** 6
    assert 0.008 < luck <= 0.01
    figure(f"a year of guessing, six digits: {verified} codes verified, {luck:.3%} of luck")


@pytest.mark.decisive
def test_eight_digits_are_practically_never_throttled(guess, store):
    enrollment, now = store.enroll(digits=8), aligned_now()
    assert empty(guess, enrollment, now, **STRANGER) == 20
    assert guess(enrollment, now + HOUR, **STRANGER) == "wrong-code"


# shows: owner-throttled
def test_a_backup_code_passes_a_throttle(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    empty(guess, enrollment, now, **STRANGER)
    login = driver.login("sshd", "alice", enrollment.backup_codes[0], at=now, **STRANGER)
    assert login.result == SUCCESS


def test_a_right_code_is_worth_trying_again_after_the_wait(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    empty(guess, enrollment, now, **STRANGER)
    for at, expected in ((now + HOUR, AUTH_ERR), (now + 21 * HOUR, SUCCESS)):
        login = driver.login("sshd", "alice", enrollment.code(at), at=at, **STRANGER)
        assert login.result == expected


# shows: owner-throttled, wrong-password
def test_guesses_from_elsewhere_leave_the_known_bucket_alone(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    home = {"rhost": "192.0.2.7"}
    assert driver.login("sshd", "alice", enrollment.code(now), at=now, **home).result == SUCCESS
    empty(guess, enrollment, now, **STRANGER)
    later = now + 60
    code = enrollment.code(later)
    assert driver.login("sshd", "alice", code, at=later, **STRANGER).result == AUTH_ERR
    assert driver.login("sshd", "alice", code, at=later, **home).result == SUCCESS
    code = enrollment.code(later + 60)
    assert driver.login("login", "alice", code, at=later + 60).result == SUCCESS


# shows: place-by-name
def test_an_origin_is_known_only_after_it_has_logged_in(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    empty(guess, enrollment, now, **STRANGER)
    for rhost in ("192.0.2.7", "2001:db8::1", "a.name.example", "::ffff:198.51.100.9", None):
        login = driver.login("sshd", "alice", enrollment.code(now), at=now, rhost=rhost)
        assert login.result == AUTH_ERR, rhost


# shows: place-by-name
def test_one_ipv6_network_and_a_mapped_address_are_one_origin(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    login = driver.login("sshd", "alice", enrollment.code(now), at=now, rhost="2001:db8:1:2::3")
    assert login.result == SUCCESS
    now += 60
    login = driver.login("sshd", "alice", enrollment.code(now), at=now, rhost="192.0.2.7")
    assert login.result == SUCCESS
    empty(guess, enrollment, now, **STRANGER)
    for rhost in ("2001:db8:1:2:ffff::9%eth0", "::ffff:192.0.2.7"):
        now += 60
        login = driver.login("sshd", "alice", enrollment.code(now), at=now, rhost=rhost)
        assert login.result == SUCCESS, rhost


# shows: slips
def test_a_success_refunds_nothing(guess, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    for _ in range(15):
        assert guess(enrollment, now, service="login") == "wrong-code"
    assert driver.login("login", "alice", enrollment.code(now), at=now).result == SUCCESS
    assert empty(guess, enrollment, now, service="login") == 5


def test_unlock_refills_both_buckets(guess, store):
    enrollment, now = store.enroll(), aligned_now(0)
    for more in ({"service": "login"}, STRANGER):
        assert empty(guess, enrollment, now, **more) == 20
    store.unlock()
    for more in ({"service": "login"}, STRANGER):
        assert empty(guess, enrollment, now, **more) == 20


# shows: clock-jump
def test_a_clock_set_forward_and_back_gives_no_credit(guess, store):
    enrollment, now = store.enroll(), aligned_now()
    assert empty(guess, enrollment, now, **STRANGER) == 20
    ahead = now + 400 * DAY
    assert empty(guess, enrollment, ahead, **STRANGER) == 20  # full again, and no more than full
    assert empty(guess, enrollment, now, **STRANGER) == 0  # stored times are in the future now
    refilled = empty(guess, enrollment, now + 21 * HOUR, **STRANGER)
    assert refilled <= 1


# shows: clock-jump
def test_codes_are_refused_and_backup_codes_pass_after_a_clock_that_ran_ahead(driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    ahead = now + DAY
    assert driver.login("login", "alice", enrollment.code(ahead), at=ahead).result == SUCCESS
    with sink.watch() as lines:
        login = driver.login("login", "alice", enrollment.code(now), at=now)
    assert login.result == AUTH_ERR and reason(lines) in ("clock", "replayed")
    assert driver.login("login", "alice", enrollment.backup_codes[0], at=now).result == SUCCESS


def left(store):
    status = store.status()["wrongCodes"]
    return status["known"]["left"], status["other"]["left"]


@pytest.mark.parametrize("slip", ["another digit", "two swapped"])
def test_a_slip_of_the_owner_costs_nothing_three_times_a_day(driver, store, slip):
    enrollment, at = store.enroll(), aligned_now()
    for turn in range(5):
        typed = None
        while typed is None or typed in enrollment.codes(41, at - 600):
            at += 60
            code = enrollment.code(at)
            place = next((n for n in range(5) if code[n] != code[n + 1]), 0)
            typed = code[:2] + str((int(code[2]) + 1) % 10) + code[3:]
            if slip == "two swapped":
                typed = code[:place] + code[place + 1] + code[place] + code[place + 2:]
        assert driver.login("login", "alice", typed, at=at).result == AUTH_ERR
        assert left(store) == (19 - max(0, turn - 3), 20)
        assert driver.login("login", "alice", code, at=at + 1).result == SUCCESS
        assert left(store) == (20 - max(0, turn - 2), 20)


def test_a_slip_from_a_new_place_is_charged(driver, store):
    enrollment, now = store.enroll(), aligned_now()
    code = enrollment.code(now)
    typed = code[:5] + str((int(code[5]) + 1) % 10)
    assert typed not in enrollment.codes(41, now - 600)
    assert driver.login("sshd", "alice", typed, at=now, **STRANGER).result == AUTH_ERR
    assert driver.login("sshd", "alice", code, at=now, **STRANGER).result == SUCCESS
    assert left(store) == (20, 19)
