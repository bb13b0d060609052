"""A storm: faults of a score of kinds by chance, one after the other, while people log in. Each code that
was typed is typed again at once at each verifier, and once more after the fault.

  SALLYPORT_STORM=3600 Tests/Fleet/run -k storm    for so many seconds; SEED=N for other dice

test_a_storm_accepts_nothing_twice_and_loses_nobody
"""

import collections
import contextlib
import os
import random
import select
import signal
import subprocess
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.codes import hotp, totp
from support.fleet import (ACCEPTED, DATABASE_AWAY, DONE, QUESTION, REFUSED, TROUBLE, backends, enrollment, host_rows,
                           with_backup_codes)
from support.machines import ROOT, run, together
from support.service import attempt, request, soon
from support.stage import DIRECTORY

SECONDS = int(os.environ.get("SALLYPORT_STORM", "40"))
SEED = int(os.environ.get("SEED", "11"))
BASE32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
WORKERS = 6
# After a loss was found: codes of an app are refused for five minutes, backup codes for fifteen; the counter of
# a token moves by ten.
APPS, BACKUP_CODES, MOVED = 300, 900, 10
# A verifier that was away is asked again; a database that was away is found again.
SETTLED = 15


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


class Faults:
    """Each is done, lasts, and is mended; `loses`: saves are lost by it."""

    def __init__(self, stage, die):
        self.stage, self.die = stage, die
        self.clock = stage.network.scratch / "clock.so"
        run("cc", "-fPIC", "-shared", "-o", self.clock, ROOT / "Tests/Acceptance/clock/clock.c")

    @property
    def one(self):
        return self.die.choice(self.stage.verifiers)

    @property
    def primary(self):
        return self.stage.pair.primary

    def lasts(self, most=5.0):
        time.sleep(self.die.uniform(0.2, most))

    # MARK: verifiers

    def a_verifier_is_killed(self):
        one = self.one
        one.kill()
        self.lasts()
        one.start()

    def a_verifier_is_restarted(self):
        one = self.one
        assert one.stop() == 0
        one.start()

    def a_verifier_is_stopped_for_a_while(self):
        one = self.one
        one.send(signal.SIGSTOP)
        self.lasts(6)
        one.send(signal.SIGCONT)

    def both_verifiers_are_killed(self):
        together(*[verifier.kill for verifier in self.stage.verifiers])
        self.lasts()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def both_verifiers_are_restarted(self):
        for verifier in self.die.sample(self.stage.verifiers, 2):
            assert verifier.stop() == 0
        together(*[verifier.start for verifier in self.stage.verifiers])

    def a_verifier_has_another_clock(self):
        one = self.one
        assert one.stop() == 0
        one.start(LD_PRELOAD=str(self.clock), AHEAD=str(self.die.choice([90, 3600])))
        self.lasts()
        assert one.stop() == 0
        one.start()

    def the_memory_of_a_verifier_is_put_back(self):
        one = self.one
        one.machine.sh(f"rm -rf /root/memory; mkdir /root/memory; cp -a {DIRECTORY}/seen.* {DIRECTORY}/incarnation "
                       "/root/memory/ 2>/dev/null || true")
        self.lasts()
        one.kill()
        one.machine.sh(f"cp -a /root/memory/. {DIRECTORY}/")
        one.start()

    # MARK: cables

    def a_verifier_is_cut_from_the_primary(self):
        one, machine = self.one, self.primary.machine
        self.stage.network.cut(one.machine, machine, how=self.die.choice(["blackhole", "unreachable", "prohibit"]))
        self.lasts(8)
        self.stage.network.mend(one.machine, machine)

    def a_verifier_is_cut_from_all(self):
        one = self.one
        self.stage.network.cut(one.machine)
        self.lasts(8)
        self.stage.network.mend(one.machine)

    def a_standby_is_cut_off(self):
        self.stage.network.cut(*self.stage.machines[:2])
        self.lasts()
        self.stage.network.mend(*self.stage.machines[:2])
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    # MARK: the database

    def the_primary_dies_and_the_standby_is_promoted(self):
        self.primary.kill()
        self.stage.pair.fail_over()
        self.stage.pair.renew()

    def the_primary_dies_and_comes_back(self):
        self.primary.kill()
        self.lasts(3)
        self.primary.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def the_primary_is_restarted(self):
        self.primary.stop()
        self.primary.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def a_standby_dies(self):
        self.stage.pair.standby.kill()
        self.lasts()
        self.stage.pair.standby.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def the_primary_stands_still(self):
        server = self.primary.process
        server.send_all(signal.SIGSTOP)
        self.lasts()
        server.send_all(signal.SIGCONT)

    def its_connections_are_ended(self):
        for _ in range(self.die.randint(1, 8)):
            pids = backends(self.stage.sql)
            if pids:
                self.stage.sql(f"SELECT pg_terminate_backend(pid) FROM unnest(ARRAY[{','.join(pids)}]::int[]) AS pid")

    def a_table_is_locked(self):
        table = self.die.choice(["state", "enrollment", "worker", "event", "fleet"])
        seconds = self.die.uniform(0.5, 4)
        with contextlib.suppress(AssertionError, subprocess.CalledProcessError):
            self.stage.sql(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT")

    def tables_are_rewritten(self):
        self.stage.sql("VACUUM FULL state")
        self.stage.sql("VACUUM FULL enrollment")

    # MARK: what is lost

    def _dump(self, *more):
        self.primary.machine.run("pg_dump", "-h", "/tmp", "-U", "postgres", "-f", "/tmp/dump", *more, self.stage.database)

    def _restore(self):
        self.primary.machine.run("env", "PGOPTIONS=-c synchronous_commit=local", "pg_restore", "--clean", "-h", "/tmp", "-U", "postgres",
                                 "-d", self.stage.database, "/tmp/dump")

    def all_is_restored_beside_verifiers_that_run(self):
        self._dump("-Fc")
        self.lasts(4)
        self._restore()

    def two_tables_are_restored(self):
        self._dump("--data-only", "-t", "state", "-t", "enrollment")
        self.lasts(4)
        self.primary.machine.run(
            "env", "PGOPTIONS=-c synchronous_commit=local", "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-1", "-h", "/tmp", "-U", "postgres",
            "-d", self.stage.database, "-c", "TRUNCATE enrollment, state", "-f", "/tmp/dump")

    def all_is_restored_while_verifiers_are_stopped(self):
        self._dump("-Fc")
        self.lasts(4)
        for verifier in self.stage.verifiers:
            assert verifier.stop() == 0
        self._restore()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def all_is_restored_where_verifiers_were_killed(self):
        self._dump("-Fc")
        self.lasts(4)
        together(*[verifier.kill for verifier in self.stage.verifiers])
        self._restore()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def a_standby_that_lags_is_promoted(self):
        self.stage.pair.asynchronous()
        self.stage.network.cut(*self.stage.machines[:2])
        self.lasts(3)
        self.primary.kill()
        self.stage.network.mend(*self.stage.machines[:2])
        self.stage.pair.fail_over()
        self.stage.pair.renew()

    LOSING = ["all_is_restored_beside_verifiers_that_run", "two_tables_are_restored", "a_standby_that_lags_is_promoted",
              "all_is_restored_while_verifiers_are_stopped", "all_is_restored_where_verifiers_were_killed"]

    def round(self, number):
        """All that lose nothing, and one that does, in an order by chance."""
        names = ("a_", "all_", "both_", "its_", "the_", "two_", "tables_")
        others = sorted(name for name in vars(type(self)) if name.startswith(names) and name not in self.LOSING)
        return self.die.sample([*others, self.LOSING[number % len(self.LOSING)]], len(others) + 1)


@pytest.mark.decisive
def test_a_storm_accepts_nothing_twice_and_loses_nobody(stage, figure):
    signal.alarm(SECONDS + BACKUP_CODES + 300)
    one = stage.verifiers[0]
    people = [Person(f"{kind}{number}", kind) for kind, count in (("totp", 240), ("hotp", 60), ("backup", 12))
              for number in range(count)]

    def enroll(person):
        frame = request(person.name.encode(), 7, b"\0\0\0\0\0\0\0\0\1", person.text())
        return one.ask(frame, host="tests")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(enroll, people)) == {DONE}
    stage.sql(host_rows(one.machine.read(f"{DIRECTORY}/key"), [(name, False) for name in Lines.HOSTS]))
    die = random.Random(SEED)
    faults = Faults(stage, die)
    kinds, happened, number = [], collections.Counter(), SEED
    start = time.monotonic()
    with Storm(stage, people) as storm:
        storm.look()
        while time.monotonic() - start < SECONDS:
            if not kinds:
                kinds, number = faults.round(number), number + 1
            kind = kinds.pop()
            happened[kind] += 1
            mark = time.monotonic()
            try:
                getattr(faults, kind)()
                storm.settle()
            except BaseException as fault:
                raise AssertionError(f"{kind}, after {time.monotonic() - start:.0f} s of {dict(happened)}: {fault}") from fault
            print(f"{time.monotonic() - start:7.1f} {kind} {time.monotonic() - mark:.1f} s, distrust {storm.distrust}", flush=True)
            storm.retype()
            assert storm.doubles() == [], (kind, dict(happened))
            time.sleep(SETTLED if SECONDS > 600 else 1)
            storm.calm = time.monotonic()
            time.sleep(die.uniform(2, 6))
            storm.calm = 0
            storm.look()
            assert storm.refused_in_calm == [], "\n".join(map(str, (kind, *storm.refused_in_calm, *storm.tell())))
    assert storm.doubles() == []
    assert stage.twice() == []
    logins = sum(storm.answers.values())
    figure(f"storm: {SECONDS} s, {sum(happened.values())} faults of {len(happened)} kinds, {logins} codes typed, "
           f"{storm.answers[ACCEPTED]} accepted, 0 twice; {storm.rights} right codes where all was well, 0 refused; "
           f"{storm.distrust} losses found; {storm.slowest:.1f} s the longest answer")
    assert set(storm.answers) <= {ACCEPTED, REFUSED, TROUBLE, None}, storm.answers
    assert storm.answers[ACCEPTED] > SECONDS
    nobody_is_lost(stage, storm)


def nobody_is_lost(stage, storm):
    """After the time that a loss costs each gets in; in a short run those alone who wait for nothing."""
    waits = max((person.good_since(storm) for person in storm.people if SECONDS > 600), default=0)
    assert soon(lambda: time.monotonic() > waits, BACKUP_CODES + 60)
    lost = []
    for person in storm.people:
        if person.good_since(storm) > time.monotonic() or person.kind == "backup" and person.next >= len(BACKUP):
            continue

        def enters(person=person):
            found = person.code(storm.clock)
            return found and stage.verifiers[0].type(person.name, found[1]) == ACCEPTED
        if not soon(enters, 45):
            lost.append(person.name)
    assert lost == []
