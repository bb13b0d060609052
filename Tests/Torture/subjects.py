"""The modules under test: ours, and Debian's with the settings that their own manuals advise."""

import hmac
import os
import re
import shutil
import struct
import time
from functools import lru_cache
from pathlib import Path

import modules
from modules import BASE32, SECRET, code
from support.sallyport import MODULE, Services, Store, unlike

SERVICE, USER = "login", "alice"
PERIOD = 30
MONTH_OF_ACTS = re.compile(r"acts/[0-9]{4}-[0-9]{2}")


def counter_code(counter, secret=SECRET):
    """The code of RFC 4226."""
    digest = hmac.digest(secret, struct.pack(">Q", counter), "sha1")
    start = digest[-1] & 15
    return f"{(struct.unpack_from('>I', digest, start)[0] & 0x7fffffff) % 10 ** 6:06}"


kept_code = lru_cache(maxsize=1 << 14)(code)


def only_at(at, *secrets):
    """Whether the code of the first secret at this time is no other's: of none of them within the
    time steps that any login accepts. One pair in a million coincides, and would look like a code
    that is accepted twice: a run makes some hundred thousand."""
    answer = kept_code(at, secrets[0])
    near = [at + PERIOD * steps for steps in range(-12, 13)]
    return sum(kept_code(time, secret) == answer for time in near for secret in set(secrets)) == 1


def wrong_code(at):
    """No time step that any login accepts has it, nor is it a slip of one's."""
    return unlike({kept_code(at + PERIOD * steps, SECRET) for steps in range(-20, 21)})


def result_of(driver, user, answer, at):
    """One login; what the module does to the host is a case of its own."""
    driver.send(SERVICE, user, answer, at=at)
    return driver.verdict().result


class Answers:
    """Right answers of one user, each to be used once: (time of the login, what is typed)."""

    def __init__(self, subject, kind, now):
        self.subject, self.kind = subject, kind
        self.at, self.counter, self.codes = now, subject.first_counter, []
        self.enroll()

    def enroll(self):
        self.codes = self.subject.enroll(USER, self.kind, self.at)
        self.counter = self.subject.first_counter
        self.turns = 0

    def next(self):
        """One never asked for before. Ten minutes lie between two: no module's limit is felt."""
        self.at += 600
        self.turns += 1
        if self.kind == "totp":
            while not only_at(self.at, SECRET):
                self.at += 600
            return self.at, code(self.at)
        if self.kind == "hotp":
            if self.turns % 8 == 0:  # a replayed one is a wrong one, and is counted
                self.subject.forgive(USER)
            self.counter += 1
            return self.at, counter_code(self.counter - 1)
        if not self.codes:
            self.codes = self.subject.more_codes(USER, self.at)
        return self.at, self.codes.pop()


class Subject:
    """One module, its files in a directory of their own."""

    kinds = ("totp", "hotp")
    first_counter = 0

    def __init__(self, disk):
        self.disk = Path(disk)

    def services(self, directory, *words):
        made = Services(directory)
        made.write(SERVICE, " ".join(["auth", self.line(), *words]),
                   "account required pam_permit.so")
        return made

    def forgive(self, user):
        pass

    def fixed(self, answers, is_well):
        """What a fault has done to the files; they are made again where nobody gets in any more."""
        damage = self.damage()
        if damage is not None or not is_well:
            shutil.rmtree(self.root)
            answers.enroll()
        return damage

    def calls_it_wrong(self, log):
        """Whether a refusal with this in the log says that the code was wrong."""
        return True

    def age(self):
        """What a login was making lies ten minutes untouched: from then on commands wipe it."""
        for path in (Path(self.root) / "users").glob(".new-*"):
            os.utime(path, (time.time() - 700,) * 2)

    def litter(self):
        """Names below the directory that no login should have left. Acts are kept by month."""
        expected = self.expected()
        names = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return sorted(str(name) for name in names
                      if name not in expected and not MONTH_OF_ACTS.fullmatch(str(name)))

    def account_litter(self, user):
        """The same after account phases, which keep a good policy and that the user began to
        enroll."""
        return [name for name in self.litter()
                if not name.startswith("policy.good/") and name != f"reminders/{user}"]


