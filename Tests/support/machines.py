"""Machines of a network of their own: each with its own processes, files and cable.

A router stands in the middle, each machine hangs on it by a cable of its own. All of it are
namespaces, which end with the process that made them: nothing of the real machine is changed.
The files of a machine are those of Tests/Acceptance/private-machine.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from support.logsink import LogSink
from support.service import soon

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = ROOT / "Tests/Acceptance/private-machine"
# Ends with the one that started it; waits for whatever its children leave behind.
LIVE = "echo up; while :; do sleep 100000 & wait; done"
ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def run(*command, **more):
    more = {"check": True, "capture_output": True, "text": True, "timeout": 60} | more
    done = subprocess.run([*map(str, command)], **more | {"check": False})
    if more["check"] and done.returncode:
        raise AssertionError(f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
    return done


def child_of(pid):
    """The one child, which is there soon."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    assert soon(lambda: path.read_text().split()), f"{pid} has no child"
    return int(path.read_text().split()[0])


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Network:
    """A router and machines around it. `router` may only be told what is said here."""

    def __init__(self):
        self._exit = contextlib.ExitStack()
        self.machines = {}
        self.hosts = "127.0.0.1 localhost\n::1 localhost\n"

    def __enter__(self):
        self.scratch = Path(self._exit.enter_context(tempfile.TemporaryDirectory(prefix="sallyport-network.")))
        self.scratch.chmod(0o755)
        self._router = subprocess.Popen(
            [*ENDS_WITH_US, "unshare", "--net", "sh", "-c", "echo up; exec sleep 100000"], stdout=subprocess.PIPE,
            text=True)
        self._exit.callback(self._end, self._router)
        assert self._router.stdout.readline() == "up\n"
        self.router("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/icmp_ratelimit")
        return self

    def __exit__(self, *_):
        for machine in self.machines.values():
            machine.log.close()
        self._exit.close()

    @staticmethod
    def _end(process):
        process.kill()
        process.wait(20)
        process.stdout.close()

    @property
    def router_pid(self):
        return self._router.pid

    def router(self, *command, **more):
        return run("nsenter", "--target", self.router_pid, "--net", *command, **more)

    def add(self, *names):
        """Machines of these names, which all of them know."""
        first = len(self.machines) + 1
        for number, name in enumerate(names, first):
            self.machines[name] = Machine(self, name, number)
            self.hosts += f"10.77.{number}.2 {name}\n"
        made = [self.machines[name] for name in names]
        for machine in made:
            self._exit.callback(self._end, machine.process)
            machine.begin()
        for machine in self.machines.values():
            machine.write("/etc/hosts", self.hosts)
        return made

    # MARK: what happens to cables

    def cut(self, one, other=None, how="blackhole"):
        """From now on nothing goes between these two, or between that one and anybody: in silence, or
        (`unreachable`, `prohibit`) with a refusal to each packet. Both ways."""
        for words in self._rules(one, other):
            self.router("ip", "rule", "add", *words, how)

    def mend(self, one, other=None):
        for words in self._rules(one, other):
            while self.router("ip", "rule", "del", *words, check=False).returncode == 0:
                pass

    def mend_all(self):
        for line in self.router("ip", "rule", "list").stdout.splitlines():
            found = re.match(r"(\d+):\s+(.*?) (blackhole|unreachable|prohibit)$", line)
            if found:
                self.router("ip", "rule", "del", "priority", found[1])

    @staticmethod
    def _rules(one, other):
        if other is None:
            return [["from", one.network], ["to", one.network]]
        return [["from", a.network, "to", b.network] for a, b in ((one, other), (other, one))]


