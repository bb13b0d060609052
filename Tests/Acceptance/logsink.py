"""The system log of the private machine: a thread behind /dev/log that keeps every line."""

import os
import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass

LEVELS = ["EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"]


@dataclass(frozen=True)
class Line:
    level: str
    text: str  # from the program's name on, without priority and time

    @property
    def ours(self):
        return "pam_sallyport(" in self.text


def parse(datagram):
    text = datagram.rstrip(b"\0\n").decode("latin-1")
    match = re.match(r"<(\d+)>(?:\w{3} [ \d]\d \d\d:\d\d:\d\d )?(.*)", text, re.DOTALL)
    if match is None:
        return Line("?", text)
    return Line(LEVELS[int(match[1]) & 7], match[2])


class LogSink:
    def __init__(self, path="/dev/log"):
        self.path = path
        self.lines = []
        self._flushed = threading.Condition()
        self._seen = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(path)
        os.chmod(path, 0o666)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            datagram = self._socket.recv(1 << 17)
            if datagram.startswith(b"\0flush"):
                with self._flushed:
                    self._seen = int(datagram[6:])
                    self._flushed.notify_all()
            else:
                self.lines.append(parse(datagram))

    def flush(self):
        """Waits until everything sent before this call stands in `lines`."""
        with self._flushed:
            wanted = self._seen + 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
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