class Ours(Subject):
    name, kinds = "sallyport", ("totp", "hotp", "backup")
    log = "pam_sallyport("

    def __init__(self, disk):
        super().__init__(disk)
        self.root = self.disk / "store"
        self.store = Store(self.root)

    def line(self):
        return f"required {MODULE} store={self.root} nodelay"

    def enroll(self, user, kind, now):
        secret = BASE32
        kind = "totp" if kind == "backup" else kind
        return self.store.enroll(user, secret=secret, type=kind).backup_codes

    def more_codes(self, user, now):
        return self.store.regenerate(user)

    def forgive(self, user):
        self.store.unlock(user)

    def expected(self):
        files = {Path(place, name) for name in ("enrollment", "state")
                 for place in ["decoy"] + [f"users/{path.name}" for path in
                                           (self.root / "users").glob("[!.]*")]}
        return files | {Path("machine")}  # which commands make, and no login

    def fixed(self, answers, is_well):
        return None  # the next right code, which is tried each time, tells

    def damage(self):
        """What is wrong with the files, or None."""
        done = self.store.status()
        return None if done["user"] == USER else str(done)


class GoogleAuthenticator(Subject):
    """Reuse forbidden and rate limited, as its own tool proposes; HOTP kinder than its default."""

    name, kinds = "google-authenticator", ("totp", "hotp", "backup")
    log = "pam_google_authenticator"
    first_counter = 1

    def __init__(self, disk):
        super().__init__(disk)
        self.bench = modules.GoogleAuthenticator(self.disk)
        self.root = self.bench.root

    def line(self):
        return self.bench.line() + " no_increment_hotp"

    def enroll(self, user, kind, now):
        self.bench.enroll([user], now)
        self.kind = kind
        if kind == "hotp":
            modules.put(self.root / user, f'{BASE32}\n" HOTP_COUNTER 1\n" WINDOW_SIZE 17\n', 0o400)
        return self.more_codes(user, now) if kind == "backup" else []

    def more_codes(self, user, now):
        self.bench.enroll([user], now)
        return [f"{10000000 + number * 7919}" for number in range(5)]

    def expected(self):
        return {Path(USER)}

    def calls_it_wrong(self, log):
        return log == "" or "Invalid verification code" in log

    def damage(self):
        path = self.root / USER
        text = path.read_text() if path.exists() else ""
        return None if text.startswith(BASE32 + "\n") else f"its file is now {text[:40]!r}"


class Oath(Subject):
    """One file for all users, the only way it has; another user beside ours."""

    name = "oath"
    log = "pam_oath"

    def __init__(self, disk):
        super().__init__(disk)
        self.bench = modules.Oath(self.disk)
        self.root = self.bench.root

    def line(self):
        return self.bench.line() + " window=10"

    def enroll(self, user, kind, now):
        self.root.mkdir(mode=0o700, exist_ok=True)
        what = "HOTP" if kind == "hotp" else f"HOTP/T{PERIOD}/6"
        lines = [f"{what}\t{name}\t-\t{SECRET.hex()}\n" for name in (user, "bystander")]
        modules.put(self.root / "users.oath", "".join(lines))
        return []

    def expected(self):
        return {Path("users.oath"), Path("users.oath.lock")}  # its lock file holds nothing

    def damage(self):
        path = self.root / "users.oath"
        text = path.read_text() if path.exists() else ""
        whole = text.count("\n") == 2 and text.count(SECRET.hex()) == 2
        return None if whole else f"its users file is now {text[:40]!r} of {len(text)} bytes"


SUBJECTS = {kind.name: kind for kind in (Ours, GoogleAuthenticator, Oath)}
