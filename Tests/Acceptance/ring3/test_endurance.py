"""A host that lives long: memory, threads, valgrind."""

import pytest

from support.pam_driver import AUTH_ERR, NULL, SUCCESS, Driver
from support.sallyport import aligned_now


# shows: threads
@pytest.mark.in_memory
@pytest.mark.parametrize("user", ["alice", "nobody-here"])
def test_ten_thousand_logins_leave_the_memory_flat(driver, store, figure, user):
    enrollment = store.enroll()
    verdicts, kilobytes = driver.summary("login", user, enrollment.wrong(), repeat=10_000)
    assert verdicts == {AUTH_ERR: 10_000}
    assert kilobytes[-1] - kilobytes[0] < 128, kilobytes  # a leak of 15 bytes would show
    figure(f"10,000 cycles as {user}: resident {kilobytes[0]} kB after 1,000, "
           f"{kilobytes[-1]} kB at the end")


# shows: threads, one-use
def test_eight_threads_at_once(driver, store):
    enrollment, now = store.enroll(), aligned_now()
    code = enrollment.code(now)
    verdicts, _ = driver.summary("login", "alice", code, repeat=50, threads=8, at=now)
    assert verdicts == {SUCCESS: 1, AUTH_ERR: 399}
    code = enrollment.backup_codes[0]
    verdicts, _ = driver.summary("login", "alice", code, repeat=50, threads=8, at=now)
    assert verdicts == {SUCCESS: 1, AUTH_ERR: 399}


def test_eight_threads_start_cold_at_once(store, services, sink):
    """The first fetch of libcrypto's MAC, by eight threads in the same instant."""
    enrollment, now = store.enroll(), aligned_now()
    for turn in range(10):
        at = now + 30 * turn
        with Driver(services) as driver:
            verdicts, _ = driver.summary(
                "login", "alice", enrollment.code(at), repeat=1, threads=8, at=at)
        assert verdicts == {SUCCESS: 1, AUTH_ERR: 7}


# shows: no-trap, in-memory
def test_valgrind_finds_nothing_in_a_hundred_logins(store, services, sink, tmp_path, figure):
    enrollment, now = store.enroll(), aligned_now()
    report = tmp_path / "valgrind"
    prefix = ["valgrind", "--quiet", "--leak-check=full",
              "--errors-for-leak-kinds=definite,indirect,possible", "--error-exitcode=99",
              f"--log-file={report}"]
    with Driver(services, prefix=prefix) as driver:
        verdicts, _ = driver.summary("login", "alice", enrollment.wrong(now), repeat=70, at=now)
        assert verdicts == {AUTH_ERR: 70}
        for attempt in range(10):
            at = now + 30 * attempt
            driver.summary("login", "alice", enrollment.code(at), repeat=1, at=at)
            driver.summary("login", "alice", enrollment.backup_codes[attempt], repeat=1, at=at)
        driver.summary("login", "alice", "1" * 65536, repeat=2, at=now)
        driver.summary("login", "alice", NULL, repeat=2, at=now)
        driver.summary("login", "nobody-here", "123456", repeat=6, at=now)
        status = driver.close()
    assert (status, report.read_text()) == (0, "")
    figure("valgrind memcheck over 100 logins: nothing")
