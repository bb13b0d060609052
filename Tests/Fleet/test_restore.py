"""What was there before is put back: the tables in the same server, a server, the disk of a verifier. Codes that
were accepted are typed again at each verifier. Those of the network are whole with SALLYPORT_WHOLE=1 alone.

test_a_dump_that_is_restored_makes_nothing_good_again
test_a_recovery_to_a_point_in_time_makes_nothing_good_again
test_a_former_primary_that_is_rewound_makes_nothing_good_again
test_a_second_cluster_with_the_same_rows_makes_nothing_good_again
test_a_disk_of_a_verifier_that_is_put_back_makes_nothing_good_again
test_machines_that_are_put_back_together_make_nothing_good_again
"""

import base64
import subprocess
import time

import pytest

from support.codes import totp
from support.fleet import ACCEPTED, DONE, REFUSED, SECRET, with_backup_codes
from support.machines import together
from support.postgres import Server
from support.service import soon
from support.stage import DIRECTORY
from support.whole import WHOLE
from test_failover import all_accepted, people, verifies, with_codes

CODES = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]


def code():
    return totp(base64.b32encode(SECRET).decode())[0]


# shows: db-restore
@pytest.mark.decisive
@pytest.mark.parametrize("how", ["running", "stopped", "killed"])
def test_a_dump_that_is_restored_makes_nothing_good_again(fleet, how):
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
    if how == "stopped":
        assert [verifier.stop() for verifier in (one, two)] == [0, 0]
    elif how == "killed":
        one.kill()
        two.kill()
    # Table by table, as nobody should: while it lasts some are there, and some are not.
    database("pg_restore", "--clean", "-d", fleet.database, copy)
    if how != "running":
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


whole = pytest.mark.skipif(not WHOLE, reason="without SALLYPORT_WHOLE=1")
BEATS = "SELECT n FROM worker WHERE worker = 0 ORDER BY verifier"


def beaten_twice(stage):
    """Each verifier has said twice more that it is there: so both have what was accepted in their records."""
    for _ in range(3):
        last = stage.sql(BEATS)
        assert soon(lambda last=last: all(now != before for now, before in zip(stage.sql(BEATS), last, strict=True)))


class Used:
    """What was accepted by both verifiers, after a copy was made."""

    def __init__(self, stage):
        for verifier in stage.verifiers:  # the server may have been started again
            assert soon(lambda verifier=verifier: verifies(verifier, "nobody"), 60)
        self.stage, self.names = stage, people(stage.verifiers[0], "user", 4)
        with_codes(stage.verifiers[0])
        beaten_twice(stage)

    def type(self):
        self.typed = code()
        all_accepted(self.stage, self.stage.verifiers[0], self.names[:2], self.typed)
        assert [self.stage.verifiers[1].type(name, self.typed) for name in self.names[2:]] == [ACCEPTED] * 2
        beaten_twice(self.stage)

    def none_again(self, verifiers, losses=("1",)):
        for verifier in verifiers:
            assert soon(lambda verifier=verifier: verifies(verifier, "nobody"), 90)
        assert self.stage.sql("SELECT distrust & 1048575 FROM fleet")[0][0] in losses
        for verifier in verifiers:
            assert [verifier.type(name, self.typed) for name in self.names] == [REFUSED] * len(self.names)
            assert verifier.type("with-codes", CODES[0]) == REFUSED

    def good_by_the_book(self, verifier):
        """Five minutes for apps, fifteen for backup codes, and half a minute for the clocks' difference."""
        start = time.monotonic()
        for name in self.names:
            assert soon(lambda name=name: verifier.type(name, code()) == ACCEPTED or time.sleep(10), 345), name
        assert time.monotonic() - start < 345
        assert soon(lambda: verifier.type("with-codes", CODES[1]) == ACCEPTED or time.sleep(20), 960)


