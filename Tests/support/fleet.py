"""A PostgreSQL of its own, and verifiers over it."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from support.service import attempt, request, soon

VERIFIER = os.environ.get("SALLYPORT_VERIFIER", "")
ACCEPTED, REFUSED, TROUBLE, DONE, NOT_SERVED = 0xA5, 0x5A, 0xF0, 0xC3, 0xAA
SECRET = b"12345678901234567890"
OWN, UID = 1, 3001


def programs():
    """The newest of the installed PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


class Cluster:
    """A server on a socket in a directory of its own, as user postgres; gone with the context."""

    def __init__(self, directory=None):
        """Of one that runs, its directory."""
        self.directory = directory
        self.user = pwd.getpwnam("postgres")
        self.server = None

    def _run(self, *command, **more):
        return subprocess.run(command, user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[],
                              cwd=self.directory, check=True, **more)

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="sallyport-fleet."))
        os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self._run(programs() / "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C",
                  "--username=postgres", self.directory / "data", stdout=subprocess.DEVNULL)
        # The machine does not lose its power in these tests, and no other process its memory.
        self.server = subprocess.Popen(
            [programs() / "postgres", "-D", self.directory / "data", "-k", self.directory, "-c",
             "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200", "-c", "log_min_messages=panic"],
            user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[], cwd=self.directory)
        assert soon(self.answers)
        self.sql("CREATE ROLE sallyport_verifier LOGIN")
        return self

    def __exit__(self, *_):
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(20)
        shutil.rmtree(self.directory)

    @property
    def words(self):
        return f"host={self.directory}"

    def answers(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            return self.sql("SELECT 1") == [["1"]]

    def sql(self, statement, database="postgres"):
        """The rows, as text."""
        done = subprocess.run(
            ["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.directory, "-U", "postgres", "-d",
             database, "-c", statement], capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, "psql", done.stdout, done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]


class Verifier:
    """A verifier on a socket in that directory."""

    def __init__(self, words, directory, name):
        self.socket = Path(directory, name)
        self.command = [VERIFIER, "run", "--database", words, "--directory", directory, "--socket", self.socket,
                        "--name", name]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command)
        assert soon(lambda: self.process.poll() is not None or self.listens()), "it did not start"
        assert self.process.poll() is None, f"status {self.process.returncode}"
        return self

    def listens(self):
        try:
            self._connect(1).close()
        except OSError:
            return False
        return True

    def _connect(self, limit):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(limit)
        client.connect(str(self.socket))
        return client

    def send(self, which):
        self.process.send_signal(which)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            return self.process.wait(20)

    def ask(self, frame, host=b"web1", uid=UID, limit=20):
        """The byte of the answer; None where there was none in time."""
        front = struct.pack("<BBI", 1, OWN, uid) + bytes([len(host)]) + host
        with contextlib.suppress(OSError), self._connect(limit) as client:
            client.send(front + frame)
            answer = client.recv(1 << 16)
            return answer[1] if len(answer) > 1 else None

    def type(self, name, code, **more):
        return self.ask(attempt(name.encode(), code.encode()), **more)

    def enroll(self, name, **more):
        return self.ask(request(name.encode(), 7, struct.pack("<QB", 0, 1), enrollment(name)), **more)


def enrollment(name, secret="GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"):
    return f"""# Sallyport enrollment: holds secrets. Change it with sallyport(1) only.
version = 1
user = {name}
uid = none
id = 00000000000000e1
created = 1700000000

[authenticator]
id = 00000000000000a1
name = phone
type = totp
period = 30
algorithm = SHA1
digits = 6
last_accepted = none
secret = {secret}
created = 1700000000

[end]
""".encode()

