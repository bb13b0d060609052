"""Logins while users are imported, and account phases that enroll one user at once."""

import base64
import json
import re
import subprocess
import threading
import time
from collections import Counter, defaultdict
from typing import NamedTuple

import modules
from modules import code
from support.pam_driver import AUTH_ERR, LIVE, SUCCESS, Barrier, Driver, Reply
from record import when
from support.sallyport import COMMAND, MODULE, Services, sallyport
from subjects import PERIOD, Ours, only_at, result_of

LOGINS, OF_EACH, OTHERS = 6, 12, 300  # hosts; users of each kind; further users in the file
KEY = "SSH_AUTH_INFO_0=publickey ssh-ed25519 AAAA"


class Try(NamedTuple):
    """A login during an import, in seconds of the monotonic clock."""

    user: str
    secret: bytes
    step: int
    result: str
    begun: float
    ended: float


def secret_of(user, generation):
    return f"{user} of {generation} ".ljust(20, "x").encode()


class Imports:
    """One list for each round, imported while its users log in.

    Of its users some were imported before, and their last code was used at the other module since
    (caught up with); some are enrolled with another secret (left alone); some are new.
    """

    def __init__(self, setting):
        self.setting = setting
        self.subject = Ours(setting.place("races-import"))
        self.services = self.subject.services(setting.scratch / "races-import.pam")
        self.store, self.list = self.subject.store, setting.scratch / "races.oath"
        self.store.enroll("bystander")

    def write(self, lines):
        modules.put(self.list, "".join(lines))

    def importing(self):
        return subprocess.Popen(
            [COMMAND, "import", "pam-oath", self.list, "--allow-missing", "--json", "--store",
             self.store.directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def prepare(self, turn):
        """Their names; those of the first two kinds are enrolled afterwards."""
        self.users = {kind: [f"{kind}{turn}.{number}" for number in range(OF_EACH)]
                      for kind in ("caught", "alone", "new")}
        self.write(line(user, secret_of(user, "old"))
                   for user in self.users["caught"] + self.users["alone"])
        process = self.importing()
        process.communicate()
        assert process.returncode == 0, process.returncode
        self.step = int(time.time()) // PERIOD
        lines = [line(user, secret_of(user, "old"), self.step) for user in self.users["caught"]]
        lines += [line(user, secret_of(user, "file"))
                  for user in self.users["alone"] + self.users["new"]]
        lines += [line(f"other{turn}.{number}", secret_of(str(number), turn))
                  for number in range(OTHERS)]
        self.setting.dice("import", str(turn)).shuffle(lines)
        self.write(lines)

    def log_in(self, number, turn, over, tries):
        dice = self.setting.dice("imports", str(turn), str(number))
        with Driver(self.services) as driver:
            rest = 8  # and a few when it is over
            while rest > 0:
                rest -= over.is_set()
                kind = dice.choice(list(self.users))
                user = dice.choice(self.users[kind])
                secret = secret_of(user, "file" if kind == "new" else "old")
                if kind == "alone" and dice.random() < 0.1:
                    secret = secret_of(user, "file")
                step = self.step + dice.randrange(-4, 5)
                others = [secret_of(user, generation) for generation in ("old", "file")]
                if not only_at(step * PERIOD, secret, *others):
                    continue
                begun = time.monotonic()
                result = result_of(driver, user, code(step * PERIOD, secret), self.step * PERIOD)
                tries.append(Try(user, secret, step, result, begun, time.monotonic()))

    def play(self, turn):
        """(the report by user, the tries, when the import was over)."""
        self.prepare(turn)
        over, tries = threading.Event(), []
        hosts = [threading.Thread(target=self.log_in, args=(number, turn, over, tries))
                 for number in range(LOGINS)]
        for host in hosts:
            host.start()
        process = self.importing()
        said, _ = process.communicate()
        ended = time.monotonic()
        over.set()
        for host in hosts:
            host.join()
        report = {each["user"]: each["result"] for each in json.loads(said)["users"]}
        return report, tries, ended

    def check(self, section, turn, report, tries, ended):
        wanted = {"caught": {"brought-up-to-date", "already-imported"}, "alone": {"not-imported"},
                  "new": {"imported"}}
        for kind, users in self.users.items():
            odd = {user: report.get(user) for user in users if report.get(user) not in wanted[kind]}
            section.case(f"import {turn}, {kind}", when(odd, "another result", str(odd)))
        accepted = defaultdict(list)
        for one in tries:
            entered = one.result == SUCCESS
            stray = entered and (one.secret == secret_of(one.user, "file")) != (
                one.user in self.users["new"])
            late = (entered and one.user in self.users["caught"] and one.begun > ended
                    and one.step <= self.step)
            section.case(f"import {turn}, a login of {one.user}",
                         when(one.result not in (SUCCESS, AUTH_ERR), "trouble", one.result),
                         when(stray, "a secret that is not enrolled", str(one)),
                         when(late, "accepted, and used at the other module", str(one)))
            if entered:
                accepted[one.user].append(one)
        for user, found in accepted.items():
            steps = Counter(one.step for one in found)
            back = [(a, b) for a in found for b in found if a.ended < b.begun and b.step < a.step]
            section.case(f"import {turn}, {user}",
                         when(max(steps.values()) > 1, "accepted twice", str(found)),
                         when(back, "an earlier step after a later one", str(back)))
        return sum(map(len, accepted.values()))

    def afterwards(self, section, turn):
        """Everybody gets in with a code that nobody can have used."""
        step = self.step + 20
        with Driver(self.services) as driver:
            for kind, users in self.users.items():
                for user in users:
                    secret = secret_of(user, "file" if kind == "new" else "old")
                    result = result_of(driver, user, code(step * PERIOD, secret), step * PERIOD)
                    section.case(f"import {turn}, {user} afterwards",
                                 when(result != SUCCESS, "locked out", result))


def line(user, secret, used=None):
    """Of a users file; `used`: the step of its last code."""
    last = ""
    if used is not None:
        when_used = time.strftime("%Y-%m-%dT%H:%M:%SL", time.localtime(used * PERIOD))
        last = f"\t0\t{code(used * PERIOD, secret)}\t{when_used}"
    return f"HOTP/T30/6\t{user}\t-\t{secret.hex()}{last}\n"


def imports(section, setting, rounds):
    played, seen, entered = Imports(setting), 0, 0
    for turn in range(rounds):
        report, tries, ended = played.play(turn)
        entered += played.check(section, turn, report, tries, ended)
        played.afterwards(section, turn)
        seen += len(tries)
    litter = played.subject.litter()
    section.case("imports, the files", when(litter, "litter", ", ".join(litter[:3])))
    section.note(f"{rounds} imports of {3 * OF_EACH + OTHERS}: {entered} of {seen} logins entered")
    assert entered > 0


class DueAtOnce:
    """Sessions of one user who must enroll: one does, the others are told."""

    USER = "nobody"  # a real account

    def __init__(self, setting):
        place = setting.place("races-due")
        self.subject = Ours(place)
        self.subject.store.enroll("bystander")
        policy = place / "policy.conf"
        policy.write_text("[default]\nenrollment = required\n")
        ours = f"{self.subject.line()} conf={policy}"
        self.services = Services(place / "pam.d")
        self.services.write("sshd", f"auth {ours} enroll", f"account {ours}",
                            "account required pam_permit.so", f"session required {MODULE}",
                            "session required pam_permit.so")

    def play(self, count, at):
        """(logins, the secret that each was shown) of `count` sessions that type at once."""
        barrier, shown = Barrier(), {}
        drivers = [Driver(self.services, barrier) for _ in range(count)]
        for driver in drivers:
            driver.send("sshd", self.USER, "y", Reply("@" + LIVE.word), "", at=at, sets=KEY,
                        rhost="192.0.2.7", phases=("auth", "acct", "open"))
        for driver in drivers:
            driver.wait_for_prompt()

        def last(driver):
            def live(uri):
                text = re.search(r"secret=([A-Z2-7]+)", uri).group(1)
                shown[driver] = base64.b32decode(text)
                return code(at, shown[driver])
            logins[driver] = driver.verdict(live)
        logins = {}
        threads = [threading.Thread(target=last, args=(driver,)) for driver in drivers]
        for thread in threads:
            thread.start()
        barrier.release(count)
        for thread in threads:
            thread.join()
        for driver in drivers:
            driver.close()
        barrier.close()
        return [(logins[driver], shown[driver]) for driver in drivers]

    def examine(self, section, turn, count, at):
        played = self.play(count, at)
        done = [secret for login, secret in played if login.results == [SUCCESS] * 3]
        told = [login for login, _ in played
                if login.results[1:] == ["PAM_PERM_DENIED"] * 2
                and any("Log in again" in text for _, text in login.prompts)]
        again, later, strangers = [], [], []
        with Driver(self.services) as driver:
            def tried(secret, now):
                driver.send("sshd", self.USER, code(now, secret), at=now, rhost="192.0.2.7")
                return driver.verdict().result
            for _, secret in played:
                if secret in done:
                    again.append(tried(secret, at))
                    later.append(tried(secret, at + 600))
                else:
                    strangers.append(tried(secret, at + 600))
        half = sorted(path.name for path in (self.subject.root / "users" / self.USER).glob("*"))
        section.case(
            f"{count} account phases that enroll one user, round {turn}",
            when(len(done) != 1, "not one enrolled", str([one.results for one, _ in played])),
            when(len(told) != count - 1, "not told", str([one.results for one, _ in played])),
            when(SUCCESS in again, "accepted twice", str(again)),
            when(later != [SUCCESS], "locked out", str(later)),
            when(SUCCESS in strangers, "another secret enters", str(strangers)),
            when(half != ["enrollment", "state"], "half an enrollment", str(half)))
        sallyport("unenroll", "--user", self.USER, "--force", "--store", self.subject.root)


def due_at_once(section, setting, rounds):
    due, at = DueAtOnce(setting), int(time.time()) // 600 * 600 + 3600
    for turn in range(rounds):
        due.examine(section, turn, (2, 2, 6)[turn % 3], at)
    litter = due.subject.account_litter(due.USER)
    section.case("account phases at once, the files", when(litter, "litter", str(litter)))
    section.note(f"{rounds} times 2 or 6 account phases that enroll one user")
