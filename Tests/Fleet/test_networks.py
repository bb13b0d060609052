"""Networks and clocks that fail: every login is answered in its time, and nothing is accepted twice.

test_every_login_is_answered_and_no_code_good_twice_whatever_the_network_does
test_a_verifier_whose_clock_is_off_stands_aside_and_the_others_refuse_nobody
test_where_the_clock_of_the_database_is_off_nobody_is_refused
"""

import contextlib
import itertools
import signal

import pytest

from support.fleet import ACCEPTED, DONE, REFUSED, TROUBLE
from support.logins import Load, code_of, enrolled, secret_of
from support.machines import ROOT, run
from support.service import soon
from support.weather import Weather
from support.whole import WHOLE, rounds

# A call of the module, in seconds; beside other work nobody promises it.
LONGEST = 5.5
OFF = 60  # seconds


# MARK: networks

@contextlib.contextmanager
def cut(network, *cables):
    """Packets there are dropped in silence."""
    for ends in cables:
        network.cut(*ends)
    try:
        yield
    finally:
        for ends in cables:
            network.mend(*ends)


@contextlib.contextmanager
def stopped(verifier):
    """Its machine takes connections, and whatever is sent; nothing comes back."""
    verifier.send(signal.SIGSTOP)
    try:
        yield
    finally:
        verifier.send(signal.SIGCONT)


def faults(cast):
    """Each with those hosts where people get in meanwhile."""
    network, hosts = cast.network, [host.machine for host in cast.hosts]
    verifiers, names = [verifier.machine for verifier in cast.verifiers], [host.name for host in cast.hosts]
    servers = [server.machine for server in cast.pair.servers]
    yield "two of three hosts cut off", cut(network, *[[host] for host in hosts[:2]]), names[2:]
    yield "5 of 100 packets lost", Weather(network, hosts + servers, verifiers, loss=5), names
    if not WHOLE:
        return
    yield "200 ms there and back", Weather(network, hosts, verifiers, delay=0.1), names
    yield "a verifier that is silent", cut(network, [verifiers[0]]), names
    yield "a verifier whose database is silent", cut(network, *[[verifiers[1], one] for one in servers]), names
    yield "a verifier that accepts and never answers", stopped(cast.verifiers[1]), names
    yield "all verifiers silent", cut(network, *[[one] for one in verifiers]), []


def lets_in(host, name):
    """By its service, which may still have put the verifiers aside."""
    return host.enters(name, code_of(name))


@pytest.mark.decisive
def test_every_login_is_answered_and_no_code_good_twice_whatever_the_network_does(cast, figure):
    planned = list(faults(cast))
    people = [f"user{number}" for number in range(rounds(120, 10) * len(planned))]
    spare = [f"spare{number}" for number in range(60)]
    enrolled(cast, people + spare)
    turn = itertools.cycle(spare)
    for number, (what, fault, open_hosts) in enumerate(planned):
        assert all(soon(lambda host=host: lets_in(host, next(turn)), 60) for host in cast.hosts)
        names = people[number::len(planned)]
        # Who is let in before it is of no use to see whether anybody is let in meanwhile.
        before, meanwhile = names[::2], names[1::2]
        with Load(cast, before) as load:
            assert soon(lambda: load.tries > 2, 60)
            with fault as weather:
                load.begin(meanwhile)
                # Few people may all have been let in by one host.
                hosts = open_hosts if WHOLE else []
                assert soon(lambda: load.tries > rounds(120, 10) and all(load.by[name] for name in hosts), 120), (
                    what, load.by)
                let_in, slowest, tries = load.by.copy(), load.slowest, load.tries
                assert weather is None or weather.passed > 0
        figure(f"{what}: slowest call {slowest:.2f} s of {tries}, let in meanwhile {sum(let_in.values())}")
        assert cast.all_judge(), what
        load.try_again()
        assert slowest < LONGEST or not WHOLE, what


# MARK: clocks

@pytest.fixture
def clock(stage):
    """Preloaded by processes that are told so: the system's, this many seconds ahead."""
    library = stage.network.scratch / "clock.so"
    run("cc", "-fPIC", "-shared", "-o", library, ROOT / "Tests/Acceptance/clock/clock.c")
    return lambda ahead: {"LD_PRELOAD": str(library), "AHEAD": str(ahead)}


def says(verifier, mark, text):
    """Whether it says so soon, behind that line."""
    return soon(lambda: any(text in line for line in verifier.machine.log.since(mark)), 60)


def people(stage):
    names = [f"user{number}" for number in range(8)]
    assert {stage.enroll(name, secret_of(name)) for name in names} == {DONE}
    return names


# shows: fleet-clock
@pytest.mark.parametrize("ahead", [OFF, -OFF] if WHOLE else [OFF])
def test_a_verifier_whose_clock_is_off_stands_aside_and_the_others_refuse_nobody(stage, clock, ahead):
    off, right = stage.verifiers
    names, mark = people(stage), len(off.machine.log.lines)
    off.kill()
    off.start(**clock(ahead))
    # From its first answer on.
    used = {}
    for name in names:
        assert off.type(name, code_of(name)) == TROUBLE
        used[name] = code_of(name)
        assert right.type(name, used[name]) == ACCEPTED
    assert says(off, mark, "ALERT: this clock is")
    off.kill()
    off.start()
    assert off.type(names[0], used[names[0]]) == REFUSED
    assert stage.twice() == []


@pytest.mark.parametrize("ahead", [OFF, -OFF] if WHOLE else [-OFF])
def test_where_the_clock_of_the_database_is_off_nobody_is_refused(stage, clock, ahead):
    primary, names = stage.pair.primary, people(stage)
    marks = [len(verifier.machine.log.lines) for verifier in stage.verifiers]
    primary.kill()
    primary.start(**clock(ahead))
    for verifier, mark in zip(stage.verifiers, marks):
        assert says(verifier, mark, "another verifier's agrees with this one, so these verifiers use")
    for number, name in enumerate(names):
        assert stage.verifiers[number % 2].type(name, code_of(name)) == ACCEPTED
    assert stage.twice() == []
    # The next one is started as usual.
    primary.kill()
