"""A fleet that is brought from one version to the next while it answers.

test_the_tables_of_the_former_version_are_carried_over_while_its_verifiers_go_on
test_a_verifier_stops_where_the_tables_need_a_newer_one
"""

import base64
import subprocess

from support.codes import totp
from support.fleet import (ACCEPTED, DATABASE_AWAY, DONE, QUESTION, REFUSED, SECRET, TROUBLE, VERIFIER,
                           fleet_row)
from support.service import request, soon


def code():
    return totp(base64.b32encode(SECRET).decode())[0]


def run(fleet, *words, user="sallyport_verifier"):
    return subprocess.run(
        [VERIFIER, *words, "--directory", fleet.directory, "--database", fleet.words(user)], capture_output=True,
        text=True, timeout=60)


def set_version(fleet, version):
    fleet.sql(fleet_row((fleet.directory / "key").read_bytes(), version))


def test_the_tables_of_the_former_version_are_carried_over_while_its_verifiers_go_on(fleet):
    version = int(fleet.sql("SELECT schema FROM fleet")[0][0])
    fleet.sql(f"UPDATE fleet SET schema = {version - 1}")
    set_version(fleet, version - 1)
    for words, user in (["run"], "sallyport_verifier"), (["init"], "postgres"), (["migrate", "--finish"], "postgres"):
        done = run(fleet, *words, user=user)
        assert done.returncode == 1 and "sallyport-verifier migrate" in done.stderr, done.stderr
    for said in "verifiers of the former one still work", "have this version already":
        done = run(fleet, "migrate", user="postgres")
        assert done.returncode == 0 and said in done.stdout, done.stderr
    one = fleet.verifier("one")
    # What one of the former version says of itself, and goes on to say.
    fleet.sql("""INSERT INTO worker (verifier, worker, n, server, posted, clock, now, version)
      SELECT 'old', 0, 1, server, posted, clock + 3600000, now + interval '1 hour', version - 1
      FROM worker WHERE verifier = 'one' AND worker = 0""")
    assert one.enroll("alice") == DONE and one.type("alice", code()) == ACCEPTED
    done = run(fleet, "migrate", "--finish")
    assert done.returncode == 1 and "verifiers of an older version are alive: old\n" in done.stderr, done.stderr
    assert fleet.sql("SELECT needs, writes FROM fleet") == [[str(version - 1)] * 2]
    # It is killed.
    fleet.sql("UPDATE worker SET now = now() - interval '11 s' WHERE verifier = 'old'")
    for said in "do not start any more", "finished before":
        done = run(fleet, "migrate", "--finish")
        assert done.returncode == 0 and said in done.stdout, done.stderr
    assert fleet.sql("SELECT needs, writes FROM fleet") == [[str(version)] * 2]
    assert one.enroll("bob") == DONE
    assert [one.type("bob", code()), fleet.verifier("two").type("bob", code())] == [ACCEPTED, REFUSED]
    assert run(fleet, "distrust").returncode == 0
    assert one.type("alice", code()) == REFUSED


def test_a_verifier_stops_where_the_tables_need_a_newer_one(fleet):
    version = int(fleet.sql("SELECT schema FROM fleet")[0][0])
    one = fleet.verifier("one")
    assert one.enroll("alice") == DONE
    set_version(fleet, version + 1)
    assert one.type("alice", code()) == TROUBLE
    done = run(fleet, "run")
    assert done.returncode == 1 and "install a newer one" in done.stderr, done.stderr
    # It says that nothing was verified, so that hosts ask another verifier; and goes on to say so.
    with one.line() as line:
        assert line.ask(QUESTION, line.question(request(b"alice", 4))) == (DATABASE_AWAY, b"")
    assert fleet.accepted() == []
    set_version(fleet, version)
    assert soon(lambda: one.type("alice", code()) == ACCEPTED)
