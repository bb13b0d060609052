"""A fleet over a database that Patroni keeps: leaders are switched over and killed while people log in.

  Tests/Setup/setup patroni; SALLYPORT_WHOLE=1 Tests/Fleet/run -k patroni    20 rounds

test_patroni_replaces_leaders_and_nothing_is_accepted_twice
"""

import time

import pytest

from support.patroni import KeptPair, missing
from support.service import soon
from support.whole import WHOLE, rounds
from test_failover import Load, first_login, nothing_twice, people, verifies


@pytest.fixture
def kept(theatre):
    """The stage, with other servers for the time of a test."""
    if not WHOLE:
        pytest.skip("without SALLYPORT_WHOLE=1")
    if missing():
        pytest.skip(f"missing: {' '.join(missing())}; Tests/Setup/setup patroni")
    usual = theatre.pair
    for server in usual.servers:
        server.stop()
    try:
        with KeptPair(theatre.network, *theatre.machines[:2], theatre.machines[6]) as theatre.pair:
            theatre.new_database()
            yield theatre
            theatre.end()
    finally:
        theatre.pair = usual
        usual.primary.make()
        usual.renew()


def nothing_was_lost(kept, way):
    """Each promotion had all that was acknowledged, and no verifier takes it for less."""
    said = [line for verifier in kept.verifiers for line in verifier.machine.log.since(0) if "refused:" not in line]
    assert kept.sql("SELECT distrust FROM fleet") == [["0"]], "\n".join([way, *said[-40:]])


@pytest.mark.decisive
def test_patroni_replaces_leaders_and_nothing_is_accepted_twice(kept, figure):
    pair, took = kept.pair, {}

    def killed():
        pair.primary.kill()

    ways = {"switched over": pair.switch_over, "killed": killed}
    for turn in range(rounds(20, 3)):
        way = list(ways)[turn % len(ways)]
        names = people(kept.verifiers[0], f"turn{turn}user", 60)
        spare = people(kept.verifiers[0], f"turn{turn}spare", 40)
        before = pair.primary
        with Load(kept.verifiers, names) as load:
            assert soon(lambda: len(load.let_in) > 20)
            start = time.monotonic()
            ways[way]()
            assert soon(lambda: pair.primary not in (None, before), 90), pair.log()
            load.over.set()
            assert soon(lambda: all(verifies(verifier, "nobody") for verifier in kept.verifiers), 60)
            nothing_was_lost(kept, way)
            first_login(kept.verifiers[turn % 2], spare)
            took.setdefault(way, []).append(time.monotonic() - start)
        if not before.process.alive:
            before.start()
        assert soon(lambda: all(verifies(verifier, "nobody") for verifier in kept.verifiers), 60)
        assert set(load.let_in) <= set(kept.accepted()), (way, "the standby had all of them")
        nothing_twice(kept, load, kept.verifiers[::-1])
        assert soon(pair.is_whole, 120), pair.log()
    for way, all_of in took.items():
        figure(f"Patroni, leader {way}: first login after {max(all_of):.1f} s at most, {len(all_of)} times")
