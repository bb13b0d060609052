"""A storm: faults of a score of kinds by chance, one after the other, while people log in. Each code that
was typed is typed again at once at each verifier, and once more after the fault.

  SALLYPORT_STORM=3600 Tests/Fleet/run -k storm    seconds; SEED=N for other dice

test_a_storm_accepts_nothing_twice_and_loses_nobody
"""

import collections
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.faults import Faults
from support.fleet import ACCEPTED, DONE, REFUSED, TROUBLE, host_rows
from support.service import request, soon
from support.stage import DIRECTORY
from support.storm import BACKUP, BACKUP_CODES, SECONDS, SEED, Lines, Person, Storm

# A verifier that was away is asked again; a database that was away is found again. In seconds.
SETTLED = 15


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
            person.rests = 0
            found = person.code(storm.clock)
            return found and stage.verifiers[0].type(person.name, found[1]) == ACCEPTED
        if not soon(enters, 45):
            lost.append(person.name)
    assert lost == []
