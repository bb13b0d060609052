"""What doctor says of sshd's settings is what a real sshd does: with key, password and code an
owner gets in or does not, and with key and password alone a thief gets in or does not."""

import ctypes
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from clinic import COMMON, SSHD_CONFIG, doctor, lock, wrong
from support.hosts import PATIENT, SCRATCH, Sshd, converse, edit
from support.sallyport import MODULE
from test_doctor import clinic, disk, healthy  # noqa: F401: fixtures

BASE = "UsePAM yes\nKbdInteractiveAuthentication yes\nPasswordAuthentication no\nUseDNS no\n"
OFF = BASE.replace("KbdInteractiveAuthentication yes", "KbdInteractiveAuthentication no")
PASSWORD = BASE.replace("PasswordAuthentication no", "PasswordAuthentication yes")
NO_PAM = PASSWORD.replace("UsePAM yes", "UsePAM no")
KEYS = BASE + "AuthenticationMethods publickey,keyboard-interactive\n"
CASES = {  # settings, words of the account line (None: there is none)
    "prompts": (BASE + "AuthenticationMethods keyboard-interactive", None),
    "key and prompts": (BASE + "AuthenticationMethods publickey,keyboard-interactive", None),
    "nothing set": ("UsePAM yes", None),
    "Debian's own": ("KbdInteractiveAuthentication no\nUsePAM yes", None),
    "a key or prompts": (BASE, None),
    "a key or prompts, demanded": (BASE, "demand"),
    "a key alone": (BASE + "AuthenticationMethods publickey", None),
    "a key alone, demanded": (BASE + "AuthenticationMethods publickey", "demand"),
    "prompts that are off": (OFF + "AuthenticationMethods keyboard-interactive", None),
    "no keys, prompts are off": (OFF + "PubkeyAuthentication no\n", None),
    "method password": (PASSWORD + "AuthenticationMethods password", None),
    "key and method password": (PASSWORD + "AuthenticationMethods publickey,password", None),
    "without PAM": (NO_PAM, None),
    "a list of each kind":
        (BASE + "AuthenticationMethods publickey,keyboard-interactive publickey", None),
    "an exception for alice": (
        BASE + "AuthenticationMethods keyboard-interactive\n"
        "Match User alice\nAuthenticationMethods publickey", None),
    "keys that nobody has": (KEYS + "AuthorizedKeysFile none", None),
    "keys where alice has none": (KEYS + "AuthorizedKeysFile /etc/ssh/%u.keys", None),
    "keys by name, the second file": (KEYS + f"AuthorizedKeysFile none {SCRATCH}/%u.pub", None),
    "keys by number and a sign": (KEYS + f"AuthorizedKeysFile {SCRATCH}/%U%%", None),
    "keys by home": (KEYS + "AuthorizedKeysFile %h/.ssh/authorized_keys", None),
    "keys of others, prompts for alice": (
        KEYS + "AuthorizedKeysFile none\n"
        "Match User alice\nAuthenticationMethods keyboard-interactive", None),
    "a key or prompts, a block by port": (BASE + "Match LocalPort 2222\nX11Forwarding no", None),
    "prompts, and a block by port and domain": (
        BASE + "AuthenticationMethods keyboard-interactive\n"
        "Match LocalPort 2222 RDomain red\nX11Forwarding no", None),
    "an exception for others": (
        BASE + "AuthenticationMethods keyboard-interactive\n"
        "Match Address 192.0.2.0/24 User bob\nAuthenticationMethods publickey", None),
}


class Daemon(Sshd):
    """An sshd with the settings of /etc/ssh; it may refuse to start."""

    def __init__(self):
        self.directory = SCRATCH / "doctor-sshd"
        if not self.directory.exists():
            self.directory.mkdir()
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            self.directory / "host"], check=True)
            (self.directory / "alice").symlink_to(SCRATCH / "doctor-key")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(self.directory / "log", "w")
        options = [f"Port={self.port}", "ListenAddress=127.0.0.1", f"HostKey={self.directory}/host",
                   "PidFile=none", "StrictModes=no", "PrintMotd=no"]
        words = [word for option in options for word in ("-o", option)]
        self.process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", *PATIENT, *words],
                                        stderr=self.log)
        try:
            self._wait()
        except AssertionError:
            assert self.process.poll() is not None
        (self.directory / "known").unlink(missing_ok=True)

    @property
    def runs(self):
        return self.process.poll() is None

    def lets_in(self, code, *options):
        return self.runs and self.enter("alice", code, options=options)

    def enter(self, user, code, options=(), **more):
        return converse(self.command(user, *options), code, **more)[0]


