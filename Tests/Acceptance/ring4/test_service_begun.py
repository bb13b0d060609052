"""The service on a disk whose flush takes longer than a call may wait to begin."""

import os
import signal
import time

import pytest

from support.hosts import UIDS, Su, Sudo, service, two_factors
from support.pam_driver import AUTH_ERR, BUILT, SUCCESS, Driver
from support.sallyport import reason
from support.service import BEGUN, PUBLIC, ROOT, SERVICE, Service, attempt, connect, soon, waiting
from test_service_held import _no_sockets_before, child, stacks, user  # noqa: F401 (fixtures)


@pytest.fixture
def slow_disk():
    """A service whose every flush takes six seconds."""
    slow = {"LD_PRELOAD": f"{BUILT}/disk.so", "DISK_FLUSH": "6000"}
    with Service(SERVICE, env={**os.environ, **slow}) as running:
        yield running


CALLERS = {"as su": user("bob", 0), "a user's own": user("alice")}


# shows: slow-flush
@pytest.mark.parametrize("caller", CALLERS)
def test_a_flush_of_six_seconds_lets_in_and_burns_no_code(store, slow_disk, stacks, sink, caller):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.backup_codes[0]
    with Driver(stacks, preexec=CALLERS[caller]) as driver:
        start = time.monotonic()
        assert driver.login("locker", "alice", code).result == SUCCESS
        assert 6 <= time.monotonic() - start < 12
        assert driver.login("locker", "alice", code).result == AUTH_ERR


@pytest.mark.parametrize("host", [Su, Sudo])
def test_su_and_sudo_wait_for_a_flush_of_six_seconds(store, slow_disk, sink, host):
    enrollment = store.enroll(allow_missing=False)
    for name in ("su", "sudo"):
        service(name, *two_factors())
    code = enrollment.backup_codes[0]
    assert host().enter("alice", code) and not host().enter("alice", code)


@pytest.mark.decisive
@pytest.mark.parametrize("path, uid", [(ROOT, 0), (PUBLIC, UIDS["alice"])])
def test_a_code_whose_caller_is_killed_once_it_has_begun_is_used_and_logged(
        store, slow_disk, stacks, sink, path, uid):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.backup_codes[0]
    start, ready = os.pipe()

    def one():
        os.setresuid(uid, uid, uid)
        client = connect(path)
        client.send(waiting(attempt(b"alice", code.encode())))
        os.write(ready, b"+" if client.recv(10) == BEGUN else b"-")
        signal.pause()
    before = len(sink.lines)
    with child(one):
        assert os.read(start, 1) == b"+"

    def is_logged():
        sink.flush()
        return any("backup code accepted: user=alice" in line.text for line in sink.lines[before:])
    assert not is_logged() and soon(is_logged)
    with Driver(stacks, preexec=user("alice", 0)) as driver, sink.watch() as lines:
        assert driver.login("locker", "alice", code).result == AUTH_ERR
    assert reason(lines) == "replayed"


def test_a_service_that_is_told_to_end_answers_what_has_begun(store, slow_disk, stacks, sink):
    code = store.enroll(allow_missing=False).backup_codes[0]
    with connect(ROOT) as client:
        client.send(waiting(attempt(b"alice", code.encode())))
        assert client.recv(10) == BEGUN
        slow_disk.process.terminate()
        assert client.recv(1 << 17)[1:2] == b"\xa5"
    assert slow_disk.process.wait(20) == 0
