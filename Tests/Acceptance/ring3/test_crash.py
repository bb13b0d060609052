"""kill -9 at any system call of a login: the store stays whole, and no code is good twice."""

import re

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver, HostDied
from support.sallyport import aligned_now


def calls_of_a_login(store, services, tmp_path, enrollment, at):
    """[(name, how many-th of that name in the process)] between prompt and verdict."""
    report = tmp_path / "strace"
    with Driver(services, prefix=["strace", "-y", "-o", str(report)]) as driver:
        driver.login("login", "alice", enrollment.code(at), at=at, mark=1)
    counts, calls, inside = {}, [], False
    for line in report.read_text().splitlines():
        name = re.match(r"(\w+)\(", line)
        if name is None:
            continue
        counts[name[1]] = counts.get(name[1], 0) + 1
        inside = "/mark/begin" in line or inside and "/mark/end" not in line
        if inside and (str(store.directory) in line or name[1] in ("fcntl", "pwrite64", "fdatasync")):
            calls.append((name[1], counts[name[1]]))
    return calls


# shows: one-use, power-cut
@pytest.mark.parametrize("kind", ["code", "backup code"])
def test_killed_at_any_system_call_a_login_spoils_nothing(
        store, services, sink, tmp_path, figure, kind):
    enrollment, now = store.enroll(), aligned_now()
    calls = calls_of_a_login(store, services, tmp_path, enrollment, now)
    assert ("pwrite64" in dict(calls)) and ("fdatasync" in dict(calls))
    outcomes = {}
    for turn, (name, nth) in enumerate(calls):
        if kind == "backup code" and name not in ("pwrite64", "fdatasync"):
            continue
        at = now + 600 * (turn + 1)
        answer = enrollment.code(at) if kind == "code" else enrollment.backup_codes.pop()
        with Driver(services, prefix=["strace", "-o", "/dev/null", "-e",
                                      f"inject={name}:signal=KILL:when={nth}"]) as doomed:
            with pytest.raises(HostDied):
                doomed.login("login", "alice", answer, at=at, mark=1)
        with Driver(services) as driver:
            again = driver.login("login", "alice", answer, at=at).result
            assert again in (SUCCESS, AUTH_ERR), (name, nth)
            assert driver.login("login", "alice", answer, at=at).result == AUTH_ERR
        outcomes[again] = outcomes.get(again, 0) + 1
    figure(f"killed at {sum(outcomes.values())} system calls ({kind}): then {outcomes}")
