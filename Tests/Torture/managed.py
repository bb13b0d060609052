"""Logins while verbs change the same user, with a history that is checked afterwards."""

import json
import threading
import time
from collections import defaultdict
from typing import NamedTuple

from modules import BASE32, SECRET, code
from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from record import when
from support.sallyport import sallyport
from subjects import USER, Ours, only_at, result_of

# Base32 and its bytes: an authenticator each.
SECRETS = {name: (text, bytes_) for name, text, bytes_ in (
    ("first", BASE32, SECRET),
    ("second", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", b"12345678901234567890"),
    ("third", "MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U", b"abcdefghijklmnopqrst"))}


def code_of(name, at):
    return code(at, SECRETS[name][1])


def only_its(name, at):
    """Whether the code of this authenticator and time is that of no other, nor of another time."""
    return only_at(at, SECRETS[name][1], *(secret for _, secret in SECRETS.values()))


class Event(NamedTuple):
    """Something that was tried: from before it began to after it had ended, in seconds."""

    what: str  # login | the verb
    name: str  # the authenticator, or the set of backup codes
    answer: str  # with its time where it has one: other times may have the same digits
    result: str
    begun: float
    ended: float


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
                    which = answer
                else:
                    name = dice.choice(list(SECRETS))
                    answer = code_of(name, at)
                    which = f"{answer} at {at}"
                    if not only_its(name, at):
                        continue
                self.note("login", name, which, lambda: self.one_login(driver, answer, at))

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
            done = sallyport(*words, "--store", self.store.directory, typed=typed)
            self.said = done.stdout
            reason = done.stderr.strip() if done.returncode else ""
            return f"exit {done.returncode} {reason}".rstrip()
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
        name = f"codes {turn}"
        result = self.verb("regenerate", name, "backup-codes", "--regenerate", "--user", USER,
                           "--json")
        if result == "exit 0":
            with self._next:
                self.backup |= dict.fromkeys(json.loads(self.said)["backupCodes"], name)

    def play(self, rounds):
        logins = [threading.Thread(target=self.log_in, args=(number,))
                  for number in range(self.LOGINS)]
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


def check(section, events):
    """No answer entered twice in one life of its authenticator, none before or after all lives."""
    lives, accepted = lives_of(events), defaultdict(list)
    for event in events:
        if event.what != "login":
            failed = event.result != "exit 0"
            section.case(f"{event.what} {event.name}",
                         when(failed, "a verb failed", event.result))
            continue
        entered = event.result == SUCCESS
        gone = entered and not any(life.may_hold(event) for life in lives[event.name])
        section.case(f"a login with {event.name}",
                     when(gone, "accepted after its end", str(event)),
                     when(not (entered or event.result == AUTH_ERR), "trouble", event.result))
        if entered:
            accepted[event.name, event.answer].append(event)
    for (name, answer), found in accepted.items():
        possible = [life for life in lives[name] if any(map(life.may_hold, found))]
        twice = len(found) > len(possible) or any(
            sum(map(life.holds, found)) > 1 for life in possible)
        section.case(f"{answer} of {name}", when(twice, "accepted twice", str(found)))
    return sum(map(len, accepted.values()))
