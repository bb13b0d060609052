"""A pass that must end in enrolling: claimed, spent, killed anywhere, and taken back by restore."""

import os
import re

import pytest

from support.pam_driver import (
    AUTH_ERR, FAIL, LIVE, SUCCESS, Barrier, Driver, HostDied, Reply)
from support.sallyport import MODULE, aligned_now, first_code, our_line, sallyport
from support.steps import broken_at
from support.whole import STRIDE

DENIED = "PAM_PERM_DENIED"
FIRST = "auth required pam_exec.so quiet expose_authtok /bin/true"
PERMIT = "account required pam_permit.so"
CHANGING = ("mkdirat", "openat", "fchmod", "write", "pwrite64", "fsync", "fdatasync", "renameat",
            "renameat2", "rename", "unlinkat")


@pytest.fixture
def ours(store, services):
    """Writes a stack; by default with our account line."""
    def write(*account):
        line = f"account required {MODULE} store={store.directory}"
        services.write("sshd", FIRST, our_line(store, "enroll", "nodelay"),
                       *(account or (line, PERMIT)))
    write()
    return write


def enroll(driver, code, **more):
    return driver.login("sshd", "alice", "x", code, "y", LIVE, "", phases=("auth", "acct"),
                        rhost="192.0.2.7", live=first_code, **more).results


def asked(driver, code, **more):
    """The verdict of the auth phase alone."""
    return driver.login("sshd", "alice", "x", code, rhost="192.0.2.7", **more).result


def restore(store, *words):
    return sallyport("restore", "alice", "--yes", *words, "--store", store.directory)


def files(store):
    return sorted(os.listdir(store.of("alice")))


# shows: pass-enroll
@pytest.mark.decisive
def test_what_it_enrolls_takes_the_place_of_all_before_until_that_is_restored(
        store, services, sink, ours):
    old, now = store.enroll(), aligned_now()
    code, backup = store.give_pass("--enroll"), old.backup_codes.pop()
    with Driver(services) as driver:
        assert asked(driver, old.code(now), at=now) == SUCCESS
        assert asked(driver, backup) == SUCCESS
        assert enroll(driver, code) == [SUCCESS, SUCCESS]
        assert len(files(store)) == 4
        later = now + 30
        for typed in (old.code(later), old.backup_codes[0], code):
            assert asked(driver, typed, at=later) == AUTH_ERR
        new = store.status()
        assert new["backupCodes"]["left"] == 10 and len(new["suspended"]) == 1
        done = restore(store)
        assert done.returncode == 0, done.stderr
        assert files(store) == ["enrollment", "state"]
        assert store.status()["suspended"] == []
        # What was used before is used.
        assert asked(driver, old.code(now), at=now) == AUTH_ERR
        assert asked(driver, backup, at=later) == AUTH_ERR
        assert asked(driver, old.code(later), at=later) == SUCCESS
        assert asked(driver, old.backup_codes[0], at=later) == SUCCESS
        assert asked(driver, code, at=later) == AUTH_ERR
    assert restore(store).returncode == 1


# shows: pass-enroll
@pytest.mark.parametrize("account", [
    pytest.param((PERMIT,), id="no line of ours"),
    pytest.param(("account sufficient pam_permit.so", None), id="one that is not reached"),
    pytest.param((None, "account required pam_deny.so"), id="an account that is refused")])
def test_it_is_not_claimed_where_the_account_phase_would_not_enroll(
        store, services, sink, ours, account):
    old = store.enroll()
    line = f"account required {MODULE} store={store.directory}"
    ours(*(word or line for word in account))
    code = store.give_pass("--enroll")
    with Driver(services) as driver, sink.watch() as lines:
        assert asked(driver, code) == AUTH_ERR
    assert "refused: reason=must-enroll" in lines[-1].text
    assert store.status()["passes"][0]["usesLeft"] == 3
    with Driver(services) as driver:
        assert asked(driver, old.code()) == SUCCESS


