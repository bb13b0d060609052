"""A host of a fleet that can reach no verifier verifies backup codes by its reserve, each once, also
if it is killed at any moment."""

import contextlib
import os
import shutil
import signal
from pathlib import Path

import pytest

from support import reserve
from support.reserve import CODES
from support.service import ROOT, SERVICE, Service, ask, attempt, request

ACCEPTED, REFUSED, PROMPT = b"\xa5", b"\x5a", b"\x96"
# In which the state, and what has to go up, get to the disk, and the answer to the client.
STEPS = ["fsync", "pwrite64", "fdatasync", "sendmsg", "sendto"]


@pytest.fixture(autouse=True)
def host():
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    reserve.cut_off()
    yield
    for path in (reserve.FLEET, reserve.KEY):
        path.unlink(missing_ok=True)


def answer(name, code):
    """The kind of the answer to this code at the prompt for a backup code; nothing where the service
    is gone. One question, so that one thread has all to do."""
    with contextlib.suppress(OSError):
        return ask(ROOT, attempt(name, code, fleet=True, away=True))[1:2]
    return b""


@pytest.mark.decisive
def test_a_backup_code_lets_in_once_and_a_code_of_an_authenticator_never(sink):
    reserve.put()
    with Service():
        for code in (b"123456", b"12345678"):
            assert answer(b"alice", code) == REFUSED
        assert answer(b"alice", CODES[0].encode()) == ACCEPTED
        assert answer(b"alice", CODES[0].encode()) == REFUSED
        assert reserve.used() == 1 and reserve.pending() == ["alice"]
        assert answer(b"alice", CODES[1].lower().encode()) == ACCEPTED
        # Who is not in the reserve is asked too, and refused.
        assert ask(ROOT, request(b"bob", 1, b"\0\1", fleet=True))[1:2] == PROMPT
        assert answer(b"bob", CODES[0].encode()) == REFUSED


def test_a_reserve_that_is_too_old_lets_nobody_in(sink):
    reserve.put(age=7 * 86_400)
    with Service():
        assert answer(b"alice", CODES[0].encode()) == REFUSED
        assert reserve.used() == 0


@contextlib.contextmanager
def killed_at(call, turn):
    """A service that is killed at that call, the so manieth of its threads together; the answers are
    of one that may be gone."""
    service = Service(
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
        f"inject={call}:signal=KILL:when={turn}", SERVICE)
    try:
        # It may be killed before it listens.
        with contextlib.suppress(AssertionError):
            service.__enter__()
        yield service
    finally:
        children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
        service.process.wait(20)


# shows: cut-off
@pytest.mark.decisive
@pytest.mark.parametrize("call", STEPS)
def test_a_code_is_good_at_most_once_on_a_host_that_is_killed_meanwhile(call, sink):
    lost = 0
    for turn in range(1, 9):
        reserve.cut_off()
        reserve.put()
        # What the service makes for itself is there before.
        with Service():
            assert answer(b"alice", b"123456") == REFUSED
        with killed_at(call, turn):
            accepted = answer(b"alice", CODES[0].encode()) == ACCEPTED
        before = reserve.used()
        assert before == 1 or not accepted
        lost += before == 1 and not accepted
        shutil.rmtree("/run/sallyport", ignore_errors=True)
        with Service():
            again = answer(b"alice", CODES[0].encode())
            assert again == (REFUSED if before == 1 else ACCEPTED)
            assert reserve.used() == 1 and reserve.pending() == ["alice"]
    # At one turn at least the code was used on disk, and the answer never came.
    assert lost or call not in ("fdatasync", "sendmsg")
