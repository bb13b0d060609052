"""The tables are put back in the same server, while verifiers run or are stopped.

test_a_dump_that_is_restored_makes_nothing_good_again
"""

import base64
import subprocess
import time

import pytest

from support.codes import totp
from support.fleet import ACCEPTED, DONE, REFUSED, SECRET, with_backup_codes
from support.service import soon

CODES = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]


def code():
    return totp(base64.b32encode(SECRET).decode())[0]


# shows: db-restore
@pytest.mark.decisive
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_a_dump_that_is_restored_makes_nothing_good_again(fleet, stopped):
    """By a verifier that has seen none of these people: it has nothing but its own rows to go by. Nobody types
    `distrust`."""
    def database(program, *more):
        subprocess.run([program, "-h", fleet.cluster.directory, "-U", "postgres", *more], check=True, capture_output=True,
                       timeout=60)
    one, two, copy = fleet.verifier("one"), fleet.verifier("two"), fleet.directory / "copy"
    assert one.enroll("alice", with_backup_codes("alice", 0xB0, CODES)) == DONE
    database("pg_dump", "-Fc", "-f", copy, fleet.database)
    typed = code()
    assert one.type("alice", typed) == ACCEPTED and one.type("alice", CODES[0]) == ACCEPTED
    beats = "SELECT n FROM worker WHERE worker = 0 ORDER BY verifier"
    last = fleet.sql(beats)
    assert soon(lambda: all(now != before for now, before in zip(fleet.sql(beats), last, strict=True)))
    if stopped:
        assert [verifier.stop() for verifier in (one, two)] == [0, 0]
    # Table by table, as nobody should: while it lasts some are there, and some are not.
    database("pg_restore", "--clean", "-d", fleet.database, copy)
    if stopped:
        two.start()
        one.start()
    assert fleet.accepted() == [], "the logins are lost"
    assert ACCEPTED not in [two.type("alice", typed), two.type("alice", CODES[0])]
    assert soon(lambda: fleet.sql("SELECT distrust > 0 FROM fleet") == [["t"]])
    assert soon(lambda: [verifier.type("nobody", "000000") for verifier in (one, two)] == [REFUSED] * 2)
    for verifier in one, two:
        assert [verifier.type("alice", used) for used in (typed, CODES[0])] == [REFUSED] * 2
    assert two.enroll("new") == DONE and one.type("new", code()) == ACCEPTED, "who enrolls now is not concerned"
    time.sleep(2.5)
    assert fleet.sql("SELECT distrust & 1048575 FROM fleet") == [["1"]], "once, by both"
