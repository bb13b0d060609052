"""Real su and sudo beside the service: what they keep of it, what their callers do with them, and peers
in containers."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from support.hosts import Su, Sudo, as_user, converse, service
from support.sallyport import DEFAULT_STORE, MODULE
from support.service import ANSWERS, PUBLIC, ROOT, Service, attempt, connect, soon
from support.typist import Child

CALL = 5.5  # seconds in which the module answers one call, whatever the service does
CODE = "Verification code: ?$"


@pytest.fixture
def running():
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    with Service() as started:
        yield started


@pytest.fixture(autouse=True)
def _one_prompt(stacks):
    for name in ("su", "sudo"):
        service(name, f"required {MODULE} nodelay")


def holders():
    """Which processes have a socket of packets: here those of the service alone are such."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    packets = {f"socket:[{line.split()[6]}]" for line in lines if line.split()[4] == "0005"}
    found = set()
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone meanwhile
            if os.readlink(file) in packets:
                found.add(int(file.parts[2]))
    return found


def children(process):
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


COMMANDS = {
    "su": as_user("bob", "su", "alice", "-c", "echo IN-$((6*7)); read line"),
    "sudo": as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7)); read line")}


@pytest.mark.parametrize("host", COMMANDS)
def test_neither_at_the_prompt_nor_in_the_session_has_anybody_a_descriptor_of_the_service(
        store, running, sink, host):
    enrollment, own = store.enroll(allow_missing=False), {running.process.pid}
    with connect(ROOT):
        assert holders() == own | {os.getpid()}
    child = Child(COMMANDS[host])
    try:
        child.expect(CODE)
        assert soon(lambda: holders() == own)
        with sink.watch() as lines:
            child.answer(enrollment.code())
            child.expect("IN-42")
        assert any("code accepted" in line.text for line in lines)
        assert holders() == own
        assert children(child.pid)  # the shell, which was looked at too
        child.sendline("")
        child.expect("\r\n")
        child.wait()
        assert child.exitstatus == 0
    finally:
        child.close(force=True)


def is_stopped(process):
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"


# shows: service-crowd
def test_64_su_stopped_at_their_prompts_hold_nothing_and_nobody_up(store, running, sink, figure):
    """bob may stop what he has started, though it is set-uid."""
    enrollment = store.enroll(allow_missing=False)
    idle, held, stopped = len(running.descriptors), [], 64
    command = as_user("bob", "su", "alice", "-c", "echo IN-$((6*7))")
    try:
        for _ in range(stopped):
            held.append(Child(command))
            held[-1].expect(CODE)
            subprocess.run(as_user("bob", "kill", "-STOP", str(held[-1].pid)), check=True)
        assert soon(lambda: all(is_stopped(child.pid) for child in held))
        assert holders() == {running.process.pid}
        assert soon(lambda: len(running.descriptors) <= idle)
        slowest = 0
        for host, code in ((Su, 0), (Sudo, 1), (Su, 2), (Sudo, 3)):
            start = time.monotonic()
            assert host().enter("alice", enrollment.backup_codes[code])
            slowest = max(slowest, time.monotonic() - start)
        assert slowest < CALL
        # Each goes on where it was.
        for child, code, is_right in ((held[0], enrollment.wrong(), False),
                                      (held[1], enrollment.code(), True)):
            child.kill(signal.SIGCONT)
            child.answer(code)
            assert (child.expect(["IN-42", "failure"]) == 0) == is_right
    finally:
        for child in held:
            child.close(force=True)
    figure(f"a whole su or sudo beside {stopped} stopped at their prompts: {slowest * 1e3:.0f} ms at most")


def traced(host, trace, *words):
    """A host that root traces, so that it is still set-uid, and its trace."""
    user, command = (("bob", ["su", "alice", "-c"]) if host is Su else
                     ("alice", ["sudo", "-k", "/bin/sh", "-c"]))
    return ["strace", "-u", user, "-e", "trace=openat,connect", "-o", trace, *words, *command,
            "echo IN-$((6*7))"]


def connects(trace):
    """The paths of the sockets, in turn."""
    return re.findall(r"(?m)^connect\(.*sun_path=\"([^\"]*)\"", trace.read_text())