@whole
@pytest.mark.decisive
def test_a_recovery_to_a_point_in_time_makes_nothing_good_again(stage, figure):
    """While both verifiers run; and then right codes are good again after the time that the manual says."""
    primary, archive = stage.pair.primary, "/var/lib/postgresql/archive"
    primary.machine.sh(f"install -d -o postgres -g postgres {archive}")
    primary.sql("ALTER SYSTEM SET archive_mode = 'on'")
    primary.sql(f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
    primary.stop()
    primary.start()
    try:
        assert soon(lambda: primary.is_followed("sync"), 60)
        used = Used(stage)
        backup = primary.base_backup(of=primary)
        primary.sql("SELECT pg_create_restore_point('before')")
        beaten_twice(stage)
        used.type()
        last = primary.sql("SELECT pg_walfile_name(pg_switch_wal())")[0][0]
        assert soon(lambda: primary.machine.path(f"{archive}/{last}").exists(), 60)
        with primary.machine.path(f"{backup}/postgresql.auto.conf").open("a") as file:
            file.write(f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = 'before'\n"
                       "recovery_target_action = 'promote'\nsynchronous_standby_names = ''\n")
        primary.machine.sh(f"install -o postgres -g postgres /dev/null {backup}/recovery.signal")
        stage.pair.standby.kill()
        primary.restore(backup)
        assert soon(lambda: primary.sql("SELECT pg_is_in_recovery()") == [["f"]], 60)
        assert stage.accepted() == [], "the logins are lost"
        used.none_again(stage.verifiers)
        start = time.monotonic()
        used.good_by_the_book(stage.verifiers[1])
        figure(f"recovery to a point in time: right codes good again after {time.monotonic() - start:.0f} s, all kinds")
    finally:
        for name in "restore_command", "recovery_target_name", "recovery_target_action":
            primary.sql(f"ALTER SYSTEM RESET {name}")
        primary.sql("ALTER SYSTEM SET archive_command = '/bin/true'")
        primary.sql("SELECT pg_reload_conf()")


@whole
@pytest.mark.decisive
def test_a_former_primary_that_is_rewound_makes_nothing_good_again(stage):
    """The standby lacks the last logins and is promoted; the former primary is rewound to it, and then promoted."""
    primary, standby = stage.pair.servers if stage.pair.primary is stage.pair.servers[0] else stage.pair.servers[::-1]
    primary.sql("ALTER SYSTEM SET wal_log_hints = 'on'")
    primary.stop()
    primary.start()
    assert soon(lambda: primary.is_followed("sync"), 60)
    used = Used(stage)
    stage.pair.asynchronous()
    stage.network.cut(primary.machine, standby.machine)
    used.type()
    primary.kill()
    stage.network.mend(primary.machine, standby.machine)
    stage.pair.fail_over()
    used.none_again(stage.verifiers)
    primary.rewind(to=standby)
    standby.waits_for("*")
    assert soon(lambda: standby.is_followed("sync"), 60)
    beaten_twice(stage)
    standby.kill()
    stage.pair.fail_over()
    used.none_again(stage.verifiers)
    assert stage.twice() == []


@whole
@pytest.mark.decisive
def test_a_second_cluster_with_the_same_rows_makes_nothing_good_again(stage, monkeypatch):
    """One verifier is started over it: a copy of the same system, on the same timeline. Nobody may use the first one
    then: what is accepted here, the other one does not know (docs/fleet.md)."""
    two = stage.verifiers[1]
    used = Used(stage)
    second = Server(stage.hosts[2].machine)
    second.certify(stage.network.scratch)
    backup = second.base_backup(of=stage.pair.primary)
    try:
        beaten_twice(stage)
        used.type()
        assert two.stop() == 0
        second.restore(backup)
        # By the certificate's name, which is that of the servers.
        words = stage.words().replace("sslmode=verify-full", "sslmode=verify-ca")
        monkeypatch.setattr(stage, "words", lambda user="sallyport_verifier": words.replace(
            words.split()[0], f"host={second.machine.name}"))
        monkeypatch.setattr(stage.pair, "primary", second)
        # It waits a minute for the other one, which says nothing here, and then ends codes once more.
        two.start(limit=90)
        used.none_again([two], losses=("1", "2"))
    finally:
        second.kill()


@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=whole)], ids=["beside another", "alone"])
def test_a_disk_of_a_verifier_that_is_put_back_makes_nothing_good_again(stage, alone):
    """Where another one runs it vouches, and nothing was lost; else nobody can say so."""
    one, two = stage.verifiers
    used = Used(stage)
    two.machine.sh(f"rm -rf /root/disk; cp -a {DIRECTORY} /root/disk")
    used.type()
    two.kill()
    if alone:
        one.kill()
    two.machine.sh(f"rm -rf {DIRECTORY}; cp -a /root/disk {DIRECTORY}")
    start = time.monotonic()
    two.start(limit=90)
    assert (time.monotonic() - start > 50) == alone
    if alone:
        one.start()
    used.none_again(stage.verifiers, losses=("1" if alone else "0",))


@whole
@pytest.mark.decisive
def test_machines_that_are_put_back_together_make_nothing_good_again(stage):
    """The database and both verifiers, as they were at one moment: nothing on them shows it. The first host does,
    by the mark on its disk."""
    primary, verifiers, host = stage.pair.primary, stage.verifiers, stage.hosts[2]
    used = Used(stage)
    host.forget()
    host.prepare({"alice": 3001})
    assert host.join(stage.invite(host.name)).returncode == 0
    assert [verifier.stop() for verifier in verifiers] == [0, 0]
    backup = primary.base_backup(of=primary)
    for verifier in verifiers:
        verifier.machine.sh(f"rm -rf /root/disk; cp -a {DIRECTORY} /root/disk")
    together(*[verifier.start for verifier in verifiers])
    used.type()
    # As long as was lost there is time to find it.
    for _ in range(4):
        beaten_twice(stage)
    mark = host.machine.path("/var/lib/sallyport/reserve/mark")
    host.start()
    assert soon(mark.exists)
    host.kill()
    for verifier in verifiers:
        verifier.kill()
    stage.pair.standby.kill()
    primary.restore(backup)
    for verifier in verifiers:
        verifier.machine.sh(f"rm -rf {DIRECTORY}; cp -a /root/disk {DIRECTORY}")
    together(*[verifier.start for verifier in verifiers])
    assert stage.accepted() == [], "the logins are lost"
    assert stage.sql("SELECT distrust FROM fleet") == [["0"]], "nothing shows it"
    host.start()
    assert soon(lambda: stage.sql("SELECT distrust > 0 FROM fleet") == [["t"]])
    used.none_again(verifiers)
