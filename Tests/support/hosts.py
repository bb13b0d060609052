"""Real hosts on the private machine: accounts, sshd with the ssh client, sudo, su."""

import os
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pexpect

from support.sallyport import MODULE, REAL_ROOT
from support.typist import Child

SCRATCH = Path(os.environ["SALLYPORT_SCRATCH"])
PASSWORD = "correct horse"
UIDS = {"alice": 3001, "bob": 3002}
PAM_D = Path("/etc/pam.d")
# Read before any test has changed them.
DEBIAN = {path.name: path.read_bytes() for path in PAM_D.iterdir() if path.is_file()}
# The second one also as pam_oath words it.
AGAIN = "Not accepted. A code works once: wait for the next one, or use a backup code."
# Since OpenSSH 9.8 refusals shut our own address out; one before that does not know the keyword.
PATIENT = ["-oPerSourcePenalties=no"]
if subprocess.run(["/usr/sbin/sshd", "-G", "-f", "/dev/null", *PATIENT], capture_output=True,
                  check=False).returncode != 0:
    PATIENT = []
PROMPTS = ["[Pp]assword.*: ?$", r"(Verification code|Backup code|One-time password \(OATH\).*): ?$", "IN-42",
           pexpect.EOF]


def edit(path, change):
    """Rewrites a file of the private /etc in one go, owner and mode kept."""
    path = Path(path)
    path.write_text(change(path.read_text()))


def add_account(name, uid, password=PASSWORD):
    hashed = subprocess.run(["openssl", "passwd", "-6", "-salt", "x", "-stdin"], input=password,
                            text=True, capture_output=True, check=True).stdout.strip()
    edit("/etc/passwd", lambda text: f"{text}{name}:x:{uid}:{uid}:{name}:/home/{name}:/bin/sh\n")
    edit("/etc/group", lambda text: f"{text}{name}:x:{uid}:\n")
    edit("/etc/shadow", lambda text: f"{text}{name}:{hashed}:19000:0:99999:7:::\n")
    home = Path("/home", name)
    home.mkdir(exist_ok=True)
    if REAL_ROOT:
        os.chown(home, uid, uid)


def remove_account(name):
    for path in ("/etc/passwd", "/etc/group", "/etc/shadow"):
        edit(path, lambda text: re.sub(rf"^{name}:.*\n", "", text, flags=re.MULTILINE))


def service(name, *auth):
    """The stack of a host in the private /etc/pam.d; the account has to be in order too."""
    lines = [f"auth {line}" for line in auth]
    lines += ["account required pam_unix.so", "session required pam_permit.so"]
    Path("/etc/pam.d", name).write_text("\n".join(lines) + "\n")


def two_factors(*words):
    return ["required pam_unix.so nodelay", " ".join(["required", MODULE, "nodelay", *words])]


def become(name, *, effective=None):
    """In the child: a process of that user; `effective=0` as in su, which he has started."""
    uid = UIDS[name]

    def change():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid if effective is None else effective,
                     uid if effective is None else effective)
    return change


def as_user(name, *command):
    uid = str(UIDS[name])
    return ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "--reset-env", *command]


def converse(command, code, password=PASSWORD, **more):
    """Answers the prompts of a host; True if it let us in, and what it wrote."""
    child = Child(command, **more)
    try:
        written = ""
        while True:
            seen = child.expect(PROMPTS)
            written += child.before + (child.after if isinstance(child.after, str) else "")
            if seen == 3:
                child.wait()
                return "IN-42" in written, written
            if seen == 1 and AGAIN in child.before:
                child.answer("")  # one code is one login
            elif seen < 2:
                child.answer(password if seen == 0 else code)
    finally:
        child.close(force=True)


class Su:
    """su to `user`, started by bob."""

    caller, prefix = "bob", ()

    def enter(self, user, code, password=PASSWORD, **more):
        command = as_user(self.caller, *self.prefix, "su", user, "-c", "echo IN-$((6*7))")
        return converse(command, code, password, **more)[0]


class Sudo(Su):
    """sudo by `user`: his own code is asked for."""

    def enter(self, user, code, password=PASSWORD, **more):
        command = as_user(user, *self.prefix, "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")
        return converse(command, code, password, **more)[0]


class Sshd:
    """An sshd of our own on a free port of 127.0.0.1, and the real client on a pseudo-terminal."""

    def __init__(self, methods, settings=None, use_dns="no"):
        """`settings`: what is set about authentication, in place of what `methods` need."""
        self.directory = Path(tempfile.mkdtemp(prefix="sshd-", dir=SCRATCH))
        self.directory.chmod(0o755)
        for key in ("host", "alice"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / key],
                           check=True)
        authorized = self.directory / "authorized_keys"
        authorized.write_text((self.directory / "alice.pub").read_text())
        authorized.chmod(0o644)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = self.directory / "config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.directory}/host\nPidFile none\n"
            f"AuthorizedKeysFile {authorized}\n"
            f"PermitRootLogin no\nStrictModes no\nPrintMotd no\nUseDNS {use_dns}\nMaxStartups 100\nLogLevel VERBOSE\n"
            + (settings or
               f"UsePAM yes\nKbdInteractiveAuthentication yes\n"
               f"PasswordAuthentication {'yes' if methods == 'password' else 'no'}\n"
               f"AuthenticationMethods {methods}\n"))
        self.log = open(self.directory / "log", "w")
        command = ["/usr/sbin/sshd", "-D", "-e", *PATIENT, "-f", config]
        self.process = subprocess.Popen(command, stderr=self.log)
        self._wait()

    def _wait(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self.directory / "log").read_text())

    def command(self, user, *more):
        return ["ssh", "-F", "none", "-p", str(self.port), "-i", str(self.directory / "alice"), *more,
                "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
                "-o", "LogLevel=ERROR", "-o", f"UserKnownHostsFile={self.directory}/known",
                "-o", "NumberOfPasswordPrompts=1", f"{user}@127.0.0.1", "echo IN-$((6*7))"]

    def enter(self, user, code, password=PASSWORD, **more):
        return converse(self.command(user), code, password, **more)[0]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
