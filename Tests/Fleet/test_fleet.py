"""Two verifiers over one PostgreSQL, and what goes wrong with each of them.

test_one_code_is_accepted_once_by_two_verifiers
test_a_code_is_accepted_once_while_verifiers_are_killed
test_a_code_is_accepted_once_while_the_database_is_killed
test_a_save_that_is_committed_only_locally_is_refused_and_others_wait_until_it_is_known
test_a_stopped_verifier_holds_up_nobody_at_another
test_no_secret_is_in_a_dump
test_a_host_asks_only_what_its_row_allows
test_a_host_cannot_loosen_the_policy_of_the_fleet
test_init_can_be_repeated_and_says_what_is_missing
test_a_verifier_says_at_its_start_that_its_key_or_the_row_of_the_fleet_is_wrong
test_who_writes_to_the_database_makes_no_host_and_gives_none_a_right
test_a_revoked_host_is_refused_after_a_restore_and_by_verifiers_that_were_restarted
test_a_host_that_brings_wrong_codes_lets_in_only_people_it_knows
test_distrust_takes_every_code_up_to_now_as_used_and_prune_deletes_old_events
test_what_was_used_after_a_dump_is_refused_once_it_is_restored_and_distrusted
"""

import base64
import itertools
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.codes import totp
from support.fleet import (ACCEPTED, DATABASE_AWAY, DONE, LINE_NOT_SERVED, NOT_SERVED, PING, QUESTION, REFUSED, REVOKED, SEALED,
                           SECRET, TROUBLE, VERIFIER, Line, host_key)
from support.machines import together
from support.service import request, soon

BASE32 = base64.b32encode(SECRET).decode()
REPLAYED_OR_IN = (ACCEPTED, REFUSED)
# What is there under the name bob? The answers: version 0 and nobody, not for this host.
MOVE, LOOK = 0x06, b"\x01\x55\x04\0\0\0\x03bob"
NOBODY_THERE, NOT_THIS_HOST = b"\x01\x55" + bytes(8) + b"\x55", b"\x01\x66"


def code():
    return totp(BASE32)[0]


def people(verifier, count):
    names = [f"user{number}" for number in range(count)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(verifier.enroll, names)) == {DONE}
    return names


def at_once(count, asks):
    """The answers of as many threads, which begin together."""
    barrier = threading.Barrier(count)

    def one(ask):
        barrier.wait(20)
        return ask()
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, itertools.islice(itertools.cycle(asks), count)))


# shows: fleet-one-use
@pytest.mark.decisive
def test_one_code_is_accepted_once_by_two_verifiers(fleet):
    one, two = fleet.verifier("one"), fleet.verifier("two")
    for name in people(one, 20):
        typed = code()
        answers = at_once(32, [lambda name=name, v=v: v.type(name, typed) for v in (one, two)])
        assert answers.count(ACCEPTED) == 1, answers
        assert set(answers) == {ACCEPTED, REFUSED}
    assert len(fleet.accepted()) == 20
    assert fleet.twice() == []


def under_load(fleet, verifiers, disturb):
    """Types each user's code often while `disturb` does its worst. Each who was let in has an event; then
    each types it once more, and has exactly one."""
    names = people(verifiers[0], 60)
    typed, answers = code(), []

    def work(number):
        for name in names:
            for verifier in verifiers if number % 2 else verifiers[::-1]:
                answers.append((name, verifier.type(name, typed, limit=8)))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        disturb()
    assert soon(fleet.cluster.answers, 60)
    in_by_answer = [name for name, answer in answers if answer == ACCEPTED]
    assert len(set(in_by_answer)) == len(in_by_answer), "twice"
    assert set(in_by_answer) <= set(fleet.accepted())
    known = {answer for _, answer in answers}
    assert known <= {ACCEPTED, REFUSED, TROUBLE, None}
    assert None in known or TROUBLE in known, "nothing was disturbed"
    for verifier in verifiers:
        if verifier.process.poll() is not None:
            verifier.start()
    in_before = set(fleet.accepted())
    for name in names:
        answer = verifiers[0].type(name, typed)
        assert soon(lambda: answer in REPLAYED_OR_IN or verifiers[0].type(name, typed) in REPLAYED_OR_IN)
        assert answer != ACCEPTED or name not in in_before
    assert sorted(fleet.accepted()) == sorted(names)
    assert fleet.twice() == []


