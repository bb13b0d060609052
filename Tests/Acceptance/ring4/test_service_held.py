"""The service held up: frozen, by a name service that never answers, by all that one user may have."""

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from statistics import quantiles

import pytest

from support.hosts import SCRATCH, UIDS, Su, edit, service, two_factors
from support.pam_driver import AUTH_ERR, BUILT, SUCCESS, TROUBLE, Crowd, Driver, HostDied
from support.sallyport import Services
from support.service import ANSWERS, PUBLIC, ROOT, SERVICE, Service, ask, attempt, connect, soon

CALL = 5.5  # seconds in which the module answers one call, whatever the service does


@pytest.fixture(autouse=True)
def _no_sockets_before():
    shutil.rmtree("/run/sallyport", ignore_errors=True)


@pytest.fixture
def stacks():
    """Services that users who are not root may read."""
    directory = Path("/run/stacks")
    shutil.rmtree(directory, ignore_errors=True)
    services = Services(directory)
    services.code("locker", None, "nodelay")
    return services


def user(name, effective=None):
    """In the child: a process of that user; `effective=0` as in su, which he has started."""
    uid = UIDS[name]

    def change():
        os.setgroups([])
        os.setresuid(uid, *[uid if effective is None else effective] * 2)
    return change


@contextlib.contextmanager
def child(body):
    """A process that does something, and is gone afterwards."""
    process = os.fork()
    if process == 0:
        try:
            body()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


# Frozen


class Freezer:
    """A control group of its own for one process."""

    def __init__(self, process):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        roots = [Path(words[1]) for words in mounts if words[2] == "cgroup2"]
        roots += [Path(words[1]) for words in mounts
                  if words[2] == "cgroup" and "freezer" in words[3].split(",")]
        for root in roots:
            self.group = root / f"sallyport-{SCRATCH.name}-frozen"
            with contextlib.suppress(OSError):
                self.group.mkdir()
                (self.group / "cgroup.procs").write_text(str(process))
                break
        else:
            pytest.skip("no control group can be made here")
        self.is_new = (self.group / "cgroup.freeze").exists()

    def freeze(self):
        if self.is_new:
            (self.group / "cgroup.freeze").write_text("1")
            assert soon(lambda: "frozen 1" in (self.group / "cgroup.events").read_text())
        else:
            (self.group / "freezer.state").write_text("FROZEN")
            assert soon(lambda: (self.group / "freezer.state").read_text() == "FROZEN\n")

    def thaw(self):
        if self.is_new:
            (self.group / "cgroup.freeze").write_text("0")
        else:
            (self.group / "freezer.state").write_text("THAWED")

    def close(self):
        """After its process has ended."""
        def is_gone():
            with contextlib.suppress(OSError):
                self.group.rmdir()
            return not self.group.exists()
        assert soon(is_gone)


@pytest.fixture
def frozen():
    """A service, and what freezes it."""
    with Service() as running:
        freezer = Freezer(running.process.pid)
        try:
            yield freezer
        finally:
            freezer.thaw()
            running.stop()
            freezer.close()


# shows: frozen-service
def test_a_frozen_service_refuses_every_call_in_time(store, frozen, stacks, sink, figure):
    enrollment, slowest = store.enroll(allow_missing=False), 0.0
    frozen.freeze()
    for become in (user("bob", 0), user("alice")):
        with Driver(stacks, preexec=become) as driver:
            for code in (enrollment.wrong(), enrollment.code()):
                start = time.monotonic()
                assert driver.login("locker", "alice", code).result == TROUBLE
                slowest = max(slowest, time.monotonic() - start)
    assert slowest < CALL
    frozen.thaw()
    with Driver(stacks, preexec=user("alice")) as driver:
        assert driver.login("locker", "alice", enrollment.code()).result == SUCCESS
    figure(f"each call refused within {slowest:.2f} s while the service is frozen")


