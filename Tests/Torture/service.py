"""The service under its clients, and killed among them: an owner is always answered, nothing counts
twice, and nothing grows.

An owner asks in three ways in turn: by root's own program, which reads the files; by su, whose real
user is another, on the root socket; by a program of her own on the public one.
"""

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles

from disks import mount, unmount
from record import when
from support.codes import hotp
from support.hosts import add_account
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import DEFAULT_STORE, Services, Store
from support.service import PUBLIC, ROOT, SERVICE, Service, attempt, connect, soon

OWNER, CALLER = ("alice", 3001), ("bob", 3002)
STRANGERS = [(f"client{number}", 3100 + number) for number in range(8)]
CALL = 5.5  # seconds in which the module answers one call, whatever the service does
CROWD = 250  # connections of one stranger at once; 2,000 of all
# What a service may hold on each socket: connections without a packet, packets, those worked on.
DESCRIPTORS = 2 * (128 + 128 + 16) + 32


def descriptors(service):
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def process_of(uid, effective):
    def become():
        os.setgroups([])
        os.setresuid(uid, effective, effective)
    return become


class Owner:
    """Three ways in, and codes that count."""

    def __init__(self, setting, name):
        services = Services(Path("/run", name))
        services.code("login", None, "nodelay")
        self.drivers = {
            "files": Driver(services),
            "su": Driver(services, preexec=process_of(CALLER[1], 0)),
            "own": Driver(services, preexec=process_of(OWNER[1], OWNER[1]))}
        self.store = Store(DEFAULT_STORE)
        self.count = 0
        self.secret = self.store.enroll(OWNER[0], type="hotp", allow_missing=False).secret
        self.codes = []

    def next(self):
        if self.count == len(self.codes):
            self.codes += hotp(self.secret, 1000, self.count)
        self.count += 1
        return self.codes[self.count - 1]

    def enters(self, way, code):
        return self.drivers[way].login("login", OWNER[0], code)

    def enters_in_all(self):
        """The results of a new code in each way."""
        return [self.enters(way, self.next()).result for way in self.drivers]

    def at_once(self, ways, code):
        """The same code in each of these ways; not yet answered."""
        for way in ways:
            self.drivers[way].send("login", OWNER[0], code)

    def verdicts(self, ways):
        return [self.drivers[way].verdict() for way in ways]

    def close(self):
        for driver in self.drivers.values():
            driver.close()


