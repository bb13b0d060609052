"""The system log of the private machine: a thread behind /dev/log that keeps every line."""

import os
import re
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass

LEVELS = ["EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"]


@dataclass(frozen=True)
class Line:
    level: str
    text: str  # from the program's name on, without priority and time
    pid: int = 0  # of the process that sent it, by the kernel's word

    @property
    def ours(self):
        return "pam_sallyport(" in self.text


def parse(datagram, pid=0):
    text = datagram.rstrip(b"\0\n").decode("latin-1")
    match = re.match(r"<(\d+)>(?:\w{3} [ \d]\d \d\d:\d\d:\d\d )?(.*)", text, re.DOTALL)
    if match is None:
        return Line("?", text, pid)
    return Line(LEVELS[int(match[1]) & 7], match[2], pid)


class LogSink:
    def __init__(self, path="/dev/log"):
        self.path = path
        self.lines = []
        self._flushed = threading.Condition()
        self._asking = threading.Lock()
        self._asked = self._seen = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(path)
        os.chmod(path, 0o666)
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            datagram, ancillary, _, _ = self._socket.recvmsg(1 << 17, 64)
            if self._closed:
                return
            if datagram.startswith(b"\0flush"):
                with self._flushed:
                    self._seen = int(datagram[6:])
                    self._flushed.notify_all()
            else:
                pid = struct.unpack_from("i", ancillary[0][2])[0] if ancillary else 0
                self.lines.append(parse(datagram, pid))

    def close(self):
        self._closed = True
        self._socket.shutdown(socket.SHUT_RD)  # the thread no longer waits
        self._thread.join()
        self._socket.close()

    def flush(self):
        """Waits until everything sent before this call stands in `lines`."""
        with self._asking, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            self._asked = wanted = self._asked + 1  # one for each of the threads that call at once
            out.sendto(b"\0flush%d" % wanted, self.path)
        with self._flushed:
            assert self._flushed.wait_for(lambda: self._seen >= wanted, timeout=30)

    @contextmanager
    def watch(self):
        """A list that holds, after the block, the module's lines written during it."""
        self.flush()
        start = len(self.lines)
        ours = []
        yield ours
        self.flush()
        ours += [line for line in self.lines[start:] if line.ours]
