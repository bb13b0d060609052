"""People who log in while faults happen by chance: see Tests/Fleet/test_storm.py."""

import collections
import os
import random
import select
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

from support.codes import hotp, totp
from support.fleet import ACCEPTED, DATABASE_AWAY, QUESTION, REFUSED, TROUBLE, enrollment, with_backup_codes
from support.service import attempt, soon

SECONDS = int(os.environ.get("SALLYPORT_STORM", "40"))
SEED = int(os.environ.get("SEED", "11"))
BASE32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
WORKERS = 6
# After a loss was found: codes of an app are refused for five minutes, backup codes for fifteen; the counter of
# a token moves by ten.
APPS, BACKUP_CODES, MOVED = 300, 900, 10


class Clock:
    """The codes of time steps, each computed once."""

    def __init__(self):
        self.codes, self.lock = {}, threading.Lock()

    def now(self):
        step = int(time.time()) // 30
        with self.lock:
            if step not in self.codes:
                [self.codes[step]] = totp(BASE32, at=step * 30)
            return step, self.codes[step]


class Person:
    """What somebody has, and which of it was typed: how often each was accepted."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.accepted = collections.Counter()
        self.typed, self.next, self.rests = {}, 0, 0

    def text(self):
        if self.kind == "backup":
            return with_backup_codes(self.name, 0xB0, BACKUP)
        text = enrollment(self.name, BASE32)
        return text if self.kind == "totp" else text.replace(b"type = totp\nperiod = 30\n", b"type = hotp\n")

    def code(self, clock):
        """(position, code) of one that was not typed yet; None: there is none now."""
        if time.monotonic() < self.rests:
            return None
        if self.kind == "totp":
            position, code = clock.now()
            return None if position in self.typed else (position, code)
        known = COUNTED if self.kind == "hotp" else BACKUP
        return (self.next, known[self.next]) if self.next < len(known) else None

    def note(self, position, code, answers):
        """A counter goes on once the fleet has said something of its code; so does a list of backup codes, which
        lasts for the whole storm."""
        self.accepted[position] += answers.count(ACCEPTED)
        if self.kind == "totp" or ACCEPTED in answers or REFUSED in answers:
            self.typed[position] = code
            # A code that is typed again counts as a guess.
            self.rests = time.monotonic() + {"totp": 60, "hotp": 30, "backup": SECONDS / len(BACKUP)}[self.kind]
            self.next = max(self.next, position + 1)

    def good_since(self, storm):
        """From when on a right code of this kind has to be accepted."""
        wait = BACKUP_CODES if self.kind == "backup" else APPS if self.kind == "totp" else 0
        return storm.lost + wait if storm.lost else 0


COUNTED = hotp(BASE32, 2000)
BACKUP = [f"{number:04d}KMF2X9QD4TW0"[:16] for number in range(10)]


class Lines:
    """Kept lines to the verifiers, of each thread its own. Each person has one host, where they are known."""

    HOSTS = [f"storm{number}" for number in range(4)]

    def __init__(self):
        self._kept = threading.local()

    def type(self, verifier, name, code):
        """The answer; None: it is not known. It is never asked again by itself."""
        host = self.HOSTS[zlib.crc32(name.encode()) % len(self.HOSTS)]
        lines, key = self._kept.__dict__, f"{verifier.name} {host}"
        try:
            line = lines.get(key)
            if line is None or select.select([line.tls], [], [], 0)[0]:  # it has nothing to say but its end
                line = lines[key] = verifier.line(host, limit=8)
                line.tls.settimeout(8)
            found = line.ask(QUESTION, line.question(attempt(name.encode(), code.encode())))
            if found and found[0] == DATABASE_AWAY:
                return TROUBLE
            if found and len(found[1]) > 1:
                return found[1][1]
        except (OSError, AssertionError):
            pass
        if gone := lines.pop(key, None):
            gone.tls.close()
        return None


class Storm:
    """People who log in while the faults happen, and what they found."""

    def __init__(self, stage, people):
        self.stage, self.people = stage, people
        self.clock, self.lines = Clock(), Lines()
        self.over, self.answers = threading.Event(), collections.Counter()
        self.calm, self.lost, self.distrust = 0, 0, 0
        self.refused_in_calm, self.slowest, self.rights = [], 0, 0
        self._again = ThreadPoolExecutor(2 * WORKERS)
        self._threads = [threading.Thread(target=self._work, args=(people[number::WORKERS], number))
                         for number in range(WORKERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self._threads:
            thread.join()
        self._again.shutdown()

    def _work(self, mine, number):
        die = random.Random(SEED * 100 + number)
        while not self.over.is_set():
            person = die.choice(mine)
            found = person.code(self.clock)
            if found is None:
                time.sleep(0.01)
                continue
            self.login(person, *found, die.choice(self.stage.verifiers))

    def login(self, person, position, code, verifier):
        calm, asked = self.calm, time.monotonic()
        first = self.lines.type(verifier, person.name, code)
        took = time.monotonic() - asked
        again = list(self._again.map(lambda other: self.lines.type(other, person.name, code), self.stage.verifiers))
        self.note(person, position, code, [first, *again])
        if first == TROUBLE:
            time.sleep(0.02)
        self.slowest = max(self.slowest, took)
        is_calm = calm and calm == self.calm and asked > max(calm, person.good_since(self))
        if is_calm:
            self.rights += 1
            if first != ACCEPTED and not (person.kind == "totp" and int(time.time()) // 30 != position):
                self.refused_in_calm.append((person.name, position, verifier.name, first, again, round(took, 2)))

    def note(self, person, position, code, answers):
        self.answers.update(answers)
        person.note(position, code, answers)

    def retype(self):
        """What may still be good by its time, once more at each verifier."""
        step = int(time.time()) // 30
        old = [(person, *found) for person in self.people for found in list(person.typed.items())[-1:]
               if person.accepted[found[0]] and (person.kind != "totp" or found[0] >= step - 2)]
        list(self._again.map(lambda found: self._type_again(*found), old))

    def _type_again(self, person, position, code):
        self.note(person, position, code, [self.lines.type(verifier, person.name, code) for verifier in self.stage.verifiers])

    def tell(self):
        """What is known of the first who was refused."""
        name = self.refused_in_calm[0][0]
        return [*self.stage.sql(f"SELECT at, host, outcome, position FROM event WHERE name = '{name}' ORDER BY at"),
                *[line for verifier in self.stage.verifiers for line in verifier.machine.log.since(0)[-8:]]]

    def doubles(self):
        return [(person.name, position, count) for person in self.people
                for position, count in person.accepted.items() if count > 1]

    def settle(self):
        """Waits until both verify codes, and looks for a loss that they have found."""
        assert soon(lambda: [verifier.type("nobody", "000000", limit=8) for verifier in self.stage.verifiers]
                    == [REFUSED] * 2, 120), "they verify nothing"
        self.look()

    def look(self):
        [[distrust]] = self.stage.sql("SELECT distrust & 1048575 FROM fleet")
        moved = int(distrust) - self.distrust
        if moved:
            self.distrust, self.lost = int(distrust), time.monotonic()
            for person in self.people:
                if person.kind == "hotp":
                    person.next += MOVED * max(moved, 1)
        return moved