# shows: frozen-service
def test_what_was_asked_of_a_frozen_service_uses_no_code_when_it_goes_on(
        store, frozen, stacks, sink):
    """Frozen after the prompt, so that the packet with the code waits in its socket."""
    enrollment = store.enroll(allow_missing=False)
    for become in (user("bob", 0), user("alice")):
        code = enrollment.backup_codes.pop()
        with Crowd(stacks, 1, preexec=become) as crowd:
            crowd.wait_at_prompts([(("locker", "alice", code), {})])
            frozen.freeze()
            [login] = crowd.answer()
            frozen.thaw()
            assert login.result == TROUBLE and login.seconds < CALL
            assert crowd.drivers[0].login("locker", "alice", code).result == SUCCESS


# A name service that never answers


@pytest.fixture
def stuck():
    """Names that begin with `stuck` lead nowhere and to no end, until it is called."""
    libraries, fifo = SCRATCH / "lib", Path("/run/stuck")
    shutil.copy(f"{BUILT}/libnss_stuck.so.2", libraries)
    subprocess.run(["ldconfig", "-X"], check=True)
    before = Path("/etc/nsswitch.conf").read_text()
    edit("/etc/nsswitch.conf", lambda text: re.sub("(?m)^passwd:.*", r"\g<0> stuck", text))
    os.mkfifo(fifo, 0o644)

    def release():
        if not fifo.exists():
            return
        gone = fifo.rename("/run/stuck.gone")
        with contextlib.suppress(OSError):  # nobody waits
            os.close(os.open(gone, os.O_WRONLY | os.O_NONBLOCK))
        gone.unlink()
    yield release
    release()
    Path("/etc/nsswitch.conf").write_text(before)


def holding(become, path, packets, ready):
    """A process that sends all these packets, and keeps its connections."""
    def body():
        become()
        clients = [connect(path) for _ in packets]
        for client, packet in zip(clients, packets):
            client.send(packet)
        os.write(ready, b".")
        signal.pause()
    return child(body)


# shows: service-crowd
@pytest.mark.decisive
def test_a_name_service_that_never_answers_holds_up_nobody_but_who_asked(
        store, stuck, stacks, services, sink):
    """bob asks for names that nobody looks up to an end, as often as he can, on both sockets."""
    enrollment = store.enroll(allow_missing=False)
    of_bob = store.enroll("bob", allow_missing=False)
    packets = [attempt(b"stuck%d" % number, b"123456") for number in range(40)]
    start, ready = os.pipe()
    with Service() as running, \
            holding(user("bob", 0), ROOT, packets, ready), \
            holding(user("bob"), PUBLIC, packets, ready):
        assert os.read(start, 1) + os.read(start, 1) == b".."
        for path in (ROOT, PUBLIC):  # root's own programs, a hundred one after the other
            for _ in range(100):
                assert ask(path, limit=CALL) == ANSWERS[path]
        with Driver(stacks, preexec=user("alice")) as driver:
            assert driver.login("locker", "alice", enrollment.backup_codes[0]).result == SUCCESS
        with Driver(stacks, preexec=user("alice", 0)) as driver:
            assert driver.login("locker", "alice", enrollment.backup_codes[1]).result == SUCCESS
        with Driver(services) as driver:
            assert driver.login("login", "alice", enrollment.backup_codes[2]).result == SUCCESS
        # His own share is what he holds, and nobody else's.
        with Driver(stacks, preexec=user("bob")) as driver:
            assert driver.login("locker", "bob", of_bob.code()).result == TROUBLE
        stuck()
        with Driver(stacks, preexec=user("bob")) as driver:
            assert soon(lambda: driver.login("locker", "bob", of_bob.backup_codes.pop()).result
                        == SUCCESS)
        assert running.stop() == 0


# All that one user may have


def stopped_su(ready):
    """As 64 su of bob's, each stopped before its packet, and a new one in the place of each that the
    service has closed."""
    user("bob", 0)()
    held = {}
    watch = select.poll()
    while True:
        while len(held) < 64:
            client = connect(ROOT)
            held[client.fileno()] = client
            watch.register(client, select.POLLIN | select.POLLHUP)
        with contextlib.suppress(OSError):
            os.write(ready, b".")
        for number, _ in watch.poll():
            watch.unregister(number)
            held.pop(number).close()


def p99(drivers, name, count=200):
    """Seconds, of logins that are refused; nobody's budget is spent."""
    times = []
    for _ in range(count):
        start = time.monotonic()
        assert drivers.login(name, "alice", "letters").result == AUTH_ERR
        times.append(time.monotonic() - start)
    return quantiles(times, n=100)[98]