# shows: fleet-one-use
@pytest.mark.decisive
def test_a_code_is_accepted_once_while_verifiers_are_killed(fleet):
    verifiers = [fleet.verifier("one"), fleet.verifier("two")]
    turn = itertools.cycle(verifiers)

    def kill():
        victim = next(turn)
        before = len(fleet.sql("SELECT 1 FROM event"))
        soon(lambda: len(fleet.sql("SELECT 1 FROM event")) > before + 5, 2)
        victim.kill()
        victim.start()
    under_load(fleet, verifiers, kill)


# shows: fleet-one-use
@pytest.mark.decisive
def test_a_code_is_accepted_once_while_the_database_is_killed(own_fleet):
    fleet = own_fleet
    verifiers = [fleet.verifier("one"), fleet.verifier("two")]

    def kill():
        """One of its processes, after which PostgreSQL restarts all of them from its log."""
        found = []
        if soon(fleet.cluster.answers, 20):
            found = fleet.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'sallyport_verifier' LIMIT 1")
        for pid, in found:
            before = len(fleet.sql("SELECT 1 FROM event"))
            os.kill(int(pid), signal.SIGKILL)
            soon(lambda: fleet.cluster.answers() and len(fleet.sql("SELECT 1 FROM event")) > before + 5, 3)
    try:
        under_load(fleet, verifiers, kill)
    finally:
        soon(fleet.cluster.answers)


