"""What a login of a fleet costs, and how that grows with hosts and with people: lines.c asks a verifier as
a number of hosts, and the module asks through sallyportd. One machine does all of it, the asking too."""

import contextlib
import os
import struct
import subprocess
import threading
import time
from pathlib import Path
from statistics import median

import radius
from machine import BUILT, SCRATCH, environment, read_times
from modules import BASE32, PERIOD, code
from report import OF_FLEETS, OURS, percentile
from support import fleet
from support.fleet import ACCEPTED, DONE, Cluster, Line, Verifier, host_rows
from support.sallyport import MODULE, Services
from support.service import Service, request, soon
from support.service import attempt as typed

LINES = BUILT / "lines"
SIZES = (1, 10, 100, 1000)
AT_ONCE = 64  # each host asks for one login at a time; at most this number do
FIRST = -4  # the oldest time step that is taken, of five


class Fleet:
    """A database on the disk that is measured, one verifier, and keys of 1,000 hosts."""

    def __init__(self, disk):
        self.cluster = Cluster(place=disk.place, settings=("shared_buffers=512MB", "max_wal_size=4GB"))

    def __enter__(self):
        with contextlib.ExitStack() as exit:
            self._make(exit)
            self._exit = exit.pop_all()
        return self

    def __exit__(self, *what):
        self._exit.close()

    def _make(self, exit):
        exit.enter_context(self.cluster)
        self.directory, self.keys = SCRATCH / "fleet", SCRATCH / "hosts"
        for made in self.directory, self.keys:
            made.mkdir(mode=0o700)
        self.cluster.sql("CREATE DATABASE bench")
        words = f"{self.cluster.words} dbname=bench user="
        self.words = words + "sallyport_verifier"
        subprocess.run([fleet.VERIFIER, "init", "--database", words + "postgres", "--directory", self.directory],
                       check=True, capture_output=True)
        made = subprocess.run([LINES, "keys", str(max(SIZES)), self.keys], check=True, capture_output=True, text=True)
        self.names = [f"host{number}" for number in range(max(SIZES))]
        pins = dict(zip(self.names, made.stdout.split()))
        for start in range(0, len(self.names), 250):  # what one argument of psql takes
            rows = [(name, True) for name in self.names[start:start + 250]]
            self.sql(host_rows((self.directory / "key").read_bytes(), rows, pins))
        self.verifier = Verifier(self.words, self.directory, "one", "--host-wrong-codes", "1000000")
        self.verifier.listens = lambda: self.answers(self.verifier)
        exit.callback(self.verifier.stop)
        self.verifier.start()

    @staticmethod
    def answers(verifier):
        """Whether it takes connections: it knows no host of these tests."""
        try:
            verifier.connect(5).close()
        except OSError:
            return False
        return True

    def sql(self, statement):
        return self.cluster.sql(statement, "bench")

    def ask(self, hosts, logins, verifier=None):
        """[(begin, end, answer)] of these pairs of questions, and the verifier's kilobytes then."""
        verifier = verifier or self.verifier
        text = b"".join(
            struct.pack("<I", number % hosts) + b"".join(struct.pack("<I", len(one)) + one for one in pair)
            for number, pair in enumerate(logins))
        command = [LINES, "ask", str(verifier.address[1]), str(hosts), str(min(hosts, AT_ONCE)), self.keys]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            threading.Thread(target=lambda: (process.stdin.write(text), process.stdin.close())).start()
            found = []
            for line in process.stdout:
                if line == b"done\n":
                    break
                found.append(tuple(map(int, line.split())))
            memory = status(verifier.process.pid, "VmRSS")
            process.kill()
        assert len(found) == len(logins), "lines.c gave up"
        return found, memory


def status(process, field):
    text = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(field)))


