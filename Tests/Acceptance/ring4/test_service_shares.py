"""One user with the 65,536 uids that newuidmap gives him, at the public socket: whose share they are of."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.hosts import SCRATCH, UIDS, edit
from support.pam_driver import AUTH_ERR, BUILT, Driver
from support.service import PUBLIC, SERVICE, Service, attempt, connect
from test_service_held import _no_sockets_before, stacks  # noqa: F401 (fixtures)

CALLS, FIRST, COUNT = 500, 1_000_000, 65_536


@pytest.fixture
def slow_directory():
    """It takes 50 ms to say that there is no such account."""
    shutil.copy(f"{BUILT}/libnss_slow.so.2", SCRATCH / "lib")
    subprocess.run(["ldconfig", "-X"], check=True)
    before = Path("/etc/nsswitch.conf").read_text()
    edit("/etc/nsswitch.conf", lambda text: re.sub("(?m)^passwd:.*", r"\g<0> slow", text))
    yield
    Path("/etc/nsswitch.conf").write_text(before)


@pytest.fixture
def ranges():
    """What newuidmap gives bob."""
    path = Path("/etc/subuid")
    before = path.read_text() if path.exists() else None
    path.write_text(f"alice:500000:65536\nbob:{FIRST}:{COUNT}\n")
    yield
    path.unlink()
    if before is not None:
        path.write_text(before)


def _flood(number, processes, uids, ready):
    """A packet as one uid after the other, and more connections at a time than are answered anywhere."""
    clients = []
    for turn in range(number, 1 << 60, processes):
        uid = uids[turn % len(uids)]
        os.setresuid(uid, uid, 0)
        with contextlib.suppress(OSError):
            clients.append(connect(PUBLIC))
            clients[-1].send(attempt(b"alice", b"letters"))
        os.setresuid(0, 0, 0)
        if len(clients) > 150:
            os.write(ready, b".")
            clients.pop(0).close()


@contextlib.contextmanager
def flood(processes, uids):
    start, ready = os.pipe()
    os.set_blocking(ready, False)
    children = []
    try:
        for number in range(processes):
            children.append(os.fork())
            if children[-1] == 0:
                while True:
                    with contextlib.suppress(OSError):
                        _flood(number, processes, uids, ready)
        assert os.read(start, 1) == b"."
        yield
    finally:
        for one in children:
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)
        os.close(start), os.close(ready)


def as_alice():
    os.setgroups([])
    os.setresuid(*[UIDS["alice"]] * 3)


def refused(stacks, calls=CALLS):
    with Driver(stacks, preexec=as_alice) as driver:
        return sum(driver.login("locker", "alice", "letters").result != AUTH_ERR for _ in range(calls))


def rounds(stacks, processes, uids, is_seen=False):
    """How many calls were refused in each of up to three rounds, until one refuses none.

    A machine that is busy with something else is late for a call now and then. A fault of the shares
    refuses dozens in every round: each has a service of its own, which has seen nobody."""
    found = []
    while len(found) < 3 and 0 not in found:
        with Service("nice", "-n", "-5", SERVICE):
            if is_seen:
                assert refused(stacks, 1) == 0
            with flood(processes, uids):
                found.append(refused(stacks))
    return found


DIRECTORIES = pytest.mark.parametrize("directory, processes", [(None, 6), ("slow_directory", 2)])
STRANGERS = range(FIRST, FIRST + COUNT)


# shows: session-share
@pytest.mark.alone
@DIRECTORIES
def test_a_flood_of_strangers_refuses_nobody_who_was_seen_before(
        request, store, stacks, sink, figure, directory, processes):
    if directory:
        request.getfixturevalue(directory)
    store.enroll(allow_missing=False)
    found = rounds(stacks, processes, STRANGERS, is_seen=True)
    figure(f"beside {processes} processes of {COUNT:,} uids of nobody: {found} of {CALLS} calls refused")
    assert found[-1] == 0, found


# shows: session-share
@pytest.mark.alone
@DIRECTORIES
def test_a_flood_from_a_range_of_newuidmap_refuses_nobody_else(
        request, store, stacks, sink, figure, ranges, directory, processes):
    """Also nobody whom the service sees for the first time."""
    if directory:
        request.getfixturevalue(directory)
    store.enroll(allow_missing=False)
    found = rounds(stacks, processes, STRANGERS)
    figure(f"beside {processes} processes of {COUNT:,} uids of one user: {found} of {CALLS} calls refused")
    assert found[-1] == 0, found


@pytest.mark.alone
def test_a_flood_of_one_uid_refuses_nobody_else(store, stacks, sink, figure):
    store.enroll(allow_missing=False)
    found = rounds(stacks, 6, [UIDS["bob"]])
    figure(f"beside 6 processes of one uid: {found} of {CALLS} calls refused")
    assert found[-1] == 0, found
