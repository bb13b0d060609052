"""Power cuts: what was accepted stays used, and every enrollment is whole, the old or the new."""

import json
import shutil
import subprocess
import time
from collections import Counter
from typing import NamedTuple

from account_faults import KEY, raw
from disks import KINDS, Cutter, MountFailed, RecordedDisk
from modules import BASE32, SECRET, code
from support.pam_driver import AUTH_ERR, LIVE, SUCCESS, Driver
from record import when
from support.sallyport import sallyport
from subjects import USER, Answers, result_of, wrong_code

OTHER = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
OTHER_BYTES = b"12345678901234567890"
KEPT = 3  # this number of the answers accepted last are tried again
CLAIMS = 3  # of a pass that enrolls
ACCOUNTS = ("daemon", "bin", "games", "man", "lp", "mail", "news", "nobody")  # on any machine


class Entered(NamedTuple):
    """An answer that was accepted, and the moment at which PAM_SUCCESS was seen."""

    at: int
    answer: str
    moment: int


class Changing(NamedTuple):
    """A verb, or a login with a pass, that ran between two moments; after it this secret is
    right, and before it that of the one before."""

    user: str
    begun: int
    ended: int
    secret: bytes


class Claimed(NamedTuple):
    """A pass that enrolls, and the moment at which its last claim was accepted."""

    user: str
    code: str
    moment: int


def wanted(changes, moment):
    """Which results the codes of these changes of one user, one of each, may have after the cut."""
    old, new = [SUCCESS, AUTH_ERR], [AUTH_ERR, SUCCESS]
    if len(changes) == 1:
        return [[SUCCESS]]
    if moment < changes[1].begun:
        return [old]
    return [new] if moment >= changes[1].ended else [old, new]


