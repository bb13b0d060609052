"""The service `sallyportd`, and clients of its sockets that do as they like."""

import contextlib
import itertools
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

SERVICE = os.environ.get("SALLYPORT_SERVICE")
ROOT, PUBLIC = Path("/run/sallyport/root"), Path("/run/sallyport/socket")


def request(name, verb, more=b"", secret=b"", fleet=False, away=False):
    """A frame, from this machine, under the usual policy; `fleet`: with verification = fleet;
    `away`: a backup code was asked for."""
    on, percent, order = 0, 10_000_000_000, 5
    verified = [0 if fleet else 1, 1, 7 * 86_400]
    policy = [0, 5, 10, percent, 0, 0, 0, *verified, 3, 0, on, on, on, order, 1, 0]
    fields = bytes([len(name)]) + name + b"\0\1"
    fields += struct.pack("<18QBIBB", *policy, 0, 5000, away, verb)
    lengths = struct.pack("<HH", 5 + len(fields) + len(more), len(secret))
    return b"\1" + lengths + fields + more + secret


def attempt(name, code, **how):
    """Is this code right?"""
    return request(name, 2, b"\0\1", code, **how)


# One that every peer may send: which level has an account that does not exist?
REQUEST = request(b"nobody-here", 4)
# The level `refuse` for root's programs; on the public socket nobody may ask of another.
ANSWERS = {ROOT: b"\1\x33\x55", PUBLIC: b"\1\xaa"}


def waiting(packet):
    """The same from a caller that waits once the service has begun, and what tells him that it has."""
    return b"\2" + packet[1:]


BEGUN = b"\1\xcc"


def connect(path, limit=20):
    """A socket that blocks, as the module's does: a second to connect, so long for an answer."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for direction, seconds in ((socket.SO_SNDTIMEO, 1), (socket.SO_RCVTIMEO, limit)):
        time_left = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
        client.setsockopt(socket.SOL_SOCKET, direction, time_left)
    try:
        client.connect(str(path))
    except OSError:
        client.close()
        raise
    return client


def ask(path, packet=REQUEST, limit=20):
    """The answer; b"" where the connection was closed without one."""
    with connect(path, limit) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(packet)
            return client.recv(1 << 17)
    return b""


@contextlib.contextmanager
def many_users(path, most=100):
    """Meanwhile a process connects there as one uid after the other, none of which has an account,
    and keeps a number of connections."""
    start, ready = os.pipe()
    os.set_blocking(ready, False)
    process = os.fork()
    while process == 0:
        with contextlib.suppress(OSError):
            _as_many_users(path, most, ready)
    try:
        assert os.read(start, 1) == b"."
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(start), os.close(ready)


def _as_many_users(path, most, ready):
    clients = []
    for turn in itertools.count():
        os.setresuid(0, 200_000 + turn % 50_000, 0)
        try:
            clients.append(connect(path))
        finally:
            os.setresuid(0, 0, 0)
        if len(clients) == most:
            os.write(ready, b".")
            clients.pop(0).close()


def soon(condition, limit=30):
    """Whether that comes true within this many seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def listens(path):
    try:
        connect(path).close()
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


class Service:
    """The service on its usual paths, or by a command of its own."""

    def __init__(self, *command, **more):
        self.process = subprocess.Popen(command or [SERVICE], **more)

    def __enter__(self):
        assert soon(lambda: self.process.poll() is not None or listens(ROOT) and listens(PUBLIC))
        assert self.process.poll() is None, f"status {self.process.returncode}"
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, which=signal.SIGTERM, limit=20):
        if self.process.poll() is None:
            self.process.send_signal(which)
        return self.process.wait(limit)

    @property
    def descriptors(self):
        found = {}
        for number in os.listdir(f"/proc/{self.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found[int(number)] = os.readlink(f"/proc/{self.process.pid}/fd/{number}")
        return found

    @property
    def memory(self):
        """Kilobytes that it has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if "VmRSS" in line))
