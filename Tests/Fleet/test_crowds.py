"""Many hosts at one verifier, and a machine that floods it: crowd.c plays all of them.

test_a_new_host_is_verified_within_a_second_beside_a_flood_of_handshakes
test_a_crowd_that_was_cut_off_is_served_again_within_a_minute
"""

import base64
import contextlib
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support.codes import totp
from support.fleet import DONE, QUESTION, SECRET, backends, host_key, host_rows, seconds
from support.machines import ENDS_WITH_US, run
from support.service import attempt, request, soon
from support.stage import network_of
from support.whole import rounds

BASE32 = base64.b32encode(SECRET).decode()
ACCEPTED = 0xA5
# Addresses of the crowd: each is one machine to a verifier.
SOURCES = 50


@pytest.fixture
def island():
    """Processes that are started meanwhile are on a network of their own, which is one cable."""
    with subprocess.Popen([*ENDS_WITH_US, "unshare", "--net", "sh", "-c", "ip link set lo up; echo up; exec sleep 100000"],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        with network_of(process.pid):
            yield
        process.kill()


@pytest.fixture
def program(tmp_path_factory):
    built = tmp_path_factory.mktemp("crowd") / "crowd"
    run("cc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-o", built, Path(__file__).with_name("crowd.c"),
        "-lssl", "-lcrypto")
    return built


class Played:
    """One run of crowd.c, and the lines that it has printed, as numbers."""

    def __init__(self, *words):
        self.process = subprocess.Popen([*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []

    def listen(self):
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self):
        for line in self.process.stdout:
            self.lines.append([*map(int, line.split())])

    def after_next(self, number=1):
        """This number of those that it prints from now on."""
        have = len(self.lines)
        assert soon(lambda: len(self.lines) >= have + number or self.process.poll() is not None, 30)
        assert self.process.poll() is None, "crowd.c gave up"
        return self.lines[have:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(20)


class Crowd(Played):
    """Hosts of the fleet; `there`: how many of them are, as it said last."""

    def __init__(self, program, fleet, count):
        super().__init__(program, "hosts", count, SOURCES)
        self.count = count
        pins = {f"crowd{number}": self.process.stdout.readline().strip() for number in range(count)}
        names, key = list(pins), (fleet.directory / "key").read_bytes()
        for start in range(0, count, 250):  # what one argument of psql takes
            fleet.sql(host_rows(key, [(name, False) for name in names[start:start + 250]], pins))

    def come(self, verifier):
        self.process.stdin.write(f"{verifier.address[1]}\n")
        self.process.stdin.flush()
        return self.listen()

    @property
    def there(self):
        return self.lines[-1][0] if self.lines else 0

    def until(self, there, limit):
        """How long it takes until this number is there."""
        start = time.monotonic()
        assert soon(lambda: self.there == there, limit), f"{self.there} of {self.count} after {limit} s"
        return time.monotonic() - start


def greeted(verifier, host):
    """A line, as a host gets it: where there is no room it tries twice more."""
    for pause in 0.03, 0.09:
        with contextlib.suppress(OSError):
            line = verifier.line(host)
            if line.greeting:
                return line
        time.sleep(pause)
    return verifier.line(host)


def logged_in(verifier, host, name, code):
    """How long a login takes on a host that connects for it, in seconds."""
    start = time.monotonic()
    with greeted(verifier, host) as line:
        line.ask(QUESTION, line.question(request(name.encode(), 1, b"\0\1")))
        answer = line.ask(QUESTION, line.question(attempt(name.encode(), code.encode())))
    assert answer[1][1] == ACCEPTED, (name, answer)
    return time.monotonic() - start


def people(verifier, count):
    names = [f"user{number}" for number in range(count)]
    assert {verifier.enroll(name) for name in names} == {DONE}
    return names, totp(BASE32)[0]


# shows: handshakes
# decisive
def test_a_new_host_is_verified_within_a_second_beside_a_flood_of_handshakes(own_fleet, island, program, figure):
    fleet, news = own_fleet, [f"new{number}" for number in range(rounds(9, 3))]
    fleet.sql(host_rows((fleet.directory / "key").read_bytes(), [(name, False) for name in news]))
    for name in news:
        assert host_key(name).context
    with contextlib.ExitStack() as exit:
        crowd = exit.enter_context(Crowd(program, fleet, rounds(1000, 100)))
        verifier = fleet.verifier("one")
        names, code = people(verifier, len(news))
        crowd.come(verifier).until(crowd.count, 120)
        flood = exit.enter_context(Played(program, "flood", verifier.address[1], 750)).listen()
        flood.after_next(2)
        taken = []
        for host, name in zip(news, names):
            # Some hundred handshakes are begun between two of them.
            begun = flood.after_next()
            taken.append(logged_in(verifier, host, name, code))
            assert begun[0][0] > 100
        assert soon(lambda: crowd.there == crowd.count, 20), "the flood took places of hosts"
        figure(f"a new host beside {crowd.count} hosts and 750 handshakes a second from one machine: "
               f"{max(taken) * 1000:.0f} ms at most, of {len(taken)}; load {os.getloadavg()[0]:.1f}")
        assert max(taken) < 1


def memory(process):
    return int(next(line for line in Path(f"/proc/{process}/status").read_text().splitlines()
                    if line.startswith("VmRSS")).split()[1]) / 1024


# decisive
def test_a_crowd_that_was_cut_off_is_served_again_within_a_minute(own_fleet, island, program, figure):
    fleet = own_fleet
    with Crowd(program, fleet, rounds(10_000, 200)) as crowd:
        verifier = fleet.verifier("one")
        names, code = people(verifier, rounds(200, 20))
        process, empty = verifier.process.pid, memory(verifier.process.pid)
        came = crowd.come(verifier).until(crowd.count, 180)
        full, working = memory(process), backends(fleet.sql)
        before, start = (seconds(process), sum(map(seconds, working))), time.monotonic()
        idle = crowd.after_next(rounds(20, 2))
        passed = time.monotonic() - start
        busy = [(seconds(process) - before[0]) / passed, (sum(map(seconds, working)) - before[1]) / passed]
        taken = sorted(logged_in(verifier, "web1", name, code) for name in names)
        run("ip", "link", "set", "lo", "down")
        crowd.until(0, 60)
        run("ip", "link", "set", "lo", "up")
        back = crowd.until(crowd.count, 180)
        figure(
            f"{crowd.count} hosts at one verifier: there after {came:.1f} s, {empty:.0f} MB without and {full:.0f} with "
            f"them ({(full - empty) * 1024 / crowd.count:.1f} kB each), {memory(process):.0f} after the cut; idle: "
            f"{busy[0]:.2f} processors of the verifier and {busy[1]:.2f} of the database, p99 of a ping "
            f"{max(line[3] for line in idle) / 1000:.1f} ms; logins on new lines: p50 {taken[len(taken) // 2] * 1000:.1f}, "
            f"p99 {taken[len(taken) * 99 // 100] * 1000:.1f} ms; after a cut all back in {back:.1f} s, "
            f"{sum(line[5] for line in crowd.lines)} times refused for lack of room; load {os.getloadavg()[0]:.1f}")
        assert back < 60
        assert fleet.twice() == []