@contextlib.contextmanager
def playing(setting, name):
    """An owner, a store on a small disk of its own, and accounts for the callers."""
    for account in (OWNER, CALLER, *STRANGERS):
        if f"\n{account[0]}:" not in Path("/etc/passwd").read_text():
            add_account(*account)
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    place = setting.place(name)
    image, disk = place / "image", place / "disk"
    with image.open("wb") as file:
        file.truncate(12 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
    disk.mkdir()
    mount("-o", "loop", image, disk)
    (disk / "store").mkdir(mode=0o700)
    DEFAULT_STORE.mkdir(mode=0o700, parents=True, exist_ok=True)
    mount("--bind", disk / "store", DEFAULT_STORE)
    owner = Owner(setting, name)
    try:
        yield owner, disk
    finally:
        owner.close()
        unmount(DEFAULT_STORE)
        unmount(disk)


# Killed, and without room


@contextlib.contextmanager
def full(disk):
    """Not a block left, but for what the files have already."""
    filler = disk / "filler"
    with filler.open("wb", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    try:
        yield
    finally:
        filler.unlink()


def fate(process, moment):
    time.sleep(moment)  # whatever the service is doing then
    process.kill()


def killed(section, setting):
    """The service is killed while it verifies one code, and in every second round by the files
    side by side; in every third the disk is full meanwhile. Then the code is tried again everywhere,
    and others."""
    dice, seen, slowest = setting.dice("service"), Counter(), 0.0
    with playing(setting, "killed") as (owner, disk):
        for turn in range(40 if setting.short else 600):
            code, ways = owner.next(), list(owner.drivers)[turn % 2:]
            with full(disk) if turn % 3 == 2 else contextlib.nullcontext(), Service() as service:
                killer = threading.Thread(target=fate, args=(service.process, dice.uniform(0, 0.008)))
                killer.start()
                owner.at_once(ways, code)
                first = owner.verdicts(ways)
                killer.join()
                service.process.wait()
            with Service():
                again = [owner.enters(way, code) for way in owner.drivers]
                later = owner.enters_in_all()
            slowest = max(slowest, *(login.seconds for login in first + again))
            first, again = ([login.result for login in logins] for logins in (first, again))
            section.case(f"round {turn} by {ways}{', full' if turn % 3 == 2 else ''}",
                         *wrongs(first, again, later))
            seen["while" if SUCCESS in first else "after" if SUCCESS in again else "never"] += 1
        section.case("the time", when(slowest > CALL, "too late", f"{slowest:.2f} s"))
    section.note(f"the service killed beside a right code: accepted {dict(seen)}; slowest answer "
                 f"{slowest:.2f} s")


def wrongs(first, again, later):
    """An answer may be lost with the service that gave it, and its code with it."""
    results = first + again
    entered = results.count(SUCCESS)
    return (
        when(entered > 1, "accepted twice", str(results)),
        when(entered == 0 and TROUBLE not in first, "never accepted", str(results)),
        when(not set(results) <= {SUCCESS, AUTH_ERR, TROUBLE}, "another answer", str(results)),
        when(later != [SUCCESS] * 3, "locked out", str(later)))


# Thousands of clients


def stranger(number, end, ready):
    """A client of one user without an end, in a process of its own: polite, or not."""
    (name, uid), path = STRANGERS[number], (PUBLIC, ROOT)[number % 2]
    process_of(uid, uid if path == PUBLIC else 0)()
    packet, count, turn = attempt(name.encode(), b"letters"), 0, 0
    while time.monotonic() < end:
        turn += 1
        clients = []
        # Many at once now and then, as many as there is room for.
        with contextlib.suppress(OSError):
            for _ in range(CROWD if turn % 50 == 0 else 8):
                clients.append(connect(path, CALL))
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(b"no request" if turn % 7 == 0 else packet)
        for client in clients[turn % 5 == 0:]:  # one is not waited for
            with contextlib.suppress(OSError):
                count += client.recv(1 << 17) != b""
        for client in clients:
            client.close()
    os.write(ready, b"%d\n" % count)


def crowd(end):
    """The strangers, and a pipe on which they tell how many answers they had."""
    start, ready = os.pipe()
    processes = []
    for number in range(len(STRANGERS)):
        process = os.fork()
        if process == 0:
            try:
                os.close(start)
                stranger(number, end, ready)
                os._exit(0)
            finally:
                os._exit(1)
        processes.append(process)
    os.close(ready)
    return processes, start


def watched(section, owner, service, end):
    """The owner's logins until then: {way: seconds}, [(kB, descriptors) of the service]."""
    taken, samples = {way: [] for way in owner.drivers}, []
    while time.monotonic() < end:
        for way in owner.drivers:
            login = owner.enters(way, owner.next())
            what = f"{login.result} in {login.seconds:.2f} s"
            taken[way].append(login.seconds)
            section.case(f"the owner by {way}", when(login.result != SUCCESS, "refused", what),
                         when(login.seconds > CALL, "too late", what))
        samples.append((service.memory, descriptors(service)))
    return taken, samples


def clients(section, setting):
    """Eight users, two of three polite, with 64 to 2,000 connections at once between them."""
    seconds = 20 if setting.short else 600
    # As the unit starts it.
    command = ["nice", "-n", "-5", SERVICE]
    with playing(setting, "clients") as (owner, _), Service(*command) as service:
        section.case("before", when(owner.enters_in_all() != [SUCCESS] * 3, "refused", ""))
        idle, end = descriptors(service), time.monotonic() + seconds
        processes, answers = crowd(end)
        taken, samples = watched(section, owner, service, end)
        ended = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        with open(answers) as file:
            answered = [int(line) for line in file]
        section.case("the clients", when(any(ended) or min(answered) == 0, "nobody answered",
                                         f"{ended} {answered}"))
        section.case("afterwards", when(not soon(lambda: descriptors(service) <= idle),
                                        "descriptors left open", str(descriptors(service))))
        section.case("in the end", when(owner.enters_in_all() != [SUCCESS] * 3, "refused", ""))
    most = max(count for _, count in samples)
    section.case("descriptors", when(most > DESCRIPTORS, "too many", str(most)))
    half = len(samples) // 2
    before, after = (max(one[0] for one in part) for part in (samples[:half], samples[half:]))
    section.case("memory", when(after > before + 1024, "grew", f"{before} to {after} kB"))
    section.note(f"{sum(answered):,} clients answered in {seconds} s; at most {most} descriptors; "
                 f"at most {before:,} kB in the first half and {after:,} kB in the second")
    for way, times in taken.items():
        section.note(f"the owner meanwhile by {way}: {len(times)} logins, median "
                     f"{quantiles(times)[1] * 1e3:.1f} ms, p99 {quantiles(times, n=100)[98] * 1e3:.0f}, "
                     f"slowest {max(times) * 1e3:.0f}")


def run(section, setting):
    if not setting.ours:
        return section.skip("the others have no service")
    killed(section, setting)
    clients(section, setting)