# shows: fleet-one-use
def test_a_save_that_is_committed_only_locally_is_refused_and_others_wait_until_it_is_known(own_fleet):
    fleet = own_fleet
    verifier = fleet.verifier("one")
    # One for all: a later one would be good.
    names, typed = people(verifier, 3), code()
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'sallyport_verifier'"
    fleet.sql("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    fleet.sql("SELECT pg_reload_conf()")
    try:
        # Each backend takes the new setting when it takes its next statement.
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(verifier.type, names[0], typed)
            assert soon(lambda: fleet.sql(waiting))
            fleet.sql(f"SELECT pg_cancel_backend(pid) FROM ({waiting}) AS one")
            assert answer.result() == TROUBLE
        assert fleet.accepted() == [names[0]], "it was committed here alone"
        start = time.monotonic()
        assert verifier.type(names[1], typed) == TROUBLE
        assert 1.9 < time.monotonic() - start < 5
        start = time.monotonic()
        assert verifier.type(names[2], typed) == TROUBLE
        assert time.monotonic() - start < 1, "nobody waits once it is away"
        with verifier.line() as line:
            assert line.ask(QUESTION, line.question(request(names[2].encode(), 4))) == (DATABASE_AWAY, b"")
        assert names[2] not in fleet.accepted()
    finally:
        fleet.sql("ALTER SYSTEM RESET synchronous_standby_names")
        fleet.sql("SELECT pg_reload_conf()")
    assert soon(lambda: verifier.type(names[2], typed) == ACCEPTED)
    assert verifier.type(names[0], typed) == REFUSED
    assert verifier.type(names[1], typed) == REFUSED
    assert fleet.twice() == []


# shows: stopped-verifier
def test_a_stopped_verifier_holds_up_nobody_at_another(fleet):
    one, two = fleet.verifier("one"), fleet.verifier("two")
    names = people(one, 20)
    for name in names:
        over = threading.Event()

        def press(name=name):
            while not over.is_set():
                one.type(name, "000000", limit=1)
        threads = [threading.Thread(target=press) for _ in range(3)]
        for thread in threads:
            thread.start()
        one.send(signal.SIGSTOP)
        start = time.monotonic()
        answer = two.type(name, code())
        took = time.monotonic() - start
        over.set()
        one.send(signal.SIGCONT)
        for thread in threads:
            thread.join()
        assert answer in REPLAYED_OR_IN and took < 1.5, (answer, took)
    assert fleet.twice() == []


# shows: db-backup
@pytest.mark.decisive
def test_no_secret_is_in_a_dump(fleet):
    verifier = fleet.verifier("one")
    names = people(verifier, 20)
    assert verifier.type(names[0], code()) == ACCEPTED
    dump = subprocess.run(["pg_dump", "-h", fleet.cluster.directory, "-U", "postgres", fleet.database],
                          capture_output=True, check=True, timeout=60).stdout
    assert names[0].encode().hex().encode() in dump, "the rows are there"
    for secret in SECRET, BASE32.encode(), b"authenticator]", b"0000000000e1", b"key = ":
        for form in secret, secret.hex().encode(), base64.b64encode(secret):
            assert form not in dump
    key = (fleet.directory / "key").read_bytes()
    assert len(key) == 36 and key[4:].hex().encode() not in dump
    assert (fleet.directory / "key").stat().st_mode & 0o777 == 0o600


# shows: host-policy
def test_a_host_asks_only_what_its_row_allows(fleet):
    verifier = fleet.verifier("one")
    assert verifier.enroll("alice", host="web2") == NOT_SERVED
    assert verifier.enroll("alice", host="unknown") == TROUBLE
    assert verifier.enroll("alice") == DONE
    assert verifier.type("alice", code(), host="unknown") == TROUBLE
    assert verifier.type("alice", code(), host="web2") == ACCEPTED
    assert verifier.type("alice", code()) == REFUSED
    # Cut off, of another form: an answer that says nothing.
    whole = Line.question(request(b"alice", 4))
    with verifier.line() as line:
        for body in b"", b"\0", whole[:-1], b"\1" + whole[1:], b"\2\2" + whole[2:], whole + b"\0":
            assert line.ask(QUESTION, body) == (0x80 | QUESTION, b"")
        assert line.ask(QUESTION, whole)[1] != b""
        for kind in 0, 9, 0x81, 0xFF:
            assert line.ask(kind, whole) == (LINE_NOT_SERVED, b"")
        assert [line.ask(kind, whole) for kind in (SEALED, MOVE)] == [(DATABASE_AWAY, b""), (0x80 | MOVE, b"")]
        assert line.ask(MOVE, LOOK) == (0x80 | MOVE, NOBODY_THERE)
        assert line.ask(PING, b"") == (0x80 | PING, b"")
    with verifier.line("web2") as line:
        assert line.ask(MOVE, LOOK) == (0x80 | MOVE, NOT_THIS_HOST)


# shows: host-policy
def test_a_host_cannot_loosen_the_policy_of_the_fleet(fleet):
    """Frames ask for five adjacent intervals; by the policy of the fleet, two are accepted."""
    subprocess.run([VERIFIER, "config", "edit", "-", "--directory", fleet.directory, "--database", fleet.words()],
                   input="[default]\nadjacent_intervals = 2\n", text=True, check=True, timeout=60)
    verifier = fleet.verifier("one")
    names = people(verifier, 2)
    now = time.time()
    assert verifier.type(names[0], totp(BASE32, at=now + 4 * 30)[0]) == REFUSED
    assert verifier.type(names[1], totp(BASE32, at=now + 30)[0]) == ACCEPTED


def test_init_can_be_repeated_and_says_what_is_missing(fleet):
    assert fleet.init.returncode == 0, fleet.init.stderr
    assert "made the tables" in fleet.init.stdout
    key = (fleet.directory / "key").read_bytes()

    def run(verb, *more):
        return subprocess.run([VERIFIER, verb, "--directory", fleet.directory, *more], capture_output=True, text=True,
                              timeout=60)
    again = run("init", "--database", fleet.words("postgres"))
    assert again.returncode == 0 and "the tables exist" in again.stdout
    assert (fleet.directory / "key").read_bytes() == key
    assert fleet.sql("SELECT count(*) FROM state") == [["64"]]
    status = run("status", "--database", fleet.words("postgres"))
    assert status.returncode == 0 and "users: 0" in status.stdout and "host: web1, enrolls" in status.stdout
    gone = run("status", "--database", "host=/nowhere")
    assert gone.returncode != 0 and "the database: " in gone.stderr
    (fleet.directory / "key").chmod(0o640)
    assert "chmod 600" in run("run", "--database", fleet.words()).stderr
    (fleet.directory / "key").chmod(0o600)
    fleet.sql("UPDATE fleet SET needs = 6")
    assert "install a newer one" in run("run", "--database", fleet.words()).stderr
    fleet.sql("UPDATE fleet SET needs = 5, schema = 1")
    assert "have schema 1, this version has 5" in run("init", "--database", fleet.words("postgres")).stderr


def test_a_verifier_says_at_its_start_that_its_key_or_the_row_of_the_fleet_is_wrong(fleet):
    def start():
        return subprocess.run([VERIFIER, "run", "--directory", fleet.directory, "--database", fleet.words()],
                              capture_output=True, text=True, timeout=60)
    key = fleet.directory / "key"
    right = key.read_bytes()
    key.write_bytes(right[:4] + bytes(32))
    assert "not this fleet's key" in start().stderr
    key.write_bytes(right)
    for change in "needs = 1", "writes = 1", "distrust = 1", "distrusted = 1":
        fleet.sql(f"BEGIN; CREATE TABLE before AS SELECT * FROM fleet; UPDATE fleet SET {change}; COMMIT")
        assert "modified by somebody without the key" in start().stderr, change
        fleet.sql("BEGIN; DELETE FROM fleet; INSERT INTO fleet SELECT * FROM before; DROP TABLE before; COMMIT")
    assert fleet.verifier("one").type("nobody", "000000") == REFUSED


def test_who_writes_to_the_database_makes_no_host_and_gives_none_a_right(fleet):
    verifier = fleet.verifier("one")
    fleet.sql("UPDATE host SET enrolls = true WHERE name = 'web2'")
    fleet.sql(f"""INSERT INTO host SELECT 'web3', '\\x{host_key("web3").pin}', enrolls, joined, seal
      FROM host WHERE name = 'web1'""")
    # As its row was, or as none: that is read every two seconds.
    assert verifier.enroll("alice", host="web2") in (NOT_SERVED, TROUBLE)
    assert verifier.enroll("alice", host="web3") == TROUBLE
    assert verifier.enroll("alice") == DONE


# shows: revoked
@pytest.mark.decisive
def test_a_revoked_host_is_refused_after_a_restore_and_by_verifiers_that_were_restarted(fleet):
    """And where somebody who writes to the database puts its row back alone."""
    one, two = fleet.verifier("one"), fleet.verifier("two")
    names = people(one, 3)
    assert two.type(names[0], code()) == ACCEPTED
    fleet.sql("CREATE TABLE before AS SELECT * FROM host")
    done = subprocess.run([VERIFIER, "revoke", "web1", "--directory", fleet.directory, "--database", fleet.words()],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert soon(lambda: [one.standing(), two.standing()] == [REVOKED] * 2, 5)
    # All that the database knew of it is as it was; then the row alone.
    for restored in "DELETE FROM revoked; ", "":
        two.stop()
        fleet.sql(restored + "INSERT INTO host SELECT * FROM before ON CONFLICT DO NOTHING")
        one.kill()
        # Who was stopped first waits for the other.
        together(one.start, two.start)
        for verifier in one, two:
            assert verifier.standing() == REVOKED
            assert verifier.type(names[1], code()) == TROUBLE
        assert soon(lambda: fleet.sql("SELECT name FROM host WHERE name = 'web1'") == [], 5)
        assert fleet.sql("SELECT count(*) FROM revoked") == [["2"]], "its key and its name"
    assert one.type(names[2], code(), host="web2") == ACCEPTED


def test_a_host_that_brings_wrong_codes_lets_in_only_people_it_knows(fleet):
    verifier = fleet.verifier("one", "--host-wrong-codes", "5")
    names = people(verifier, 9)
    known, stranger, now = names[7], names[8], time.time()
    assert verifier.type(known, totp(BASE32, at=now)[0]) == ACCEPTED
    # 5, and 10 more once it is counted that one person was let in there.
    for name in names[:5] * 3:
        assert verifier.type(name, "000000") == REFUSED
    assert verifier.type(stranger, code()) == REFUSED
    told = fleet.sql(f"SELECT outcome FROM event WHERE name = '{stranger}' ORDER BY at")
    # What costs the host nothing is written ten times a minute.
    assert told in ([["act-enroll"], ["throttled"]], [["act-enroll"]])
    assert verifier.type(known, totp(BASE32, at=now + 60)[0]) == ACCEPTED, "it is known there"
    assert verifier.type(stranger, code(), host="web2") == ACCEPTED, "another host"


def test_distrust_takes_every_code_up_to_now_as_used_and_prune_deletes_old_events(fleet):
    def run(verb, *more):
        return subprocess.run([VERIFIER, verb, "--directory", fleet.directory, *more], capture_output=True, text=True,
                              timeout=60)
    verifier = fleet.verifier("one")
    names = people(verifier, 2)
    assert verifier.type(names[0], code()) == ACCEPTED
    done = run("distrust", "--database", fleet.words())
    assert done.returncode == 0 and "count as used" in done.stdout, done.stderr
    assert [verifier.type(name, code()) for name in names] == [REFUSED, REFUSED]
    [[today]] = fleet.sql("SELECT min(relname) FROM pg_class WHERE relname ~ '^event_[0-9]{8}$'")
    fleet.sql(f"ALTER TABLE {today} RENAME TO event_20200101")
    done = run("migrate", "--prune", "90d", "--database", fleet.words("postgres"))
    assert done.stdout == "1 day of events deleted\n", done.stderr
    assert fleet.accepted() == [] and fleet.sql("SELECT count(*) FROM event") == [["0"]]
    done = run("forget-person", names[0], "--database", fleet.words("postgres"))
    assert done.returncode == 1 and f"{names[0]} is enrolled: nothing was changed" in done.stderr, done.stderr
    done = run("forget-person", "gone", "--database", fleet.words("postgres"))
    assert done.stdout == "0 events of gone have no name now\n", done.stderr
    assert "not a number of days" in run("migrate", "--prune", "soon", "--database", fleet.words()).stderr


@pytest.mark.decisive
def test_what_was_used_after_a_dump_is_refused_once_it_is_restored_and_distrusted(fleet):
    """The steps of docs/fleet.md."""
    def database(program, *more):
        subprocess.run([program, "-h", fleet.cluster.directory, "-U", "postgres", *more], check=True, capture_output=True,
                       timeout=60)
    verifier, copy = fleet.verifier("one"), fleet.directory / "copy"
    names = people(verifier, 2)
    database("pg_dump", "-Fc", "-f", copy, fleet.database)
    typed = code()
    assert verifier.type(names[0], typed) == ACCEPTED
    verifier.stop()
    fleet.cluster.sql(f"DROP DATABASE {fleet.database}")
    fleet.cluster.sql(f"CREATE DATABASE {fleet.database}")
    database("pg_restore", "-d", fleet.database, copy)
    assert fleet.accepted() == [], "the login is lost"
    done = subprocess.run([VERIFIER, "distrust", "--directory", fleet.directory, "--database", fleet.words()],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    again = fleet.verifier("two")
    assert [again.type(name, typed) for name in names] == [REFUSED, REFUSED]
    assert again.enroll("new") == DONE and again.type("new", code()) == ACCEPTED, "who enrolls now is not concerned"