def test_a_line_that_is_dropped_costs_one_of_three_tries(store, services, sink, ours):
    store.enroll()
    code = store.give_pass("--enroll")
    with Driver(services) as driver:
        for answers in (["y", FAIL], ["n"]):
            assert driver.login("sshd", "alice", "x", code, *answers, phases=("auth", "acct"),
                                rhost="192.0.2.7").results == [SUCCESS, DENIED]
        assert store.status()["passes"][0]["usesLeft"] == 1
        assert enroll(driver, code) == [SUCCESS, SUCCESS]
        assert asked(driver, code) == AUTH_ERR


# shows: pass-enroll
@pytest.mark.decisive
def test_of_32_at_once_at_most_three_claim_it_and_one_enrolls(store, services, sink, ours, figure):
    store.enroll()
    outcomes = []
    for _ in range(5):
        code, barrier = store.give_pass("--enroll"), Barrier()
        drivers = [Driver(services, barrier) for _ in range(32)]
        try:
            for driver in drivers:
                driver.send("sshd", "alice", "x", Reply.at_barrier(code), "y", LIVE, "",
                            phases=("auth", "acct"), rhost="192.0.2.7")
            for driver in drivers:
                driver.wait_for_prompt()
            barrier.release(len(drivers))
            results = [tuple(driver.verdict(first_code).results) for driver in drivers]
        finally:
            for driver in drivers:
                driver.__exit__()
            barrier.close()
        # Fewer than three where one has enrolled before the others are verified.
        denied, refused = results.count((SUCCESS, DENIED)), [auth for auth, _ in results].count(AUTH_ERR)
        assert results.count((SUCCESS, SUCCESS)) == 1 and denied <= 2 and refused == 31 - denied
        outcomes.append(1 + denied)
    assert len(store.status()["suspended"]) == 5
    figure(f"one pass, 32 at once, 5 rounds: {outcomes} claimed it, one enrolled, in each")


def calls(store, services, code, tmp_path):
    """[(call, how many-th of that name in the process)] of the whole login on the store."""
    report = tmp_path / "strace"
    with Driver(services, prefix=["strace", "-y", "-o", str(report)]) as driver:
        assert enroll(driver, code) == [SUCCESS, SUCCESS]
    counts, found = {}, []
    for line in report.read_text().splitlines():
        name = re.match(r"(\w+)\(", line)
        if name is None:
            continue
        counts[name[1]] = counts.get(name[1], 0) + 1
        if str(store.directory) in line and name[1] in CHANGING:
            found.append((name[1], counts[name[1]]))
    return found


@pytest.mark.decisive
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC"])
def test_a_fault_at_any_system_call_leaves_the_old_enrollment_or_the_new_one_and_both_whole(
        store, services, sink, ours, tmp_path, figure, fault):
    old, now = store.enroll(), aligned_now()
    places = calls(store, services, store.give_pass("--enroll"), tmp_path)
    assert restore(store).returncode == 0
    assert {"pwrite64", "fdatasync", "fsync", "write"} & {name for name, _ in places}
    outcomes = {}
    for turn, (name, nth) in enumerate(places[::STRIDE]):
        at, code = now + 30 * (turn + 1), store.give_pass("--enroll")
        results = []
        with Driver(services, prefix=broken_at(name, nth, fault)) as doomed:
            try:
                doomed.send("sshd", "alice", "x", code, "y", LIVE, "", phases=("auth", "acct"),
                            rhost="192.0.2.7")
                results = doomed.verdict(first_code).results
            except HostDied:
                pass
        said = store.status()
        is_new = len(said["suspended"]) == 1
        # Who got in has enrolled.
        assert is_new or results != [SUCCESS, SUCCESS], (name, nth)
        with Driver(services) as driver:
            if is_new:
                assert asked(driver, old.code(at), at=at) == AUTH_ERR, (name, nth)
                assert asked(driver, code, at=at) == AUTH_ERR, (name, nth)
                store.unlock()
                assert restore(store).returncode == 0, (name, nth)
            assert asked(driver, old.code(at), at=at) == SUCCESS, (name, nth)
        store.unlock()
        assert sallyport("pass", "alice", "--revoke", "--store", store.directory).returncode == 0
        assert files(store) == ["enrollment", "state"], (name, nth)
        outcome = "new" if is_new else "old"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert set(outcomes) == {"old", "new"}
    figure(f"{fault} at {len(places[::STRIDE])} system calls of an enrolling by pass: then {outcomes}")