class People:
    """This number of users, and the next code of each."""

    def __init__(self, made, prefix, count):
        self.names = [f"{prefix}{number}" for number in range(count)]
        self._last = {}
        self._logins = 0
        found, _ = made.ask(AT_ONCE, [(Line.question(request(
            name.encode(), 7, struct.pack("<QB", 0, 1), fleet.enrollment(name, BASE32))), b"") for name in self.names])
        # A machine that is busy may make the verifier lose its database for a moment.
        self.names = [name for name, (_, _, answer) in zip(self.names, found) if answer == DONE]

    def code(self, name):
        """A right one that was not used."""
        step = max(self._last.get(name, 0) + 1, int(time.time()) // PERIOD + FIRST)
        self._last[name] = step
        return code(step * PERIOD)

    def logins(self, count):
        """Of one after the other, as a host asks for each: what is there to ask, and is this code right?"""
        for number in range(self._logins, self._logins + count):
            name = self.names[number * 7919 % len(self.names)]
            yield (Line.question(request(name.encode(), 1, b"\0\1")),
                   Line.question(typed(name.encode(), self.code(name).encode())))
        self._logins += count


def burst(made, people, hosts, count):
    """The figures of `count` logins at a number of hosts."""
    place = made.sql("SELECT pg_current_wal_insert_lsn()")[0][0]
    working, verifier = fleet.backends(made.sql), made.verifier.process.pid
    before = fleet.seconds(verifier), sum(map(fleet.seconds, working))
    found, memory = made.ask(hosts, list(people.logins(count)))
    verifying = fleet.seconds(verifier) - before[0]
    keeping = sum(map(fleet.seconds, working)) - before[1]
    wal = int(made.sql(f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{place}')::bigint")[0][0])
    taken = [(end - begin) / 1e6 for begin, end, _ in found]
    return {
        "logins/s": count / (max(end for _, end, _ in found) - min(begin for begin, _, _ in found)) * 1e9,
        "p50, ms": percentile(taken, 0.5), "p99, ms": percentile(taken, 0.99),
        "verifier's processor, us": verifying / count * 1e6, "database's processor, us": keeping / count * 1e6,
        "bytes of WAL": wal / count, "verifier's memory, MB": memory / 1024,
        "refused right codes": f"{sum(answer != ACCEPTED for _, _, answer in found)} of {count}"}


def by_hosts(report, made, short):
    people = People(made, "alice", 1000)
    burst(made, people, 10, 1000)  # the first of each page after a checkpoint writes all of it
    for hosts in SIZES:
        found = burst(made, people, hosts, 1000 if short or hosts == 1 else 2000)
        targets = {"verifier's memory, MB": "<= 150", "refused right codes": "0",
                   "logins/s": ">= 2,000, idle" if hosts == 100 else ""}
        for what, value in found.items():
            title = f"hosts: {hosts:,}, logins/s" if what == "logins/s" else f"  {what}"
            report.row(title, {OURS: value}, targets.get(what, ""))
    return people


def by_people(report, made, short):
    """In turn, so that what else the machine does falls on both."""
    count = 10_000 if short else 100_000
    few, many = People(made, "carol", 1000), People(made, "bob", count)
    found = {few: [], many: []}
    burst(made, many, 100, 1000)
    made.sql("CHECKPOINT")
    for turn in range(3 if short else 4):
        for people in few, many:
            found[people].append(burst(made, people, 100, 1000))
    ratios = [of_many["logins/s"] / of_few["logins/s"] for of_few, of_many in list(zip(*found.values()))[1:]]
    report.row(f"logins/s of {count:,} people to those of 1,000", {OURS: median(ratios)}, "0.8 to 1.2")
    refused = sum(int(one["refused right codes"].split()[0]) for one in found[few] + found[many])
    report.row("  refused right codes", {OURS: f"{refused} of {1000 * sum(map(len, found.values()))}"}, "0")


def whole_chain(report, made, short):
    """Logins of the module by sallyportd, the verifier and the database, one after the other."""
    names = [f"chain{number}" for number in range(40)]
    with open("/etc/passwd", "a") as file:
        file.write("".join(f"{name}:x:{7000 + number}:7000::/:/bin/sh\n" for number, name in enumerate(names)))
    people = People(made, "chain", len(names))
    security = Path("/etc/security")
    pin = fleet.pin_of(made.directory / "identity.key")
    port = made.verifier.address[1]
    # A host of its own: what it asks is sealed, and nothing else of it is answered then.
    host = max(SIZES) - 1
    (security / "sallyport-fleet.conf").write_text(
        f"host = host{host}\nenrolls = yes\nverifier = 127.0.0.1:{port}\npin = {pin}\n")
    pem = (made.keys / f"{host}.pem").read_text()
    key = security / "sallyport-fleet.key"
    key.touch(0o600)
    key.write_text(pem[:pem.index("-----BEGIN CERTIFICATE")])
    policy = security / "sallyport.conf"
    policy.write_text("[default]\nverification = fleet\nenrollment = required\nlocal_services = chain\n")
    services = Services(SCRATCH / "pam.fleet")
    services.write("chain", f"auth required {MODULE} nodelay", "account required pam_permit.so")
    times = SCRATCH / "times-chain"
    try:
        with Service() as service:
            sealed = f"SELECT FROM revoked WHERE host = 'host{host}/sealed'"
            assert soon(lambda: service.process.poll() is not None or made.sql(sealed)), "it does not seal"
            for turn in range(2 if short else 5):
                script = [f"service=chain user={name.encode().hex()} repeat=1 answers={people.code(name).encode().hex()}\n"
                          for name in names]
                subprocess.run([BUILT / "driver", services.directory], input="".join(script), text=True, check=True,
                               stdout=subprocess.DEVNULL, env=environment(times, BENCH_WARM="1"))
    finally:
        for path in policy, key, security / "sallyport-fleet.conf":
            path.unlink()
    found = read_times(times)
    taken = [(one.end - one.begin) / 1e6 for one in found]
    report.row("module, sallyportd, verifier, database: p50, ms", {OURS: percentile(taken, 0.5)}, "<= 1.5, idle")
    report.row("  p99, ms", {OURS: percentile(taken, 0.99)})
    report.row("  refused right codes", {OURS: f"{sum(not one.good for one in found)} of {len(found)}"}, "0")


def measure(report, disk, short):
    report.section("8. A fleet: one verifier over PostgreSQL, which waits for its disk and no standby", OF_FLEETS)
    report.row("load of the machine at the beginning", {OURS: os.getloadavg()[0]})
    with Fleet(disk) as made:
        people = by_hosts(report, made, short)
        whole_chain(report, made, short)
        radius.measure(report, made, people)
        by_people(report, made, short)