# shows: no-service
@pytest.mark.parametrize("host", [Su, Sudo])
def test_stopped_before_its_packet_it_turns_to_no_file(store, running, sink, tmp_path, host):
    """Eight at a time, each stopped by the kernel as soon as it has its connection. Who goes on
    within his five seconds asks the service again; who comes later is refused."""
    enrollment = store.enroll(allow_missing=False)
    state, trace = store.state().read_bytes(), tmp_path / "trace"
    assert not converse(traced(host, trace), enrollment.wrong())[0]
    turn = connects(trace).index(str(ROOT)) + 1
    assert store.state().read_bytes() != state
    state, idle = store.state().read_bytes(), len(running.descriptors)
    stop = ["-e", f"inject=connect:signal=SIGSTOP:when={turn}"]
    held = [(Child(traced(host, tmp_path / f"trace{number}", *stop)), tmp_path / f"trace{number}")
            for number in range(8)]
    try:
        assert soon(lambda: all(
            file.exists() and "stopped by SIGSTOP" in file.read_text() for _, file in held))
        assert Sudo().enter("alice", enrollment.backup_codes[0])
        state, asked = store.state().read_bytes(), False
        # The service waits a second for the packet, and no longer.
        assert soon(lambda: len(running.descriptors) <= idle)
        for child, file in held:
            [process] = children(child.pid)
            os.kill(int(process), signal.SIGCONT)
            if child.expect([CODE, pexpect.EOF]) == 0:
                asked = True
                child.answer(enrollment.wrong())
                assert child.expect(["IN-42", "failure", "again", pexpect.EOF]) > 0
            assert str(DEFAULT_STORE) not in file.read_text()
        assert (store.state().read_bytes() != state) == asked
    finally:
        for child, _ in held:
            child.close(force=True)


def fill(ready):
    """As many connections as may wait at root's socket; tells how many."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    clients = []
    with contextlib.suppress(BlockingIOError):
        while True:
            clients.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            clients[-1].connect(str(ROOT))
    os.write(ready, str(len(clients) - 1).encode())
    signal.pause()


@contextlib.contextmanager
def full_backlog(running):
    """The service stands still, and as many connections wait as may."""
    os.kill(running.process.pid, signal.SIGSTOP)
    assert soon(lambda: is_stopped(running.process.pid))
    start, ready = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            fill(ready)
        finally:
            os._exit(1)
    os.close(ready)
    try:
        yield int(os.read(start, 10))
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(start)
        os.kill(running.process.pid, signal.SIGCONT)


# shows: no-service
@pytest.mark.parametrize("host", [Su, Sudo])
def test_with_a_full_backlog_it_is_refused_in_time_and_turns_to_no_file(
        store, running, sink, figure, tmp_path, host):
    enrollment = store.enroll(allow_missing=False)
    state, slowest = store.state().read_bytes(), 0
    with full_backlog(running) as waiting:
        for code in (enrollment.wrong(), enrollment.code()):
            trace, start = tmp_path / "trace", time.monotonic()
            with sink.watch() as lines:
                assert not converse(traced(host, trace), code)[0]
            slowest = max(slowest, time.monotonic() - start)
            assert str(ROOT) in connects(trace) and str(DEFAULT_STORE) not in trace.read_text()
            assert any(str(ROOT) in line.text for line in lines)
    assert store.state().read_bytes() == state
    assert soon(lambda: host().enter("alice", enrollment.backup_codes.pop()))
    figure(f"{host.__name__.lower()} with {waiting} connections waiting: refused within {slowest:.2f} s")


RAW = """
import socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.settimeout(20)
client.connect(sys.argv[1])
try:
    client.send(bytes.fromhex(sys.argv[2]))
    print(client.recv(100).hex())
except (BrokenPipeError, ConnectionResetError):
    print()
"""
CONTAINERS = {
    "root of alice's": (3001, ["-Ur"], {"alice"}),
    "bob's number, in alice's": (3001, ["-U", "--map-user=3002", "--map-group=3002"], {"alice"}),
    "nobody's number, in alice's": (3001, ["-U"], {"alice"}),
    "root of one whose numbers have no account": (203001, ["-Ur"], set()),
    "alice's number, where that has no account": (
        203001, ["-U", "--map-user=3001", "--map-group=3001"], set()),
    "root's own": (0, ["-Ur"], {"root"}),
}


# shows: container
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_peer_in_a_container_is_whom_this_machine_knows_him_as(store, running, sink, container):
    """A program without our module, which asks what it likes on the public socket."""
    uid, words, own = CONTAINERS[container]
    for name in ("alice", "bob", "root"):
        store.enroll(name, allow_missing=False)
    for name in ("alice", "bob", "root"):
        before = store.state(name).read_bytes()
        done = subprocess.run(
            ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "unshare", *words,
             "/usr/bin/python3", "-c", RAW, str(PUBLIC), attempt(name.encode(), b"000000").hex()],
            capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        answer = bytes.fromhex(done.stdout)
        if name in own:
            assert answer.startswith(b"\1\x5a")
            assert store.state(name).read_bytes() != before
        else:
            # That it is not allowed, or, where nobody has the number here, that nothing was done.
            assert answer in (ANSWERS[PUBLIC], b"\1\xf0\1")
            assert store.state(name).read_bytes() == before
