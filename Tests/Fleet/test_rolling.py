"""Programs of two versions in one fleet, as while it is upgraded, under load. SALLYPORT_FORMER is where those of the
former version are: Tests/Fleet/former builds them.

test_a_fleet_is_brought_to_the_next_version_and_nobody_is_refused
test_module_service_and_verifier_of_either_version_work_together
test_a_block_and_a_pass_wait_for_the_end_of_the_migration_and_hold_on_hosts_of_either_version
"""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from support.codes import totp
from support.fleet import ACCEPTED, REFUSED, VERIFIER
from support.host import MODULE
from support.logins import code_of, enrolled
from support.service import soon
from support.stage import DIRECTORY
from support.whole import rounds

FORMER = Path(os.environ.get("SALLYPORT_FORMER", ""))
OLD_VERIFIER, OLD_SERVICE = FORMER / "sbin/sallyport-verifier", FORMER / "sbin/sallyportd"
OLD_MODULE, OLD_COMMAND = FORMER / "lib/pam_sallyport.so", FORMER / "bin/sallyport"

pytestmark = pytest.mark.skipif(FORMER == Path(), reason="no programs of a former version: SALLYPORT_FORMER")


class Logins:
    """People who log in once each, on one host after the other, and type the same code on the next one, too."""

    def __init__(self, cast, names):
        self.cast, self.over = cast, threading.Event()
        self.done, self.twice, self.kills = [], [], []
        # What is happening, for the reader of a refusal.
        self.now = "nothing yet"
        self._people = enumerate(names)

    def _work(self):
        while not self.over.is_set():
            place, name = next(self._people, (0, None))
            if name is None:
                return
            typed, [one, two, _] = code_of(name), (self.cast.hosts[place % 3:] + self.cast.hosts[:place % 3])
            start, now = time.monotonic(), self.now
            good, said = one.login(name, typed)
            self.done.append((start, time.monotonic(), good, (one.name, name, now, self.now, said)))
            if good and two.enters(name, typed):
                self.twice.append(name)

    def __enter__(self):
        self.over.clear()
        self._threads = [threading.Thread(target=self._work) for _ in range(3)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self._threads:
            thread.join()

    def more(self):
        """This number of logins more, as the fleet is now."""
        before = len(self.done)
        assert soon(lambda: len(self.done) >= before + rounds(30, 9), 120), "nobody is left, or it takes too long"

    def kill(self, verifier):
        start = time.monotonic()
        verifier.kill()
        self.kills.append((start, time.monotonic()))

    def refused(self):
        """Those refused while a verifier was killed, and all others."""
        found = [], []
        for start, end, good, who in self.done:
            if not good:
                found[not any(start < until and since < end for since, until in self.kills)].append(who)
        return found


@pytest.fixture
def former(theatre):
    """Both verifiers of the former version; of the three hosts the service, the module, and all of it."""
    one, two, three = theatre.hosts
    for program in OLD_VERIFIER, OLD_SERVICE, OLD_MODULE, OLD_COMMAND:
        assert one.machine.path(program).exists(), f"{program}: not there, or in /tmp: each machine has its own"
    for verifier in theatre.verifiers:
        verifier.program = OLD_VERIFIER
    one.use(service=OLD_SERVICE)
    two.use(module=OLD_MODULE)
    three.use(OLD_MODULE, OLD_SERVICE, OLD_COMMAND)
    try:
        theatre.begin()
        theatre.gather()
        yield theatre
    finally:
        theatre.end()
        for verifier in theatre.verifiers:
            verifier.program = VERIFIER
        for host in theatre.hosts:
            host.use()


def new(cast, *words, user="sallyport_verifier", program=VERIFIER):
    """A command on a verifier's machine, of the next version unless another one is named: (status, what it said)."""
    done = cast.verifiers[1].machine.run(
        program, *words, "--directory", DIRECTORY, "--database", cast.words(user), check=False)
    return done.returncode, done.stdout + done.stderr


def migrate(cast):
    """Whether the tables of the next version have more. If so, its verifiers do not start before."""
    status, said = new(cast, "init", user="postgres")
    if status != 0:
        assert "sallyport-verifier migrate" in said, said
        for words in ["run"], ["migrate", "--finish"]:
            status, said = new(cast, *words)
            assert status == 1 and "sallyport-verifier migrate" in said, said
    before = cast.sql("SELECT schema FROM fleet")
    status, said = new(cast, "migrate", user="postgres")
    assert status == 0, said
    return cast.sql("SELECT schema FROM fleet") != before


def bring(verifier, program):
    """As its package does it."""
    assert verifier.stop() == 0
    verifier.program = program
    verifier.start()


def split(cast):
    """The first two hosts ask the first verifier from now on, the third one the other: whichever answered last."""
    for host, away in zip(cast.hosts, (1, 1, 0)):
        host.stop()
        cast.network.cut(host.machine, cast.verifiers[away].machine, "unreachable")
        host.start()
        host.login("alice", "x")
    cast.network.mend_all()


def saves(cast):
    """How many states each verifier has saved, each after a code that it verified."""
    [counts] = cast.sql("""SELECT coalesce(sum(n) FILTER (WHERE verifier = 'one'), 0),
      coalesce(sum(n) FILTER (WHERE verifier = 'two'), 0) FROM worker WHERE worker > 0""")
    return [int(count) for count in counts]


def under(load, what, change):
    """Both verifiers answer, that happens, and the logins go on. What it gave."""
    split(load.cast)
    before = saves(load.cast)
    with load:
        load.more()
        after = saves(load.cast)
        assert all(map(int.__gt__, after, before)), (before, after)
        load.now = what
        given = change()
        load.now = f"after {what}"
        load.more()
    return given


def beside(first, second, name, other):
    """Of each of them: what one has accepted the other one refuses."""
    for (accepts, refuses), who in (((first, second), name), ((second, first), other)):
        typed = code_of(who)
        assert [verifier.type(who, typed, host="tests") for verifier in (accepts, refuses)] == [ACCEPTED, REFUSED]


def test_a_fleet_is_brought_to_the_next_version_and_nobody_is_refused(former, figure):
    one, two = former.verifiers
    [[version]] = former.sql("SELECT schema FROM fleet")
    names, four = [f"user{number}" for number in range(rounds(2500, 1500))], ["a", "b", "c", "d"]
    enrolled(former, names + four)
    load = Logins(former, names)
    has_changed = under(load, "migrate", lambda: migrate(former))

    def kill():
        load.kill(one)
        if has_changed:
            status, said = new(former, "migrate", "--finish")
            assert status == 1 and "alive: one" in said, "it was silent for less than 10 seconds"

    # Forth, back, and forth again.
    under(load, "two of the next version", lambda: bring(two, VERIFIER))
    beside(one, two, "a", "b")
    under(load, "two back", lambda: bring(two, OLD_VERIFIER))
    under(load, "two forth again", lambda: bring(two, VERIFIER))
    beside(one, two, "c", "d")
    for _ in range(rounds(10, 2)):
        under(load, "a kill", kill)
        one.start()
        # Former versions say two seconds after their start that they are there.
        assert soon(lambda: former.sql("""SELECT now > clock_timestamp() - interval '3 s' FROM worker
          WHERE verifier = 'one' AND worker = 0""") == [["t"]])
    under(load, "a kill", kill)
    with load:
        assert soon(lambda: new(former, "migrate", "--finish")[0] == 0, 30)
        finished = time.monotonic() - load.kills[-1][1]
        load.more()
        one.program = VERIFIER
        one.start()
        load.more()
    # A host is brought where nobody logs in meanwhile: for its service, systemd would keep the sockets.
    [*_, host] = former.hosts
    host.stop()
    host.use()
    host.prepare({})
    host.start()
    with load:
        load.more()
    known, others = load.refused()
    figure(f"from tables {version} to the next version: {len(load.done)} logins, {len(known)} of them refused as a "
           f"verifier was killed {len(load.kills)} times, {len(others)} else")
    assert load.twice == [] and others == [] and former.twice() == []
    if has_changed:
        figure(f"the migration could be finished {finished:.1f} s after the last of the former version was killed")
        assert former.sql("SELECT needs = schema AND writes = schema FROM fleet") == [["t"]]
        status, said = new(former, "run", program=OLD_VERIFIER)
        assert status == 1 and "install a newer one" in said, said


def test_module_service_and_verifier_of_either_version_work_together(former, figure):
    """On each host somebody enrolls; a code, a backup code, each of them again, and a wrong one."""
    hosts = former.hosts

    def log_in(names):
        people = {name: 9001 + number for number, name in enumerate(names)}
        for host in hosts:
            host.accounts(people)
        for number, name in enumerate(names):
            one, two = hosts[number], hosts[(number + 1) % 3]
            secret, _, backup = one.enroll(name)
            [later] = totp(secret, at=time.time() + 30)
            assert [host.enters(name, later) for host in (one, one, two)] == [True, False, False], (one.name, name)
            assert [host.enters(name, backup[0]) for host in (two, two, one)] == [True, False, False], (two.name, name)
            assert not two.enters(name, "000000") and two.enters(name, backup[1]), (two.name, name)

    log_in(["before1", "before2", "before3"])
    migrate(former)
    for verifier in former.verifiers:
        bring(verifier, VERIFIER)
    log_in(["beside1", "beside2", "beside3"])
    status, said = new(former, "migrate", "--finish")
    assert status == 0, said
    log_in(["after1", "after2", "after3"])
    # From now on what asks with a seal is answered nothing else. A service of the former version goes on.
    assert soon(lambda: former.sql("SELECT host FROM revoked WHERE host LIKE '%/sealed'") == [[f"{hosts[1].name}/sealed"]])
    log_in(["last1", "last2", "last3"])
    assert former.twice() == []
    same = Path(MODULE).read_bytes() == OLD_MODULE.read_bytes()
    figure(f"the module of the former version is {'the same, byte for byte' if same else 'another one'}")


def test_a_block_and_a_pass_wait_for_the_end_of_the_migration_and_hold_on_hosts_of_either_version(former):
    """A verifier of the former version could not read the row, and her phone must stay good until then."""
    one, _, three = former.hosts
    # This one is of the next version; the others stay as they are.
    one.stop()
    one.use()
    one.prepare({})
    one.start()
    secret, _, backup = one.enroll("alice")
    waiting = ["block", "alice"], ["pass", "alice"], ["pass", "alice", "--enroll"]

    def refused(hint):
        for words in waiting:
            done = one.sallyport(*words)
            assert done.returncode != 0 and hint in done.stderr, (words, done.stdout + done.stderr)

    def done(*words):
        done = one.sallyport(*words)
        assert done.returncode == 0, (words, done.stdout + done.stderr)
        return done.stdout

    def enters(typed):
        """On which hosts; of a code that is good, on the first of them alone."""
        return [host.name for host in former.hosts if host.enters("alice", typed)]

    if not migrate(former):
        pytest.skip("the former version has the same tables")
    # A verifier of the former version answers no such question.
    refused("sallyport: ")
    assert three.enters("alice", backup[0])
    for verifier in former.verifiers:
        bring(verifier, VERIFIER)
        refused("sallyport: ")
    refused("migrate --finish")
    assert three.enters("alice", backup[1])
    status, said = new(former, "migrate", "--finish")
    assert status == 0, said
    done("block", "alice")
    assert enters(backup[2]) == []
    done("block", "alice", "--undo")
    assert enters(backup[2]) == [one.name], "a refused code is not used"
    given = json.loads(done("pass", "alice", "--enroll", "--json"))["pass"]
    other, _, codes = one.enroll("alice", given)
    [old] = totp(secret, at=time.time() + 30)
    assert [enters(typed) for typed in (old, backup[3], given)] == [[], [], []]
    assert three.enters("alice", codes[0]) and one.enters("alice", codes[1])
    done("restore", "alice", "--yes")
    [replaced] = totp(other, at=time.time() + 30)
    assert [enters(typed) for typed in (replaced, codes[2])] == [[], []]
    [old] = totp(secret, at=time.time() + 30)
    assert three.enters("alice", old) and former.twice() == []