# shows: no-keys
@pytest.mark.parametrize("name", CASES)
def test_sshd_does_what_doctor_said(healthy, name):  # noqa: F811
    settings, account = CASES[name]
    if account is not None and account.encode() not in Path(MODULE).read_bytes():
        pytest.skip(f"this module has no {account}")
    SSHD_CONFIG.write_text(settings + "\n")
    for name in ("alice.pub", "3001%"):
        shutil.copy(f"{healthy.key}.pub", SCRATCH / name)
    first = [] if account is None else [f"account required {healthy.module} {account}"]
    healthy.stack(*first, f"auth required {healthy.module} nodelay")
    said = doctor("--service", "sshd")
    daemon = Daemon()
    try:
        codes = iter(healthy.enrolled["alice"].backup_codes)
        without_key = ("-o", "PubkeyAuthentication=no")
        owner = daemon.lets_in(next(codes), *without_key) or daemon.lets_in(next(codes))
        thief = daemon.lets_in("000000", *without_key) or daemon.lets_in("000000")
    finally:
        daemon.stop()
    open_to_alice = any("alice" in who for who in said["inWithoutCode"])
    assert (thief, open_to_alice) in ((True, True), (False, False)), wrong(said)
    shut = any(who.startswith("everybody") or "alice" in who for who in said["lockedOut"])
    assert (owner, shut) in ((True, False), (False, True)), wrong(said)


# shows: no-keys
@pytest.mark.parametrize("asks", [True, False])
def test_who_has_no_password_is_out_where_sshd_asks_for_one(healthy, asks):  # noqa: F811
    SSHD_CONFIG.write_text(KEYS)
    lock("alice")(healthy)
    healthy.stack(f"auth required {healthy.module} nodelay")
    if not asks:
        path = Path("/etc/pam.d/sshd")
        path.write_text("".join(line for line in path.open() if not set(COMMON) & {line.strip()}))
    said = doctor("--service", "sshd")
    daemon = Daemon()
    try:
        is_in = daemon.lets_in(healthy.enrolled["alice"].backup_codes[0])
    finally:
        daemon.stop()
    assert is_in != asks
    assert any("alice" in who for who in said["lockedOut"]) == asks, wrong(said)


@pytest.fixture
def silent_home():
    """alice's home is on a file system whose server never answers."""
    place = Path("/mnt/silent")
    place.mkdir(exist_ok=True)
    server = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"silent", bytes(place), b"fuse", 0, options) != 0:
        pytest.skip(f"FUSE is not mounted here: {os.strerror(ctypes.get_errno())}")
    edit("/etc/passwd", lambda text: text.replace(":/home/alice:", f":{place}/alice:"))
    yield f"{place}/alice"
    edit("/etc/passwd", lambda text: text.replace(f":{place}/alice:", ":/home/alice:"))
    os.close(server)  # what waits for it fails
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="this kernel has no FUSE")
def test_a_home_that_does_not_answer_holds_nothing_up(healthy, silent_home):  # noqa: F811
    SSHD_CONFIG.write_text(KEYS)
    healthy.stack(f"auth required {healthy.module} nodelay")
    table = doctor("--service", "sshd")["access"]  # which gives up after a minute
    [row] = [row for row in table["accounts"] if row["user"] == "alice"]
    keys = [cell for cell in row["cells"] if table["ways"][cell["way"]]["service"] == "sshd"]
    assert {cell["verdict"] for cell in keys} == {"unseen"}, keys
    assert any(silent_home in str(cell) for cell in keys), keys
