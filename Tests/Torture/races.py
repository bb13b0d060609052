"""Many at once: what happened is written down, and must fit some order of one after the other."""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from typing import NamedTuple

from modules import BASE32, code
from pam_driver import AUTH_ERR, SUCCESS, Crowd, Driver, HostDied
from sallyport import sallyport
from subjects import SERVICE, USER, Answers, Ours, result_of

CROWD = 64
# Base32 and its bytes: an authenticator each.
SECRETS = {name: (text, bytes_) for name, text, bytes_ in (
    ("first", BASE32, None),
    ("second", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", b"12345678901234567890"),
    ("third", "MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U", b"abcdefghijklmnopqrst"))}


def code_of(name, at):
    secret = SECRETS[name][1]
    return code(at) if secret is None else code(at, secret)


class Event(NamedTuple):
    """Something that was tried: from before it began to after it had ended, in seconds."""

    what: str  # login | the verb
    name: str  # the authenticator, or the set of backup codes
    answer: str
    result: str
    begun: float
    ended: float


def same_answer(section, setting, kind, rounds):
    """64 processes, one answer."""
    subject = setting.kind(setting.place(f"races-{kind}"))
    answers = Answers(subject, kind, int(time.time()) // 600 * 600 + 3600)
    slowest, entered = 0.0, Counter()
    with Crowd(subject.services(setting.scratch / f"races-{kind}.pam"), CROWD) as crowd:
        for turn in range(rounds):
            at, answer = answers.next()
            logins = crowd.race([((SERVICE, USER, answer), {"at": at})] * CROWD)
            found = Counter(login.result for login in logins)
            slowest = max([slowest, *(login.seconds for login in logins)])
            entered[found[SUCCESS]] += 1
            others = {result: count for result, count in found.items() if result not in (SUCCESS, AUTH_ERR)}
            section.case(
                f"{kind}, {CROWD} at once, round {turn}",
                ("accepted twice", f"{found[SUCCESS]} of {CROWD}") if found[SUCCESS] > 1 else None,
                ("locked out", "nobody got in") if found[SUCCESS] == 0 else None,
                ("trouble", str(others)) if others else None)
            if kind == "hotp":
                subject.forgive(USER)
    damage, litter = subject.damage(), subject.litter()
    section.case(f"{kind}, the files afterwards", ("damage", damage) if damage else None,
                 ("litter", ", ".join(litter[:3])) if litter else None)
    section.note(f"{kind}: {rounds} rounds of {CROWD}: entered {dict(entered)}, slowest {slowest:.2f} s")


def signalled(section, setting, rounds):
    """Of 24 processes with one code some are killed or stopped for a while, at any moment."""
    subject = setting.kind(setting.place("races-signals"))
    answers = Answers(subject, "totp", int(time.time()) // 600 * 600 + 3600)
    dice, seen = setting.dice("signals"), Counter()
    services = subject.services(setting.scratch / "races-signals.pam")
    for turn in range(rounds):
        at, answer = answers.next()
        victims = dice.sample(range(24), 12)
        with Crowd(services, 24) as crowd:
            crowd.wait_at_prompts([((SERVICE, USER, answer), {"at": at})] * 24)
            crowd.release()
            for victim in victims[:8]:
                os.kill(crowd.drivers[victim].process.pid, signal.SIGKILL)
            for word in (signal.SIGSTOP, signal.SIGCONT):
                for victim in victims[8:]:
                    os.kill(crowd.drivers[victim].process.pid, word)
            results = Counter(verdict_of(driver) for driver in crowd.drivers)
        with Driver(services) as driver:
            again = result_of(driver, USER, answer, at)
            at, answer = answers.next()
            later = result_of(driver, USER, answer, at)
        seen.update(results)
        successes = results[SUCCESS] + (again == SUCCESS)
        section.case(
            f"signals, round {turn}",
            ("accepted twice", f"{successes} times") if successes > 1 else None,
            ("locked out", f"the next code: {later}") if later != SUCCESS else None)
    section.note(f"24 at once, 8 killed, 4 stopped for a while, {rounds} rounds: {dict(seen)}")


def verdict_of(driver):
    try:
        return driver.verdict().result
    except HostDied:
        return "died"


class Managed:
    """Six hosts log in without pause while verbs change the same user; all of it written down."""

    LOGINS = 6

    def __init__(self, setting):
        self.setting = setting
        self.subject = Ours(setting.place("races-managed"))
        self.store, self.events, self.over = self.subject.store, [], threading.Event()
        self.services = self.subject.services(setting.scratch / "races-managed.pam")
        self.step = int(time.time()) // 600 * 600 + 3600
        self.backup = {}  # code: its set
        self.store.enroll("bystander")
        self._next = threading.Lock()

    def note(self, what, name, answer, play):
        begun = time.monotonic()
        result = play()
        self.events.append(Event(what, name, answer, result, begun, time.monotonic()))
        return result

    def log_in(self, number):
        dice = self.setting.dice("managed", str(number))
        with Driver(self.services) as driver:
            while not self.over.is_set():
                with self._next:
                    self.step += 30 * dice.choice((0, 0, 1))
                    at = self.step
                    backup = list(self.backup.items())
                if backup and dice.random() < 0.1:
                    answer, name = dice.choice(backup)
                else:
                    name = dice.choice(list(SECRETS))
                    answer = code_of(name, at)
                self.note("login", name, answer, lambda: self.one_login(driver, answer, at))

    def one_login(self, driver, answer, at):
        """The result; with the log's word for it where it is trouble."""
        result = result_of(driver, USER, answer, at)
        if result in (SUCCESS, AUTH_ERR):
            return result
        self.setting.sink.flush()
        said = [line.text for line in self.setting.sink.lines if line.pid == driver.process.pid]
        return f"{result}: {said[-1] if said else 'nothing in the log'}"

    def verb(self, what, name, *words, typed=None):
        def play():
            done = sallyport(*words, "--store", self.store.folder, typed=typed)
            self.said = done.stdout
            return f"exit {done.returncode}" + (f" {done.stderr.strip()}" if done.returncode else "")
        return self.note(what, name, "", play)

    def manage(self, rounds):
        fresh = ["--no-confirm", "--json", "--secret-from", "-"]
        for turn in range(rounds):
            self.verb("enroll", "first", "enroll", "--user", USER, "--force", "--allow-missing",
                      *fresh, typed=SECRETS["first"][0])
            self.verb("add", "second", "add", "--user", USER, "--name", "second", "--force", *fresh,
                      typed=SECRETS["second"][0])
            self.verb("add", "third", "add", "--user", USER, "--name", "third", "--force", *fresh,
                      typed=SECRETS["third"][0])
            self.regenerate(turn)
            self.verb("remove", "second", "remove", "--user", USER, "--name", "second", "--force")
            self.verb("unlock", "", "unlock", "--user", USER)
            self.verb("remove", "third", "remove", "--user", USER, "--name", "third", "--force")
            if turn % 3 == 2:
                self.verb("unenroll", "", "unenroll", "--user", USER, "--force")

    def regenerate(self, turn):
        result = self.verb("regenerate", f"codes {turn}", "backup-codes", "--regenerate", "--user", USER,
                           "--json")
        if result == "exit 0":
            with self._next:
                self.backup |= {text: f"codes {turn}" for text in json.loads(self.said)["backupCodes"]}

    def play(self, rounds):
        logins = [threading.Thread(target=self.log_in, args=(number,)) for number in range(self.LOGINS)]
        try:
            for one in logins:
                one.start()
            self.manage(rounds)
        finally:
            self.over.set()
            for one in logins:
                one.join()
        self.events.sort(key=lambda event: event.begun)


class Life(NamedTuple):
    """Of an authenticator or a set of codes: the verbs that made it and ended it."""

    birth: Event
    end: Event | None

    def may_hold(self, event):
        return event.ended > self.birth.begun and (self.end is None or event.begun < self.end.ended)

    def holds(self, event):
        return event.begun > self.birth.ended and (self.end is None or event.ended < self.end.begun)


def lives_of(events):
    """{authenticator or set of codes: its lives}, as the verbs tell."""
    lives, living = defaultdict(list), {}
    for event in events:
        if event.what in ("login", "unlock") or event.result != "exit 0":
            continue
        ended = {"remove": [event.name], "add": [],
                 "regenerate": [name for name in living if name.startswith("codes")]}
        for name in ended.get(event.what, list(living)):
            lives[name].append(Life(living.pop(name), event))
        if event.what in ("enroll", "add", "regenerate"):
            living[event.name] = event
    for name, birth in living.items():
        lives[name].append(Life(birth, None))
    return lives


def judge(section, events):
    """No answer entered twice in one life of its authenticator, none before or after all lives."""
    lives, accepted = lives_of(events), defaultdict(list)
    for event in events:
        if event.what != "login":
            failed = event.result != "exit 0"
            section.case(f"{event.what} {event.name}", ("a verb failed", event.result) if failed else None)
            continue
        entered = event.result == SUCCESS
        gone = entered and not any(life.may_hold(event) for life in lives[event.name])
        section.case(f"a login with {event.name}",
                     ("accepted after its end", str(event)) if gone else None,
                     None if entered or event.result == AUTH_ERR else ("trouble", event.result))
        if entered:
            accepted[event.name, event.answer].append(event)
    for (name, answer), found in accepted.items():
        possible = [life for life in lives[name] if any(map(life.may_hold, found))]
        twice = len(found) > len(possible) or any(
            sum(map(life.holds, found)) > 1 for life in possible)
        section.case(f"{answer} of {name}", ("accepted twice", str(found)) if twice else None)
    return sum(map(len, accepted.values()))


def two_enrolls(section, setting, rounds):
    """Two at once: one enrolls, the other is told that somebody is enrolled; or force, and one stays."""
    subject = Ours(setting.place("races-enroll"))
    services = subject.services(setting.scratch / "races-enroll.pam")
    at = int(time.time()) // 600 * 600 + 3600
    fresh = ["--no-confirm", "--json", "--allow-missing", "--secret-from", "-"]
    with Driver(services) as driver:
        for turn in range(rounds):
            force = ["--force"] if turn % 2 else []
            user = f"user{turn}"
            running = [subprocess.Popen(
                [os.environ["SALLYPORT_COMMAND"], "enroll", "--user", user, *force, *fresh, "--store",
                 str(subject.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True) for _ in range(2)]
            for process, name in zip(running, ("first", "second")):
                process.stdin.write(SECRETS[name][0])
                process.stdin.close()
            exits = sorted(process.wait() for process in running)
            for process in running:
                process.stdout.close()
                process.stderr.close()
            results = sorted(result_of(driver, user, code_of(name, at), at)
                             for name in ("first", "second"))
            # Whom the second found not enrolled, and then enrolled, it leaves as he is.
            wanted = ([0, 0], [0, 73]) if force else ([0, 73],)
            section.case(f"two enrolls{' --force' if force else ''}, round {turn}",
                         None if exits in wanted else ("exit status", str(exits)),
                         None if results == [AUTH_ERR, SUCCESS] else ("not one of two", str(results)))
    litter = subject.litter()
    section.case("two enrolls, the files", ("litter", str(litter)) if litter else None)


def run(section, setting):
    rounds = {"totp": 40, "hotp": 20, "backup": 40}
    for kind in setting.kind.kinds:
        same_answer(section, setting, kind, 8 if setting.short else rounds[kind])
    signalled(section, setting, 10 if setting.short else 60)
    if not setting.ours:
        return section.skip("the commands are ours: logins during changes are not raced")
    two_enrolls(section, setting, 10 if setting.short else 60)
    managed = Managed(setting)
    managed.play(4 if setting.short else 40)
    entered = judge(section, managed.events)
    verbs = Counter(event.what for event in managed.events)
    section.note(f"managed meanwhile: {dict(verbs)}, {entered} logins entered")
    assert entered > 0
