"""What stands at the paths of the service and is no good one, or stands before a good one."""

import contextlib
import itertools
import os
import select
import signal
import socket
import threading

from support.hosts import become
from support.service import PUBLIC, ROOT, Service, connect


class OddService:
    """At both paths something that is no good service."""

    def __init__(self, kind):
        self.service = self.process = None
        if kind == "stopped":
            self.service = Service().__enter__()
            os.kill(self.service.process.pid, signal.SIGSTOP)
            return
        ROOT.parent.mkdir(mode=0o755)
        if kind == "a file":
            ROOT.write_text(""), PUBLIC.write_text("")
        elif kind == "a link to nothing":
            ROOT.symlink_to("nowhere"), PUBLIC.symlink_to("nowhere")
        else:
            start, end = os.pipe()
            self.process = os.fork()
            if self.process == 0:
                self._serve(kind, end)
            os.close(end)
            assert os.read(start, 1) == b"."
            os.close(start)

    @staticmethod
    def _serve(kind, end):
        try:
            sockets, kept = [], []
            for path in (ROOT, PUBLIC):
                sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                sockets[-1].bind(str(path))
                os.chmod(path, 0o666)
            if kind == "of bob":
                become("bob")()
            for one in sockets:
                one.listen(100)
            os.write(end, b".")
            while True:
                for ready in select.select(sockets, [], [])[0]:
                    client, _ = ready.accept()
                    if kind in ("garbage", "of bob"):
                        with contextlib.suppress(OSError):  # gone already: it only looked
                            client.recv(1 << 17)
                            client.send(b"\x01\xa5\x01")
                    if kind == "silent":
                        kept.append(client)
                    else:
                        client.close()
        finally:
            os._exit(1)

    def close(self):
        if self.service:
            os.kill(self.service.process.pid, signal.SIGCONT)
            self.service.stop()
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


class Crowded:
    """Before the service one that closes a number of connections unread and passes the next one on."""

    def __init__(self, unread):
        behind = ROOT.with_name("behind")
        ROOT.rename(behind)
        self.turns, self.behind = itertools.cycle([False] * unread + [True]), behind
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(ROOT))
        self.listener.listen(100)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):  # the end
            while True:
                client, _ = self.listener.accept()
                with client:
                    if client.recv(1, socket.MSG_PEEK) and next(self.turns):
                        self._pass_on(client)

    def _pass_on(self, client):
        with connect(self.behind) as service:
            service.send(client.recv(1 << 17))
            while answer := service.recv(1 << 17):
                client.send(answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.listener.close()
