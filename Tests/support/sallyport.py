"""The command, its stores, and codes from an independent peer (oathtool)."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.codes import hotp, totp

COMMAND = os.environ["SALLYPORT_COMMAND"]
MODULE = os.environ["SALLYPORT_MODULE"]
REPOSITORY = Path(os.environ["SALLYPORT_REPOSITORY"])
REAL_ROOT = os.environ["SALLYPORT_REAL_ROOT"] == "0"
DEFAULT_STORE = Path("/var/lib/sallyport")
handed_out = []  # every secret and backup code of the running test


def sallyport(*arguments, typed=None, **more):
    """Runs the command; never raises for its exit status."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], input=typed, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL if typed is None else None, **more)


@dataclass
class Enrollment:
    user: str
    secret: str
    type: str
    algorithm: str
    digits: int
    period: int
    counter: int
    uri: str
    backup_codes: list = field(default_factory=list)

    def codes(self, count, at=None, counter=None):
        """`count` codes of successive steps (or counters), by oathtool."""
        if self.type == "totp":
            return totp(self.secret, count, at, self.algorithm, self.digits, self.period)
        return hotp(self.secret, count, self.counter if counter is None else counter, self.digits)

    def code(self, at=None, counter=None):
        return self.codes(1, at, counter)[0]

    def wrong(self, at=None):
        """A well-formed code that no accepted step has, nor is it a slip of one."""
        now = time.time() if at is None else at
        good = set(self.codes(41, now - 20 * (self.period or 30)) if self.type == "totp"
                   else self.codes(200, counter=0))
        return unlike(good, self.digits)


def unlike(codes, digits=6):
    """A well-formed code that is none of these, nor a slip of one."""
    return next(text for n in range(1000, 2000)
                if (text := f"{n * 7919 % 10 ** digits:0{digits}}") not in codes
                and not any(is_slip(text, code) for code in codes))


def is_slip(typed, code):
    """One digit is another, or two neighbouring ones are swapped."""
    changed = [n for n, (a, b) in enumerate(zip(typed, code)) if a != b]
    return len(changed) == 1 or len(changed) == 2 and changed[1] == changed[0] + 1 and (
        typed[changed[0]], typed[changed[1]]) == (code[changed[1]], code[changed[0]])


def first_code(text):
    """The first code of the secret that a text shows."""
    secret = re.search(r"secret=([A-Z2-7]+)", text)[1]
    handed_out.append(secret)
    return (hotp(secret) if "otpauth://hotp/" in text else totp(secret))[0]


class Store:
    def __init__(self, directory):
        self.directory = Path(directory)

    def enroll(self, user="alice", secret=None, **options):
        """Enrolls with --no-confirm; option names as the command's, `_` for `-`."""
        options = {"name": "phone", "allow_missing": True, "force": True} | options
        return self._make("enroll", user, secret, options)

    def add(self, name, user="alice", secret=None, **options):
        """A further authenticator; as `enroll`, without backup codes."""
        return self._make("add", user, secret, {"name": name, "force": True} | options)

    def _make(self, verb, user, secret, options):
        arguments = [verb, "--user", user, "--no-confirm", "--json", "--store", self.directory]
        for key, value in options.items():
            if value is not False:
                arguments.append("--" + key.replace("_", "-"))
                if value is not True:
                    arguments.append(value)
        if secret is not None:
            arguments += ["--secret-from", "-"]
        done = sallyport(*arguments, typed=secret)
        assert done.returncode == 0, f"{verb}: {done.returncode}: {done.stderr}"
        said = json.loads(done.stdout)
        backup_codes = said.get("backupCodes", [])
        handed_out.extend([said["secret"], *backup_codes])
        facts = said["authenticator"]
        return Enrollment(
            said["user"], said["secret"], facts["type"], facts["algorithm"], facts["digits"],
            facts.get("period"), facts.get("counter"), said["uri"], backup_codes)

    def remove(self, name, user="alice"):
        done = sallyport("remove", "--user", user, "--name", name, "--force", "--store", self.directory)
        assert done.returncode == 0, done.stderr

    def regenerate(self, user="alice"):
        """Fresh backup codes."""
        done = sallyport("backup-codes", "--regenerate", "--user", user, "--json",
                         "--store", self.directory)
        assert done.returncode == 0, done.stderr
        codes = json.loads(done.stdout)["backupCodes"]
        handed_out.extend(codes)
        return codes

    def give_pass(self, *words, user="alice"):
        """A fresh pass."""
        done = sallyport("pass", user, *words, "--json", "--store", self.directory)
        assert done.returncode == 0, done.stderr
        code = json.loads(done.stdout)["pass"]
        handed_out.append(code)
        return code

    def unlock(self, user="alice"):
        done = sallyport("unlock", "--user", user, "--store", self.directory)
        assert done.returncode == 0, done.stderr

    def status(self, user="alice"):
        done = sallyport("status", "--user", user, "--json", "--store", self.directory)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def of(self, user="alice"):
        return self.directory / "users" / user

    def enrollment(self, user="alice"):
        return self.of(user) / "enrollment"

    def state(self, user="alice"):
        return self.of(user) / "state"


class Services:
    """A directory of PAM services for pam_start_confdir and pam_wrapper."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.write("other", "auth required pam_deny.so", "account required pam_deny.so")

    def write(self, name, *lines):
        (self.directory / name).write_text("\n".join(lines) + "\n")

    def code(self, name, store, *words):
        """A service with nothing but our line (and an account phase that says yes)."""
        self.write(name, our_line(store, *words), "account required pam_permit.so")


def our_line(store, *words, control="required"):
    place = [] if store is None else [f"store={store.directory}"]
    return " ".join(["auth", control, MODULE, *place, *words])


def aligned_now(ahead=3600):
    """A time at the edge of a 300-second step, `ahead` of the real clock and all that is stored."""
    return (int(time.time()) // 300 + 1) * 300 + ahead


def reason(lines):
    """The reason in the one refusal among `lines`, or None."""
    words = [word for line in lines for word in line.text.split() if word.startswith("reason=")]
    assert len(words) <= 1, lines
    return words[0].removeprefix("reason=") if words else None
