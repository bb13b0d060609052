"""Power cuts: what was accepted stays used, and every enrollment is whole, the old or the new."""

import shutil
import subprocess
import time
from collections import Counter
from typing import NamedTuple

from disks import KINDS, Cutter, MountFailed, RecordedDisk
from modules import BASE32, code
from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from record import when
from support.sallyport import sallyport
from subjects import USER, Answers, result_of

OTHER = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
OTHER_BYTES = b"12345678901234567890"
KEPT = 3  # this number of the answers accepted last are tried again


class Entered(NamedTuple):
    """An answer that was accepted, and the moment at which PAM_SUCCESS was seen."""

    at: int
    answer: str
    moment: int


class Changing(NamedTuple):
    """A verb that ran between two moments; before and after it one of two secrets is right."""

    user: str
    begun: int
    ended: int


class Cuts:
    def __init__(self, setting, kind, logins):
        self.setting, self.kind = setting, kind
        self.dice = setting.dice("power", kind)
        directory = setting.place(f"power-{kind.replace(' ', '-')}")
        self.directory, self.disk = directory, RecordedDisk(directory, kind)
        self.subject = setting.kind(self.disk.place)
        self.at = int(time.time()) // 600 * 600 + 3600
        self.answers = Answers(self.subject, "totp", self.at)
        self.entered, self.changes = [], []
        if not setting.ours:  # whose enrollment is long ago, and on the disk
            subprocess.run(["sync", "-f", self.disk.place], check=True)
        self.log_in(logins)
        if setting.ours:
            self.change(logins // 4)
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
            user = f"user{turn}"
            for secret, more in ((BASE32, []), (OTHER, ["--force"])):
                begun = self.disk.written
                done = sallyport(
                    "enroll", "--user", user, "--allow-missing", "--no-confirm", "--json",
                    "--secret-from", "-", *more, "--store", self.subject.root, typed=secret)
                assert done.returncode == 0, done.stderr
                self.changes.append(Changing(user, begun, self.disk.written))

    def moments(self, most):
        """Right after each success, and any time; in their order."""
        right_after = [one.moment for one in self.entered]
        # Not before the enrollment of our user is there: at the first success it is.
        any_time = [self.dice.randrange(right_after[0], self.end) for _ in right_after]
        chosen = self.dice.sample(right_after, min(most, len(right_after)))
        during = [self.dice.randint(one.begun, one.ended) for one in self.changes]
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
            if moment < mine[0].ended or (mine[-1].ended < moment and self.dice.random() > 0.1):
                continue  # not enrolled for sure yet, or long past
            results = [result_of(driver, user, text, at)
                       for text in (code(at), code(at, OTHER_BYTES))]
            wanted = ([AUTH_ERR, SUCCESS],) if moment >= mine[1].ended else (
                [SUCCESS, AUTH_ERR],) if moment < mine[1].begun else (
                [SUCCESS, AUTH_ERR], [AUTH_ERR, SUCCESS])
            if results not in wanted:
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
