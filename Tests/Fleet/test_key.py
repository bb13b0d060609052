"""The fleet's key changes while people log in.

test_the_key_changes_while_people_log_in_and_verifiers_are_killed
test_a_verifier_that_was_not_there_takes_the_new_key_when_it_starts_and_is_away_without_it
"""

import base64
import shutil
import subprocess
import threading
import time

import pytest

from support.codes import totp
from support.fleet import ACCEPTED, DONE, REFUSED, SECRET, VERIFIER, Verifier
from support.service import soon

PEOPLE = [f"p{number}" for number in range(60)]


def code():
    return totp(base64.b32encode(SECRET).decode())[0]


def command(directory, fleet, *words):
    return [VERIFIER, *words, "--directory", directory, "--database", fleet.words()]


def run(directory, fleet, *words):
    return subprocess.run(command(directory, fleet, *words), capture_output=True, text=True, timeout=60)


def ids(fleet):
    """Of the keys with which anything is sealed."""
    rows = " UNION ".join(f"SELECT encode(substr({column}, {place}, 4), 'hex') FROM {table} WHERE {column} <> ''"
                          for table, column, place in (("enrollment", "body", 2), ("state", "body", 2),
                                                       ("host", "seal", 1), ("fleet", "seal", 1)))
    return {found for found, in fleet.sql(rows)}


@pytest.fixture
def machines(fleet):
    """Two verifiers, each with a directory of its own."""
    other = fleet.directory.with_name(fleet.directory.name + "-two")
    shutil.copytree(fleet.directory, other)
    other.chmod(0o700)
    one = fleet.verifier("one")
    two = Verifier(fleet.words(), other, "two").start()
    fleet.made.append(two)
    yield [(one, fleet.directory), (two, other)]


# shows: key-change
@pytest.mark.decisive
def test_the_key_changes_while_people_log_in_and_verifiers_are_killed(fleet, machines, figure):
    (one, here), (two, there) = machines
    former = (here / "key").read_bytes()
    assert [one.enroll(name) for name in PEOPLE] == [DONE] * len(PEOPLE)
    typed, said, over = [], [], threading.Event()

    def log_in():
        for name in PEOPLE[:-5]:
            typed.append((name, code()))
            said.append(one.type(*typed[-1]))
            if over.wait(0.2):
                break

    people = threading.Thread(target=log_in)
    people.start()
    # Killed wherever it is; what was done stays, and the next one goes on.
    for pause in 0.02, 0.05, 0.1, 0.3:
        begun = subprocess.Popen(command(here, fleet, "key", "next"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        begun.kill()
        begun.wait(20)
    done = run(here, fleet, "key", "next")
    assert done.returncode == 0 or "not finished" in done.stderr, done.stderr
    assert run(here, fleet, "key", "next").returncode == 1, "one change after the other"
    # Killed while it seals again.
    for _ in range(3):
        two.kill()
        two.start()
    assert soon(lambda: len(ids(fleet)) == 1, limit=90), run(here, fleet, "key", "status").stdout
    # A host that is away may have used backup codes, and proves by the former key that it holds them.
    fleet.sql("UPDATE host SET seen = now() WHERE name = 'web1'")
    refused = run(here, fleet, "key", "finish")
    assert refused.returncode == 1 and "host web1, last seen" in refused.stderr, refused.stderr
    fleet.sql("UPDATE host SET formerly = now() - interval '5 min', asked = now()")
    begin = time.monotonic()
    assert soon(lambda: run(here, fleet, "key", "finish").returncode == 0, limit=60), run(here, fleet, "key", "finish")
    two.kill()
    two.start()
    for directory in here, there:
        assert soon(lambda directory=directory: not (directory / "key.next").exists(), limit=60)
    figure(f"the former key was gone {time.monotonic() - begin:.0f} s after finish")
    assert (here / "key").read_bytes() == (there / "key").read_bytes() != former
    over.set()
    people.join()
    assert said == [ACCEPTED] * len(said) and len(said) > 20, "nobody is refused"
    for verifier in one, two:
        assert {verifier.type(*again) for again in typed[-10:]} == {REFUSED}
    assert [two.type(name, code()) for name in PEOPLE[-5:]] == [ACCEPTED] * 5
    assert two.type("nobody", "000000") == REFUSED and fleet.twice() == []
    assert fleet.sql("SELECT distrust FROM fleet") == [["0"]]
    for verifier in one, two:
        assert verifier.stop() == 0
        verifier.start()
    assert {verifier.type(*typed[-1]) for verifier in (one, two)} == {REFUSED}


def test_a_verifier_that_was_not_there_takes_the_new_key_when_it_starts_and_is_away_without_it(fleet, machines):
    (one, here), (two, there) = machines
    assert one.enroll("alice") == DONE and one.enroll("bob") == DONE
    third = there.with_name(there.name + "-three")
    shutil.copytree(there, third)
    third.chmod(0o700)
    two.stop()
    fleet.sql("UPDATE worker SET now = now() - interval '11 s' WHERE verifier = 'two'")
    assert run(here, fleet, "key", "next").returncode == 0
    assert (here / "key.next").exists() and not (there / "key.next").exists()
    two.start()
    assert two.type("alice", code()) == ACCEPTED and (there / "key.next").exists()
    fleet.sql("UPDATE host SET formerly = now() - interval '5 min', asked = now()")
    assert soon(lambda: run(here, fleet, "key", "finish").returncode == 0, limit=60)
    # One that was away all the time has the former key alone.
    done = subprocess.run([*Verifier(fleet.words(), third, "three").command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "key take" in done.stderr, done.stderr
    assert two.type("bob", code()) == ACCEPTED
