"""Who is blocked: in flight, after a kill or a full disk at any system call, and in the account phase."""

import re
import shutil
import subprocess
import time

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Crowd
from support.sallyport import COMMAND, MODULE, our_line, reason, sallyport
from support.steps import broken_at, steps
from support.whole import STRIDE

PROCESSES = 32
CHANGING = ("mkdir", "mkdirat", "openat", "fchmod", "write", "pwrite64", "fsync", "flock", "fcntl",
            "renameat", "renameat2", "rename", "unlinkat")


def words(store, *more, user="alice"):
    return ["block", user, "--json", "--store", str(store.directory), *more]


def block(store, *more, prefix=(), user="alice"):
    return subprocess.run([*map(str, prefix), str(COMMAND), *words(store, *more, user=user)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@pytest.fixture
def account_line(services, store):
    services.write("login", our_line(store, "nodelay"),
                   f"account required {MODULE} store={store.directory}",
                   "account required pam_permit.so")


# shows: block
@pytest.mark.decisive
def test_nobody_of_32_logins_in_flight_gets_in_once_block_has_returned(
        alice, store, services, sink, tmp_path, figure):
    store.enroll(allow_missing=False)
    before = after = 0
    with Crowd(services, PROCESSES) as crowd:
        for turn in range(24):
            codes = store.regenerate()
            crowd.wait_at_prompts([(("login", "alice", codes[i % 10]), {}) for i in range(PROCESSES)])
            blocking = subprocess.Popen([str(COMMAND), *words(store)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
            # From before its first system call to after its last.
            time.sleep(turn * 0.004)
            crowd.release()
            said = blocking.communicate()
            kept = tmp_path / f"kept-{turn}"
            shutil.copytree(store.directory, kept)
            logins = [driver.verdict() for driver in crowd.drivers]
            assert blocking.returncode == 0, said
            accepted = sum(login.result == SUCCESS for login in logins)
            assert sum(login.result == AUTH_ERR for login in logins) == PROCESSES - accepted
            then = sallyport("status", "alice", "--json", "--store", kept)
            assert f'"left":{10 - accepted}' in re.sub(r"\s", "", then.stdout), (turn, accepted)
            before, after = before + accepted, after + PROCESSES - accepted
            # Everybody who is still to answer is refused.
            assert crowd.drivers[0].login("login", "alice", codes[-1]).result == AUTH_ERR
            assert block(store, "--undo").returncode == 0
            store.unlock()
    assert before and after
    figure(f"{before} codes accepted before block returned, 0 of {after} after it")


@pytest.mark.decisive
def test_the_account_line_refuses_who_was_not_asked(alice, store, services, driver, sink, account_line):
    store.enroll(allow_missing=False)
    assert driver.login("login", "alice", phases=("acct",)).result == SUCCESS
    assert block(store).returncode == 0
    with sink.watch() as lines:
        assert driver.login("login", "alice", phases=("acct",)).result == "PAM_PERM_DENIED"
    assert reason(lines) == "blocked"
    assert driver.login("login", "bob-is-nobody", phases=("acct",)).result == SUCCESS
    assert block(store, "--undo").returncode == 0
    assert driver.login("login", "alice", phases=("acct",)).result == SUCCESS


def test_who_is_blocked_is_refused_like_a_wrong_code(alice, store, services, driver, sink):
    enrollment = store.enroll(allow_missing=False)
    assert block(store).returncode == 0
    with sink.watch() as lines:
        login = driver.login("login", "alice", enrollment.code())
    assert (login.result, len(login.prompts), reason(lines)) == (AUTH_ERR, 1, "blocked")
    assert block(store, "--undo").returncode == 0
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


def is_whole(path, name):
    return re.fullmatch(r"#.*\nversion = 1\nuser = %s\nuid = 3001\nuntil = none\nsince = \d+\n" % name,
                        path.read_text()) and path.stat().st_mode & 0o777 == 0o600


def files(store):
    """Those that block alice, each of which is whole."""
    found = [path for path in (store.directory / "blocked" / "alice",
                               store.directory / "blocked-uids" / "3001") if path.exists()]
    assert all(is_whole(path, "alice") for path in found)
    return found


def calls(store, report, *more):
    """[(call, how many-th of that name in the process)] of `block` that touch the store."""
    assert block(store, *more, prefix=("strace", "-y", "-o", report)).returncode == 0
    return steps(report, store.directory, CHANGING)


@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC"])
@pytest.mark.parametrize("undo", [False, True], ids=["block", "undo"])
def test_a_fault_at_any_system_call_leaves_whole_files_and_what_was_said_is_done(
        alice, store, tmp_path, figure, fault, undo):
    store.enroll(allow_missing=False)
    more = ["--undo"] if undo else []
    if undo:
        assert block(store).returncode == 0
    kept = tmp_path / "kept"
    shutil.copytree(store.directory, kept)
    places = calls(store, tmp_path / "strace", *more)
    assert {"fsync", "flock"} <= {name for name, _ in places}
    outcomes = {}
    for name, nth in places[::STRIDE]:
        shutil.rmtree(store.directory)
        shutil.copytree(kept, store.directory)
        done = block(store, *more, prefix=broken_at(name, nth, fault))
        left = files(store)
        if done.returncode == 0:
            assert len(left) == (0 if undo else 2), (name, nth, done.stdout, done.stderr)
        outcomes[len(left)] = outcomes.get(len(left), 0) + 1
        # The next one ends it, and cleans up.
        again = block(store, *more)
        assert again.returncode in ((0, 66) if undo else (0,)), (name, nth, again.stderr)
        assert len(files(store)) == (0 if undo else 2), (name, nth)
    assert [path.name for path in (store.directory / "users").iterdir()] == ["alice"]
    figure(f"{fault} at {len(places[::STRIDE])} system calls of {'block --undo' if undo else 'block'}: "
           f"then {outcomes} files")