# shows: service-crowd
@pytest.mark.alone
def test_who_holds_all_that_he_may_holds_nobody_up(store, stacks, services, sink, figure):
    """64 su that he has stopped before their packet, and 200 open prompts of his."""
    store.enroll(allow_missing=False)
    start, ready = os.pipe()
    os.set_blocking(ready, False)
    names = ("root", "another by su", "another's own")
    # As the unit and the init script start it.
    with Service("nice", "-n", "-5", SERVICE), Driver(services) as of_root, \
            Driver(stacks, preexec=user("alice", 0)) as by_su, \
            Driver(stacks, preexec=user("alice")) as own:
        drivers = ((of_root, "login"), (by_su, "locker"), (own, "locker"))
        quiet = [p99(*one) for one in drivers]
        with child(lambda: stopped_su(ready)), Crowd(stacks, 200, preexec=user("bob", 0)) as crowd:
            crowd.wait_at_prompts([(("locker", "bob", "letters"), {})] * 200)
            assert os.read(start, 1) == b"."
            held = [p99(*one) for one in drivers]
            assert {login.result for login in crowd.answer()} <= {AUTH_ERR, TROUBLE}
    figure("p99 beside one user's 64 stopped su and 200 open prompts: " + ", ".join(
        f"{name} {after * 1e3:.1f} ms ({before * 1e3:.1f} without)"
        for name, before, after in zip(names, quiet, held)))
    for before, after, most in zip(quiet, held, (0.05, 0.05, 0.1)):
        assert after <= before + most


# What a caller may do to his own su


def limited(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def idle():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def tell(ready):
    with contextlib.suppress(BlockingIOError):
        os.write(ready, b".")


def starving(stacks, starve, ready):
    """As bob who starts one su after the other, each starved so. Tells of each that was answered."""
    def become():
        starve()
        user("bob", 0)()
    while True:
        with contextlib.suppress(HostDied, AssertionError), Driver(stacks, preexec=become) as driver:
            while True:
                driver.login("locker", "bob", "letters")
                tell(ready)


def leaving(ready):
    """As su of bob's that he stops as soon as each has asked: nobody reads the answers."""
    user("bob", 0)()
    while True:
        clients = [connect(ROOT) for _ in range(16)]
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(attempt(b"bob", b"letters"))
        select.select(clients, [], [], 1)
        tell(ready)
        for client in clients:
            client.close()


STARVED = {
    "in the idle class": idle,
    "RLIMIT_FSIZE 0": limited(resource.RLIMIT_FSIZE, 0),
    "RLIMIT_CPU 1": limited(resource.RLIMIT_CPU, 1),
    "RLIMIT_NOFILE 16": limited(resource.RLIMIT_NOFILE, 16),
    "stopped once it has asked": None,
}


@pytest.mark.alone
@pytest.mark.parametrize("way", STARVED)
def test_a_user_who_starves_his_own_su_holds_nobody_up(store, stacks, services, sink, figure, way):
    """Beside the same four callers as they are, and beside four who do that to theirs."""
    for name in ("alice", "bob"):
        store.enroll(name, allow_missing=False)

    def beside(body, *words):
        start, ready = os.pipe2(os.O_NONBLOCK)
        with contextlib.ExitStack() as callers:
            for _ in range(4):
                callers.enter_context(child(lambda: body(*words, ready)))
            assert select.select([start], [], [], 60)[0], "the callers do nothing"
            found = [p99(*one) for one in drivers]
        os.close(start)
        os.close(ready)
        return found

    starve = STARVED[way]
    with Service("nice", "-n", "-5", SERVICE), Driver(services) as of_root, \
            Driver(stacks, preexec=user("alice", 0)) as by_su:
        drivers = ((of_root, "login"), (by_su, "locker"))
        usual = beside(starving, stacks, lambda: None)
        held = beside(starving, stacks, starve) if starve else beside(leaving)
    figure(f"p99 beside four su, {way}: " + ", ".join(
        f"{name} {after * 1e3:.1f} ms ({before * 1e3:.1f} beside four as they are)"
        for name, before, after in zip(("root", "another by su"), usual, held)))
    for before, after in zip(usual, held):
        assert after <= before + 0.05
