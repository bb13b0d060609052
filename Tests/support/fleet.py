"""A PostgreSQL of its own, and verifiers over it."""

import contextlib
import functools
import hashlib
import hmac
import os
import pwd
import shutil
import signal
import secrets
import socket
import ssl
import struct
import subprocess
import tempfile
from pathlib import Path

from support.service import attempt, request, soon

VERIFIER = os.environ.get("SALLYPORT_VERIFIER", "")
ACCEPTED, REFUSED, TROUBLE, DONE, NOT_SERVED = 0xA5, 0x5A, 0xF0, 0xC3, 0xAA
SECRET = b"12345678901234567890"
OWN, UID, NOBODY = 1, 3001, 0xFFFFFFFF
# What a host is greeted with that was revoked.
REVOKED = b"\2"
# The file of a verifier over a database in which nothing was.
NOTHING_REVOKED = """# Kept by sallyport-verifier(8): what was revoked. It may not be lost or older than it is.
version = 1
"""


def programs():
    """Those of SALLYPORT_POSTGRES, or else the newest of the installed PostgreSQL."""
    if "SALLYPORT_POSTGRES" in os.environ:
        return Path(os.environ["SALLYPORT_POSTGRES"])
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


class Cluster:
    """A server on a socket in a directory of its own, as user postgres; gone with the context."""

    def __init__(self, directory=None, place=None, settings=("fsync=off", "checkpoint_timeout=1h")):
        """Of one that runs, its directory; of a new one, where that is made, and how it is set. The machine
        does not lose its power in tests, and no other process its memory."""
        self.directory, self.place, self.settings = directory, place, settings
        self.user = pwd.getpwnam("postgres")
        self.server = None

    def _run(self, *command, **more):
        return subprocess.run(command, user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[],
                              cwd=self.directory, check=True, **more)

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="sallyport-fleet.", dir=self.place))
        os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.directory.chmod(0o711)
        self._run(programs() / "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C",
                  "--username=postgres", self.directory / "data", stdout=subprocess.DEVNULL)
        settings = ["listen_addresses=", "max_connections=200", "log_min_messages=panic", *self.settings]
        self.server = subprocess.Popen(
            [programs() / "postgres", "-D", self.directory / "data", "-k", self.directory,
             *[word for setting in settings for word in ("-c", setting)]],
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
            raise subprocess.CalledProcessError(done.returncode, f"psql: {done.stderr}", done.stdout, done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]


def seconds(process):
    """Processor time of a process, with that of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def backends(sql):
    """Of the database, those that work for verifiers."""
    return [pid for pid, in sql("SELECT pid FROM pg_stat_activity WHERE usename = 'sallyport_verifier' "
                                "AND datname = current_database()")]


QUESTION, PING, SEALED, DATABASE_AWAY, LINE_NOT_SERVED = 0x01, 0x04, 0x07, 0xEE, 0xEF


class Key:
    """An Ed25519 key, its pin, and a certificate around it that says nothing."""

    def __init__(self, directory, name):
        self.key, self.certificate = Path(directory, f"{name}.key"), Path(directory, f"{name}.crt")
        self._openssl("genpkey", "-algorithm", "ed25519", "-out", self.key)
        self._openssl("req", "-new", "-x509", "-key", self.key, "-subj", f"/CN={name}", "-days", "2", "-out",
                      self.certificate)
        self.pin = pin_of(self.key)

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)

    @functools.cached_property
    def context(self):
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        made.load_cert_chain(self.certificate, self.key)
        return made


def pin_of(key):
    """Of the key in this file."""
    done = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True,
                          capture_output=True, timeout=60)
    return hashlib.sha256(done.stdout).hexdigest()


KEYS = tempfile.TemporaryDirectory(prefix="sallyport-hosts.")


@functools.cache
def host_key(name):
    """The key of the host with this name, the same for all of a run."""
    return Key(KEYS.name, name)


def seal_of(key, table, *values):
    """Of a row, under the file of the fleet's key, as docs/fleet-format.md has it; for SQL."""
    text = b"".join(struct.pack("<I", len(value)) + value for value in (b"seal of a row", table, *values))
    return "\\x" + (key[:4] + hmac.new(key[4:], text, hashlib.sha256).digest()).hex()


def fleet_row(key, version, distrust=0, distrusted=0):
    """Sets what the row of the fleet needs and writes, as somebody with its key."""
    values = version, version, distrust, distrusted
    seal = seal_of(key, b"fleet", *[struct.pack("<q", value) for value in values])
    return f"UPDATE fleet SET needs = {version}, writes = {version}, seal = '{seal}'"


def host_rows(key, names, pins=None):
    """Rows of the table `host`; the pins are those of `host_key`, or by name. Who enrolls may do everything, and
    as often as the tests like, where the tables know of that."""
    rows, rights = [], []
    for name, enrolls in names:
        pin = bytes.fromhex(pins[name] if pins else host_key(name).pin)
        seal = seal_of(key, b"host", name.encode(), pin, bytes([enrolls]), struct.pack("<q", 1))
        rows.append(f"('{name}', '\\x{pin.hex()}', {enrolls}, 1, '{seal}')")
        text = struct.pack("<Bq", 1, 1) + struct.pack("<IIq", 1 << 30, 0, 0) * 3
        bound = seal_of(key, b"rights", b"host", name.encode(), pin, struct.pack("<q", 1), text)
        if enrolls:
            rights.append(f"UPDATE host SET rights = '\\x{text.hex()}{bound[2:]}' WHERE name = '{name}';")
    inserted = "INSERT INTO host (name, key, enrolls, joined, seal) VALUES " + ", ".join(rows)
    known = "SELECT FROM information_schema.columns WHERE table_name = 'host' AND column_name = 'rights'"
    return f"{inserted}; DO $$ BEGIN IF EXISTS ({known}) THEN {' '.join(rights)} END IF; END $$"


class Line:
    """A line of a host to a verifier, greeted."""

    def __init__(self, connection, key):
        try:
            self.tls = key.context.wrap_socket(connection)
        except BaseException:
            connection.close()
            raise
        self.greeting = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tls.close()

    def send(self, kind, body, nonce=None):
        nonce = nonce or secrets.token_bytes(8)
        self.tls.sendall(struct.pack("<I", len(body) + 1) + nonce + bytes([kind]) + body)
        return nonce

    def receive(self):
        """(nonce, kind, body) of the next frame; None where the line ends."""
        head = self._exactly(12)
        content = head and self._exactly(struct.unpack("<I", head[:4])[0])
        return (head[4:], content[0], content[1:]) if content else None

    def _exactly(self, count):
        found = b""
        while len(found) < count:
            more = self.tls.recv(count - len(found))
            if not more:
                return None
            found += more
        return found

    @staticmethod
    def question(frame, uid=UID):
        """The body of a question: a frame of the host's service, and what goes before it."""
        return struct.pack("<BBII", 2, OWN, uid, NOBODY) + frame

    def ask(self, kind, body):
        """(kind, body) of the answer; None where there is none."""
        nonce = self.send(kind, body)
        found = self.receive()
        if found is None:
            return None
        assert found[0] == nonce
        return found[1:]


class Verifier:
    """A verifier on a port of this machine."""

    def __init__(self, words, directory, name, *more):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.address = taken.getsockname()
        self.command = [VERIFIER, "run", "--database", words, "--directory", directory, "--listen",
                        "{}:{}".format(*self.address), "--name", name, *more]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command)
        assert soon(lambda: self.process.poll() is not None or self.listens()), "it did not start"
        assert self.process.poll() is None, f"status {self.process.returncode}"
        return self

    def listens(self):
        with contextlib.suppress(OSError), self.line(limit=5) as line:
            return line.greeting is not None
        return False

    def connect(self, limit):
        return socket.create_connection(self.address, limit)

    def line(self, host="web1", limit=20):
        return Line(self.connect(limit), host_key(host))

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

    def ask(self, frame, host="web1", uid=UID, limit=20):
        """The byte of the answer; None where there was none in time."""
        with contextlib.suppress(OSError), self.line(host, limit) as line:
            kind, answer = line.ask(QUESTION, Line.question(frame, uid)) or (None, b"")
            if kind == DATABASE_AWAY:
                return TROUBLE
            return answer[1] if len(answer) > 1 else None

    def standing(self, host="web1"):
        """What it says that this host is, when it greets it."""
        with self.line(host) as line:
            return line.greeting[2][1:2]

    def type(self, name, code, **more):
        return self.ask(attempt(name.encode(), code.encode()), **more)

    def enroll(self, name, text=None, **more):
        return self.ask(request(name.encode(), 7, struct.pack("<QB", 0, 1), text or enrollment(name)), **more)


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


def backup_codes(number, codes):
    """The section of an enrollment with these codes."""
    salt = bytes(range(16))
    lines = ["[backup_codes]", f"id = {number:016x}", f"salt = {salt.hex()}"]
    return "\n".join(lines + ["code = " + hmac.digest(salt, code.encode(), "sha256").hex() for code in codes] + [""])


def with_backup_codes(name, number, codes):
    return enrollment(name).decode().replace("[end]", backup_codes(number, codes) + "\n[end]").encode()