class Machine:
    """One of them. `root` is its file system, as it is seen from here."""

    def __init__(self, network, name, number):
        self.network_of, self.name, self.number = network, name, number
        self.address, self.network = f"10.77.{number}.2", f"10.77.{number}.0/24"
        scratch = network.scratch / name
        scratch.mkdir()
        scratch.chmod(0o755)
        self.environment = dict(
            os.environ, SALLYPORT_SCRATCH=str(scratch), SALLYPORT_REPOSITORY=str(ROOT), SALLYPORT_REAL_ROOT="0",
            SALLYPORT_SHARED=os.environ.get("SALLYPORT_SHARED", str(network.scratch)))
        self.environment.pop("LD_PRELOAD", None)
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child",
             "--propagation", "private", "sh", PRIVATE, "sh", "-c", LIVE],
            env=self.environment, stdout=subprocess.PIPE, text=True)

    def begin(self):
        assert self.process.stdout.readline() == "up\n"
        self.init = child_of(self.process.pid)
        self.root = Path(f"/proc/{self.init}/root")
        cable, gate = f"cable{self.number}", f"10.77.{self.number}.1"
        self.network_of.router(
            "ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", self.init)
        self.network_of.router("ip", "address", "add", f"{gate}/24", "dev", cable)
        self.network_of.router("ip", "link", "set", cable, "up")
        self.sh(f"hostname {self.name}; ip link set lo up; ip address add {self.address}/24 dev eth0; "
                f"ip link set eth0 up; ip route add default via {gate}")
        # Beyond the length of a socket's name, but for this one.
        self.log = Log(self)

    def enter(self):
        return ["nsenter", "--target", str(self.init), "--mount", "--net", "--uts", "--pid", "--"]

    def run(self, *command, **more):
        """A program there, to its end."""
        return run(*self.enter(), *command, **more)

    def sh(self, script, **more):
        return self.run("sh", "-c", script, **more)

    def start(self, *command, **more):
        """A program there that goes on."""
        return Program(self, [*map(str, command)], **more)

    def path(self, path):
        """A path there, from here."""
        return self.root / str(path).lstrip("/")

    def read(self, path):
        return self.path(path).read_bytes()

    def write(self, path, text, mode=None):
        path = self.path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if mode is not None:
            path.chmod(mode)

    def account(self, name, uid, password):
        """An account there, with a home; in place of one of that name with other numbers or another password."""
        lines = {"passwd": f"{name}:x:{uid}:{uid}:{name}:/home/{name}:/bin/sh", "group": f"{name}:x:{uid}:",
                 "shadow": f"{name}:{hashed(password)}:19000:0:99999:7:::"}
        files = {file: self.read("/etc/" + file).decode().splitlines() for file in lines}
        if all(line in files[file] for file, line in lines.items()):
            return
        for file, line in lines.items():
            others = [other for other in files[file] if not other.startswith(f"{name}:")]
            self.path("/etc/" + file).write_text("\n".join([*others, line, ""]))
        self.sh(f"install -d -o {uid} -g {uid} /home/{name}")


_hashed = {}


def hashed(password):
    if password not in _hashed:
        _hashed[password] = run("openssl", "passwd", "-6", "-salt", "x", "-stdin", input=password).stdout.strip()
    return _hashed[password]


class Log(LogSink):
    """What programs on a machine say to its system log."""

    def __init__(self, machine):
        # A path below /proc is short enough for a socket's name.
        super().__init__(str(machine.path("/dev/log")))

    def since(self, start):
        self.flush()
        return [line.text for line in self.lines[start:]]


class Program:
    """A program on a machine. Its process is the one that was asked for: signals go to it alone."""

    def __init__(self, machine, command, **more):
        self.machine, self.command = machine, command
        self._entered = subprocess.Popen(
            [*machine.enter(), *ENDS_WITH_US, *command], **{"stdin": subprocess.DEVNULL} | more)
        self.stdout, self.stdin = self._entered.stdout, self._entered.stdin
        self.pid = child_of(self._entered.pid)

    def poll(self):
        return self._entered.poll()

    @property
    def alive(self):
        return self.poll() is None

    def send(self, which):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, which)
        self._wake(which)

    def _wake(self, which):
        """What entered the machine for it, and stops with it."""
        if which == signal.SIGCONT and self.alive:
            self._entered.send_signal(which)

    def family(self):
        """It and those that it has started."""
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except FileNotFoundError:
            return []
        return [self.pid, *map(int, children)]

    def send_all(self, which):
        family = self.family()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, which)
        self._wake(which)
        return family

    def wait(self, limit=20):
        return self._entered.wait(limit)

    def kill(self):
        """As a power cut ends it, with those that it has started."""
        family = self.send_all(signal.SIGKILL)
        status = self.wait()
        assert soon(lambda: not any(is_alive(pid) for pid in family))
        return status

    def stop(self):
        self.send(signal.SIGTERM)
        return self.wait()


def together(*works):
    """All of them at once; what they gave, or the first fault of one."""
    results, faults = [None] * len(works), []

    def one(number, work):
        try:
            results[number] = work()
        except BaseException as fault:
            faults.append(fault)
    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return results
