"""Programs of two versions in one fleet, as while it is upgraded, under load. SALLYPORT_FORMER is where those of the
former version are: Tests/Fleet/former builds them.

test_a_fleet_is_brought_to_the_next_version_and_nobody_is_refused
"""

import os
import threading
import time
from pathlib import Path

import pytest
from support.fleet import ACCEPTED, REFUSED, VERIFIER
from support.host import MODULE, SERVICE
from support.logins import code_of, enrolled
from support.service import soon
from support.stage import DIRECTORY, rounds

FORMER = Path(os.environ.get("SALLYPORT_FORMER", "/nowhere"))
OLD_VERIFIER, OLD_SERVICE = FORMER / "sbin/sallyport-verifier", FORMER / "sbin/sallyportd"
OLD_MODULE = FORMER / "lib/pam_sallyport.so"

pytestmark = pytest.mark.skipif(not OLD_VERIFIER.exists(), reason="no programs of a former version: SALLYPORT_FORMER")


class Logins:
    """People who log in once each, on one host after the other, and type the same code on the next one, too."""

    def __init__(self, cast, names, threads=3):
        self.cast, self.over = cast, threading.Event()
        self.done, self.twice = [], []
        self._threads = [threading.Thread(target=self._work, args=(number, names[number::threads]))
                         for number in range(threads)]

    def _work(self, number, names):
        for place, name in enumerate(names, number):
            if self.over.is_set():
                return
            typed, [one, two, _] = code_of(name), (self.cast.hosts[place % 3:] + self.cast.hosts[:place % 3])
            start = time.monotonic()
            good, said = one.login(name, typed)
            self.done.append((start, time.monotonic(), good, (one.name, name, said)))
            if good and two.enters(name, typed):
                self.twice.append(name)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self._threads:
            thread.join()

    def more(self):
        """So many more, as the fleet is now."""
        before = len(self.done)
        assert soon(lambda: len(self.done) >= before + rounds(30, 9), 120), "nobody is left, or it takes too long"

    def refused(self, kill):
        """Whoever was, but for those who had typed the code when a verifier was killed."""
        return [who for start, end, good, who in self.done if not good and not start < kill < end]


@pytest.fixture
def former(theatre):
    """Both verifiers of the former version; module and service of one of each on two hosts."""
    one, two, three = theatre.hosts
    for verifier in theatre.verifiers:
        verifier.program = OLD_VERIFIER
    one.program, two.module = OLD_SERVICE, OLD_MODULE
    theatre.begin()
    theatre.gather()
    yield theatre
    theatre.end()
    for verifier in theatre.verifiers:
        verifier.program = VERIFIER
    for host in one, two, three:
        host.module, host.program = MODULE, SERVICE


def bring(verifier, program):
    """As its package does it."""
    assert verifier.stop() == 0
    verifier.program = program
    verifier.start()


def test_a_fleet_is_brought_to_the_next_version_and_nobody_is_refused(former, figure):
    one, two = former.verifiers
    [[version]] = former.sql("SELECT schema FROM fleet")
    names, four = [f"user{number}" for number in range(rounds(3000, 1000))], ["a", "b", "c", "d"]
    enrolled(former, names + four)

    def new(*words, user="sallyport_verifier", program=VERIFIER):
        """A command on a verifier's machine, of the next version unless another one is named."""
        done = two.machine.run(program, *words, "--directory", DIRECTORY, "--database", former.words(user), check=False)
        return done.returncode, done.stdout + done.stderr

    def beside(first, second, name, other):
        """Of each version: what one has accepted the other one refuses."""
        for (judge, checks), who in (((first, second), name), ((second, first), other)):
            typed = code_of(who)
            assert [verifier.type(who, typed, host="tests") for verifier in (judge, checks)] == [ACCEPTED, REFUSED]

    with Logins(former, names) as load:
        load.more()
        status, said = new("migrate", user="postgres")
        assert status == 0, said
        has_changed = former.sql("SELECT schema FROM fleet") != [[version]]
        load.more()
        # Forth, back, and forth again.
        bring(two, VERIFIER)
        beside(one, two, "a", "b")
        load.more()
        bring(two, OLD_VERIFIER)
        load.more()
        bring(two, VERIFIER)
        secret, _, backup = former.hosts[0].enroll("alice")
        assert former.hosts[1].enters("alice", backup[0]) and not former.hosts[0].enters("alice", backup[0])
        assert not former.hosts[2].enters("alice", "000000")
        beside(one, two, "c", "d")
        load.more()
        if has_changed:
            status, said = new("migrate", "--finish")
            assert status == 1 and "alive: one" in said, said
        kill = time.monotonic()
        one.kill()
        load.more()
        assert soon(lambda: new("migrate", "--finish")[0] == 0, 30)
        one.program = VERIFIER
        one.start()
        load.more()
    assert former.hosts[1].enters("alice", backup[1]) and not former.hosts[0].enters("alice", backup[1])
    refused = load.refused(kill)
    known = sum(not good for _, _, good, _ in load.done) - len(refused)
    figure(f"from tables {version} to the next version: {len(load.done)} logins, {known} of them refused as a "
           f"verifier was killed, {len(refused)} else")
    assert load.twice == [] and refused == [], refused
    assert former.twice() == []
    if has_changed:
        assert former.sql("SELECT needs = schema AND writes = schema FROM fleet") == [["t"]]
        status, said = new("run", program=OLD_VERIFIER)
        assert status == 1 and "install a newer one" in said, said
