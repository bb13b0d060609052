"""The sockets of sallyportd: who is answered, in what bounds, and how it starts and ends."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import time
import traceback
from pathlib import Path

import pytest

from support.hosts import UIDS
from support.sallyport import REPOSITORY, sallyport
from support.service import (
    ANSWERS, PUBLIC, REQUEST, ROOT, SERVICE, Service, ask, connect, listens, soon)


@pytest.fixture(autouse=True)
def _a_store_and_no_sockets():
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    assert sallyport("prepare").returncode == 0
    yield
    shutil.rmtree("/run/sallyport", ignore_errors=True)


@pytest.fixture
def service():
    with Service() as running:
        yield running


@contextlib.contextmanager
def child(body, user=0):
    """A process that does something as a user, and is gone afterwards."""
    process = os.fork()
    if process == 0:
        try:
            os.setresuid(user, user, user)
            body()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    try:
        yield process
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_the_paths_are_roots_and_gone_with_the_service(service):
    for path, mode in ((ROOT, 0o140600), (PUBLIC, 0o140666), (ROOT.parent, 0o40755)):
        found = path.stat()
        assert (found.st_mode, found.st_uid) == (mode, 0)
    assert service.stop() == 0
    assert not ROOT.exists() and not PUBLIC.exists()


# shows: standard-descriptors
def test_standard_descriptors_that_are_closed_get_no_socket():
    with Service(preexec_fn=lambda: os.closerange(0, 3)) as service:
        assert ask(ROOT) == ANSWERS[ROOT]
        assert {service.descriptors[number] for number in range(3)} == {"/dev/null"}


# shows: packets
def test_descriptors_that_come_with_a_packet_are_not_taken(service):
    assert ask(ROOT) == ANSWERS[ROOT]
    count = len(service.descriptors)
    with open("/etc/passwd") as file, connect(ROOT) as client:
        socket.send_fds(client, [REQUEST], [file.fileno()] * 3)
        assert client.recv(100) == b""
    # One more is the log's, which it may open only now.
    assert soon(lambda: len(service.descriptors) <= count + 1)


# shows: peer
def test_a_connection_that_was_handed_on_is_closed(service):
    client = connect(ROOT)
    with child(lambda: (client.send(REQUEST), signal.pause())):
        assert client.recv(100) == b""


def test_a_stream_is_turned_away(service):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, pytest.raises(OSError) as seen:
        client.connect(str(ROOT))
    assert seen.value.errno == 91  # EPROTOTYPE
    assert ask(ROOT) == ANSWERS[ROOT]


def test_an_ordinary_user_reaches_the_public_socket_alone(service, tmp_path):
    def body():
        try:
            connect(ROOT)
        except PermissionError:
            os.write(end, ask(PUBLIC))

    start, end = os.pipe()
    with child(body, UIDS["alice"]):
        assert os.read(start, 100) == ANSWERS[PUBLIC]


# shows: packets
def test_ten_thousand_clients_in_turn_leave_neither_descriptor_nor_memory(service, figure):
    for _ in range(1000):
        assert ask(ROOT) == ANSWERS[ROOT]
    count, memory = len(service.descriptors), service.memory
    start = time.monotonic()
    for number in range(10_000):
        path = PUBLIC if number % 2 else ROOT
        if number % 5 == 0:
            connect(path).close()
        else:
            assert ask(path) == ANSWERS[path]
    each = (time.monotonic() - start) / 10_000
    assert soon(lambda: len(service.descriptors) <= count)
    assert service.memory <= memory + 1024
    figure(f"a request from Python to the service, and its answer: {each * 1e6:.0f} µs")


@pytest.mark.parametrize("path", [ROOT, PUBLIC], ids=["root", "public"])
def test_sixty_four_at_once_are_all_answered(service, path):
    def body():
        clients = [connect(path) for _ in range(64)]
        for client in clients:
            client.send(REQUEST)
        os.write(end, b"%d" % sum(client.recv(100) == ANSWERS[path] for client in clients))

    for user in (0, UIDS["alice"]) if path == PUBLIC else (0,):
        start, end = os.pipe()
        with child(body, user):
            assert os.read(start, 100) == b"64"


def test_with_few_descriptors_who_sends_is_answered_and_who_is_silent_goes():
    bound = (24, 24)
    with Service(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, bound)) as service:
        silent = [connect(PUBLIC) for _ in range(100)]
        # Perhaps that it has trouble: it needs descriptors for accounts.
        for _ in range(100):
            assert ask(PUBLIC, limit=5) != b""
        for client in silent:
            assert client.recv(100) == b""
        assert soon(lambda: len(service.descriptors) < 18) and ask(PUBLIC) == ANSWERS[PUBLIC]


def test_an_end_is_not_put_off_by_who_sends_nothing(service):
    clients = [connect(ROOT) for _ in range(20)]
    start = time.monotonic()
    assert service.stop(limit=4) == 0
    assert time.monotonic() - start < 4
    assert all(client.recv(100) == b"" for client in clients)


def test_of_two_that_start_at_once_one_serves(tmp_path):
    for _ in range(10):
        both = [subprocess.Popen([SERVICE], stderr=subprocess.PIPE) for _ in range(2)]
        assert soon(lambda: any(one.poll() is not None for one in both))
        loser = both[both[0].poll() is None]
        winner = both[loser is both[0]]
        assert loser.wait(10) == 1 and b"another service listens" in loser.stderr.read()
        assert soon(lambda: listens(ROOT) and listens(PUBLIC)) and ask(ROOT) == ANSWERS[ROOT]
        winner.terminate()
        assert winner.wait(10) == 0
        loser.stderr.close(), winner.stderr.close()


def test_killed_at_any_point_it_starts_again_and_nobody_waits_longer():
    pauses = random.Random(7)
    for _ in range(60):
        service = subprocess.Popen([SERVICE])
        end = time.monotonic() + pauses.uniform(0, 0.06)
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                assert ask(ROOT, limit=5.5) == ANSWERS[ROOT]
        with contextlib.ExitStack() as stack:
            waiting = []
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                waiting.append(stack.enter_context(connect(ROOT, limit=5.5)))
                waiting[-1].send(REQUEST)
            service.kill()
            service.wait()
            for client in waiting:
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(100) in (ANSWERS[ROOT], b"")
    with Service():
        assert ask(ROOT) == ANSWERS[ROOT]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_in_the_way_is_neither_served_nor_removed(kind):
    ROOT.parent.mkdir(mode=0o755)
    if kind == "file":
        ROOT.write_text("mine")
    else:
        ROOT.symlink_to("nowhere")
    done = subprocess.run([SERVICE], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "is not a socket" in done.stderr
    assert ROOT.is_symlink() or ROOT.read_text() == "mine"


# Sockets from somebody else


def activated(*paths, how="--seqpacket"):
    if shutil.which("systemd-socket-activate") is None:
        pytest.skip("systemd-socket-activate is not installed")
    ROOT.parent.mkdir(mode=0o755, exist_ok=True)
    return ["systemd-socket-activate", how, *(f"--listen={path}" for path in paths), SERVICE]


def test_sockets_that_are_passed_are_served_and_stay():
    with Service(*activated(ROOT, PUBLIC)) as service:
        for path in (ROOT, PUBLIC) * 50:
            assert ask(path) == ANSWERS[path]
        assert service.stop() == 0
    assert ROOT.is_socket() and PUBLIC.is_socket()
    # As after a kill, it takes its own in their place.
    with Service():
        assert ask(ROOT) == ANSWERS[ROOT]


def test_of_two_sockets_one_can_be_passed_alone():
    service = Service(*activated(PUBLIC), stderr=subprocess.DEVNULL)
    assert soon(lambda: listens(PUBLIC)) and ask(PUBLIC) == ANSWERS[PUBLIC] and not ROOT.exists()
    assert service.stop() == 0


@pytest.mark.parametrize("what", ["stream", "elsewhere"])
def test_a_socket_that_is_not_its_own_is_not_served(what):
    ROOT.parent.mkdir(mode=0o755)
    path, kind = (ROOT, "--fdname=x") if what == "stream" else (Path("/run/elsewhere"), "--seqpacket")
    service = subprocess.Popen(activated(path, how=kind), stderr=subprocess.PIPE, text=True)
    assert soon(path.exists)
    stream = socket.SOCK_STREAM if what == "stream" else socket.SOCK_SEQPACKET
    with socket.socket(socket.AF_UNIX, stream) as client:
        client.settimeout(20)
        assert soon(lambda: client.connect_ex(str(path)) == 0)
        assert service.wait(20) == 1
        assert "descriptor 3 is not one of the service's sockets" in service.stderr.read()


def test_sockets_that_were_meant_for_another_process_are_left_alone():
    environment = {**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "1"}
    with Service(env=environment):
        assert ask(ROOT) == ANSWERS[ROOT]


# The modules of PAM in a session need more: files of the user, and to become the user.
@pytest.mark.parametrize("name, threshold", [("sallyport", 25), ("sallyport-session", 32)])
def test_the_unit_is_confined_and_the_users_stay_apart(name, threshold):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = REPOSITORY / f"pam/{name}.service"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={threshold}", unit],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PrivateUsers=" not in unit.read_text().replace("# Never PrivateUsers", "")


def test_without_systemd_the_init_script_starts_and_ends_it():
    script = REPOSITORY / "pam/sallyport.init"
    Path("/etc/default/sallyport").write_text(f"DAEMON={SERVICE}\n")

    def call(verb):
        return subprocess.run([script, verb], capture_output=True, timeout=60).returncode

    assert call("status") != 0
    assert call("start") == 0 and soon(lambda: listens(ROOT)) and call("start") == 0
    assert call("status") == 0 and ask(ROOT) == ANSWERS[ROOT]
    first = Path("/run/sallyportd.pid").read_text()
    assert call("restart") == 0 and soon(lambda: listens(ROOT))
    assert Path("/run/sallyportd.pid").read_text() != first
    assert call("stop") == 0 and not ROOT.exists() and call("status") != 0 and call("stop") == 0


# Crowds


def p99(path, count=200):
    times = []
    for _ in range(count):
        start = time.monotonic()
        assert ask(path, limit=5) == ANSWERS[path]
        times.append(time.monotonic() - start)
    return statistics.quantiles(times, n=100)[98]


# shows: service-crowd
@pytest.mark.alone
def test_connections_without_a_packet_keep_nobody_out(service):
    """As of somebody's su that he has stopped: their peers have uid 0, as everybody's there."""
    quiet = p99(ROOT)
    held = [connect(ROOT) for _ in range(300)]
    assert p99(ROOT) <= quiet + 0.05
    for client in held:
        assert client.recv(100) == b""


# shows: service-crowd
@pytest.mark.alone
def test_a_user_who_floods_the_public_socket_keeps_nobody_out(figure):
    def flood():
        while True:
            with contextlib.suppress(OSError), \
                    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.setblocking(False)
                client.connect(str(PUBLIC))

    def reckon():
        while True:
            pass

    def of_bob():
        start, end = os.pipe()
        with child(lambda: os.write(end, str(p99(PUBLIC)).encode()), UIDS["bob"]):
            os.close(end)
            with open(start) as answer:
                return float(answer.read())

    def beside(load):
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(child(load, UIDS["alice"]))
            return p99(ROOT), of_bob()

    # As the unit and the init script start it.
    with Service("nice", "-n", "-5", SERVICE):
        quiet, full = beside(reckon), beside(flood)
    figure(f"p99 beside four who flood: root {full[0] * 1e3:.1f} ms ({quiet[0] * 1e3:.1f} beside "
           f"four who reckon), another user {full[1] * 1e3:.1f} ms ({quiet[1] * 1e3:.1f})")
    assert full[0] <= quiet[0] + 0.05 and full[1] <= quiet[1] + 0.1