class Cuts:
    def __init__(self, setting, kind, logins):
        self.setting, self.kind = setting, kind
        self.dice = setting.dice("power", kind)
        directory = setting.place(f"power-{kind.replace(' ', '-')}")
        self.directory, self.disk = directory, RecordedDisk(directory, kind)
        self.subject = setting.kind(self.disk.place)
        self.now = int(time.time())
        self.at = self.now // 600 * 600 + 3600
        self.answers = Answers(self.subject, "totp", self.at)
        self.entered, self.changes, self.claimed = [], [], []
        self.spans = []  # in which something was changed: two moments
        if not setting.ours:  # whose enrollment is long ago, and on the disk
            subprocess.run(["sync", "-f", self.disk.place], check=True)
        self.log_in(logins)
        if setting.ours:
            self.change(logins // 4)
            self.replace()
        self.end = self.disk.written

    def log_in(self, count):
        with Driver(self.subject.services(self.directory / "pam.d")) as driver:
            backup = self.answers.codes or self.codes()
            for turn in range(count):
                at, answer = self.answers.next()
                if turn % 10 == 9 and backup:
                    answer = backup.pop()
                result = result_of(driver, USER, answer, at)
                assert result == SUCCESS, result
                self.entered.append(Entered(at, answer, self.disk.written))

    def codes(self):
        if self.setting.ours:
            return self.subject.more_codes(USER, self.at)
        return []

    def change(self, count):
        """Users enrolled, then enrolled again: at every moment one of the two secrets is right."""
        for turn in range(count):
            self.enroll(f"user{turn}", BASE32, SECRET)
            self.enroll(f"user{turn}", OTHER, OTHER_BYTES, "--force")

    def enroll(self, user, text, secret, *more):
        begun = self.disk.written
        self.command("enroll", "--user", user, "--allow-missing", "--no-confirm", "--secret-from",
                     "-", *more, typed=text)
        self.changes.append(Changing(user, begun, self.disk.written, secret))

    def command(self, *words, **more):
        done = sallyport(*words, "--json", "--store", self.subject.root, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def replace(self):
        """Users whose phones a login with a pass replaces; of one it is only claimed."""
        services = self.subject.services(self.directory / "replacing.pam")
        line = self.subject.line()
        services.write("sshd", f"auth {line} enroll", f"account {line}",
                       "account required pam_permit.so")
        with Driver(services) as driver:
            for user in ACCOUNTS:
                self.enroll(user, BASE32, SECRET)
                begun = self.disk.written
                given = self.command("pass", user, "--enroll")["pass"]
                self.spans.append((begun, self.disk.written))
                if user == ACCOUNTS[-1]:
                    results = [self.log_in_by(driver, user, given)[0] for _ in range(CLAIMS)]
                    assert results == [[SUCCESS]] * CLAIMS, results
                    self.claimed.append(Claimed(user, given, self.disk.written))
                    continue
                begun = self.disk.written
                results, secret = self.log_in_by(driver, user, given, "y", LIVE, "")
                assert results == [SUCCESS] * 2, results
                self.changes.append(Changing(user, begun, self.disk.written, secret))

    def log_in_by(self, driver, user, *typed):
        """The results of the phases, and the secret that was shown, if any was."""
        shown = []

        def live(uri):
            shown.append(raw(uri))
            return code(self.now, shown[0])
        driver.send("sshd", user, *typed, at=self.now, rhost="192.0.2.7", sets=KEY,
                    phases=("auth", "acct") if len(typed) > 1 else ("auth",))
        return driver.verdict(live).results, *shown

    def moments(self, most):
        """Right after each success, and any time; in their order."""
        right_after = [one.moment for one in self.entered]
        # Not before the enrollment of our user is there: at the first success it is.
        any_time = [self.dice.randrange(right_after[0], self.end) for _ in right_after]
        chosen = self.dice.sample(right_after, min(most, len(right_after)))
        spans = self.spans + [(one.begun, one.ended) for one in self.changes]
        during = [self.dice.randint(*span) for span in spans]
        return sorted(chosen + self.dice.sample(any_time, min(most, len(any_time)))
                      + self.dice.sample(during, min(most, len(during))))

    def examine(self, section, cutter, moment, variant):
        label = f"{self.kind}, cut at {moment}, {variant}"
        try:
            cutter.mounted(moment, variant, self.dice)
        except MountFailed as error:
            return section.case(label, ("the file system is broken", str(error)))
        try:
            subject = self.setting.kind(cutter.place)
            services = subject.services(self.directory / "after.pam")
            with Driver(services) as driver:
                section.case(label, *self.used_stays_used(driver, moment),
                             *self.claims_stay(driver, moment),
                             self.next_one(driver, subject), *self.wholes(driver, subject, moment))
        finally:
            cutter.unmount()

    def used_stays_used(self, driver, moment):
        before = [one for one in self.entered if one.moment <= moment]
        for one in before[-KEPT:]:
            result = result_of(driver, USER, one.answer, one.at)
            if result == SUCCESS:
                yield "accepted twice", f"{one.answer}, accepted {one.moment} bytes into the record"
            elif result != AUTH_ERR:
                yield "locked out", f"{result} for a used code"

    def claims_stay(self, driver, moment):
        """A pass that was claimed as often as it may be is good for no further login."""
        for one in self.claimed:
            if one.moment <= moment:
                result = result_of(driver, one.user, one.code, self.now)
                yield when(result != AUTH_ERR, "claimed once more", f"{one.user}: {result}")

    def next_one(self, driver, subject):
        """The owner gets in at the end of all times that the test knows."""
        at = self.answers.at + 6000
        result = result_of(driver, USER, code(at), at)
        left = ", ".join(path.name for path in subject.root.iterdir())
        return when(result != SUCCESS, "locked out", f"{result}; there are: {left}")

    def wholes(self, driver, subject, moment):
        at = self.answers.at + 6000
        for user in dict.fromkeys(one.user for one in self.changes if one.begun <= moment):
            mine = [one for one in self.changes if one.user == user]
            is_past = mine[-1].ended < moment and user not in ACCOUNTS
            if moment < mine[0].ended or (is_past and self.dice.random() > 0.1):
                continue  # not enrolled for sure yet, or long past
            # A torn save of the state counts every code up to the next login as used.
            result_of(driver, user, wrong_code(at - 600), at - 600)
            results = [result_of(driver, user, code(at, one.secret), at) for one in mine]
            if results not in wanted(mine, moment):
                yield "half an enrollment", f"{user}: {results}"


def run(section, setting):
    logins, most = (60, 15) if setting.short else (200, 30)
    seen = Counter()
    for kind in KINDS:
        start = time.monotonic()
        try:
            cuts = Cuts(setting, kind, logins)
        except MountFailed as error:
            section.skip(f"{kind}: {error}")
            continue
        cuts.disk.close()  # no file system is mounted twice
        cutter = Cutter(cuts.disk)
        moments = cuts.moments(most)
        for moment in moments:
            for variant in Cutter.VARIANTS:
                cuts.examine(section, cutter, moment, variant)
        cutter.close()
        shutil.rmtree(cuts.directory)
        seen[kind] = len(moments)
        section.note(f"{kind}: {logins} logins, {len(cuts.changes)} enrolls, cut at {len(moments)} "
                     f"moments in {len(Cutter.VARIANTS)} ways, {time.monotonic() - start:.0f} s")
