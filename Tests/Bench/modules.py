"""The modules that are compared, each with its users and its line; Tests/Bench/README.md says why."""

import base64
import hashlib
import hmac
import os
import struct
from pathlib import Path

from support.sallyport import MODULE

SECRET = hashlib.sha1(b"bench").digest()  # one for all users: no module's work depends on it
BASE32 = base64.b32encode(SECRET).decode()
PERIOD = 30


def code(at, secret=SECRET):
    """The code of RFC 6238 at this time; `bench.py` compares it with oathtool's once."""
    digest = hmac.digest(secret, struct.pack(">Q", int(at) // PERIOD), "sha1")
    start = digest[-1] & 15
    return f"{(struct.unpack_from('>I', digest, start)[0] & 0x7fffffff) % 10 ** 6:06}"


def users(count):
    return [f"user{number:06}" for number in range(count)]


def put(path, content, mode=0o600):
    """A new file, as an administrator's program would leave it."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    os.write(descriptor, content if isinstance(content, bytes) else content.encode())
    os.close(descriptor)


class Sallyport:
    """Ours, at its defaults. Ten backup codes; the files as docs/enrollment-format.md has them."""

    name, module, prompt = "sallyport", MODULE, "Verification code: "

    def __init__(self, disk):
        self.root = Path(disk, "sallyport")

    def line(self):
        return f"required {MODULE} store={self.root} nodelay"

    def enroll(self, names, now):
        for directory in (self.root, self.root / "users"):
            directory.mkdir(mode=0o700, exist_ok=True)
        hashes = "".join(f"code = {hashlib.sha256(bytes([n])).hexdigest()}\n" for n in range(10))
        for number, user in enumerate(names, 1):
            directory = self.root / "users" / user
            directory.mkdir(mode=0o700, exist_ok=True)
            put(directory / "enrollment", self._enrollment(user, number, now, hashes))
            put(directory / "state", self._slot(number, 2) + self._slot(number, 1))

    @staticmethod
    def _enrollment(user, number, now, hashes):
        return (
            f"version = 1\nuser = {user}\nuid = none\nid = {number:016x}\ncreated = {now}\n"
            f"[authenticator]\nid = {number:016x}\nname = phone\ntype = totp\nperiod = {PERIOD}\n"
            f"algorithm = SHA1\ndigits = 6\nlast_accepted = none\nsecret = {BASE32}\n"
            f"created = {now}\n[backup_codes]\nid = {number:016x}\nsalt = {number:032x}\n"
            f"{hashes}[end]\n")

    @staticmethod
    def _slot(number, sequence):
        state = struct.pack("<QBQBiB", number, 1, number, 0, 0, 0)  # the authenticator: unused
        state += struct.pack("<BQQB", 1, number, 0, 0)  # the backup codes: unused
        # both budgets whole, no slip and no refund, no known and no remembered origin
        state += struct.pack("<QqQq56xBB", 0, 0, 0, 0, 0, 0)
        record = struct.pack("<8sQI", b"SPSTATE1", sequence, 20 + len(state)) + state
        return record.ljust(4064, b"\0") + hashlib.sha256(record).digest()


class GoogleAuthenticator:
    """Secrets in a directory of root's; reuse forbidden and rate limited, as its own tool proposes."""

    name, prompt = "google-authenticator", "Verification code: "
    module = next(Path("/usr/lib").glob("*-linux-gnu/security/pam_google_authenticator.so"), None)

    def __init__(self, disk):
        self.root = Path(disk, "google")

    def line(self):
        return f"required {self.module} user=root secret={self.root}/${{USER}}"

    def enroll(self, names, now):
        self.root.mkdir(mode=0o700, exist_ok=True)
        scratch = "".join(f"{10000000 + number * 7919}\n" for number in range(5))
        content = f'{BASE32}\n" RATE_LIMIT 3 30\n" WINDOW_SIZE 3\n" DISALLOW_REUSE\n" TOTP_AUTH\n'
        for user in names:
            put(self.root / user, content + scratch, 0o400)


class Oath:
    """One file for all users, the only way it has; windows at their default."""

    name, prompt = "oath", "One-time password"
    module = next(Path("/usr/lib").glob("*-linux-gnu/security/pam_oath.so"), None)

    def __init__(self, disk):
        self.root = Path(disk, "oath")

    def line(self):
        return f"required {self.module} usersfile={self.root}/users.oath"

    def enroll(self, names, now):
        self.root.mkdir(mode=0o700, exist_ok=True)
        lines = [f"HOTP/T{PERIOD}/6\t{user}\t-\t{SECRET.hex()}\n" for user in names]
        put(self.root / "users.oath", "".join(lines))


class Permit:
    """The control: libpam itself and whatever the measuring costs; asks nothing, keeps nothing."""

    name, prompt = "pam_permit", None
    module = next(Path("/usr/lib").glob("*-linux-gnu/security/pam_permit.so"), None)

    def __init__(self, disk):
        pass

    def line(self):
        return "required pam_permit.so"

    def enroll(self, names, now):
        pass


def contestants(disk):
    return [kind(disk) for kind in (Sallyport, GoogleAuthenticator, Oath, Permit)]
