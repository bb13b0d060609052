"""Fixtures of rings 3 and 4."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import only
from support.dealing import pytest_xdist_make_scheduler  # noqa: F401
from support.logsink import LogSink
from support.pam_driver import VALGRIND, Driver
from support.sallyport import COMMAND, MODULE, REAL_ROOT, Services, Store, handed_out

SHARED = os.environ["SALLYPORT_SHARED"]
LONGEST_TEST = 180  # seconds; a host that hangs is a failure, not a wait
# Fixtures before a test: one that needs all processors waits for the tests of other machines.
LONGEST_SETUP = 4 * LONGEST_TEST


def limited(seconds):
    def stop(*_):
        raise TimeoutError(f"not done after {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup():
    yield from limited(LONGEST_SETUP)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    yield from limited(LONGEST_TEST)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown():
    yield from limited(LONGEST_TEST)


def pytest_collection_modifyitems(config, items):
    """Those that are alone, then the long ones, so that none of them is left for the end."""
    only.keep(config, items)
    items.sort(key=lambda item: next(
        (place for place, marker in enumerate(("alone", "first"))
         if item.get_closest_marker(marker)), 2))


def pytest_report_header():
    root = "root" if REAL_ROOT else "no root: a user namespace"
    return [f"module: {os.path.getsize(MODULE)} bytes, command: {os.path.getsize(COMMAND)}", root]


def pytest_terminal_summary(terminalreporter):
    figures = [text for report in terminalreporter.getreports("passed")
               for kind, text in report.user_properties if kind == "figure"]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture
def figure(record_property):
    """Notes a measured figure for the end of the run."""
    return lambda text: record_property("figure", text)


@pytest.fixture(autouse=True)
def _alone_or_in_company(request):
    """A test that compares times runs while no other machine of this run has a test."""
    alone = request.node.get_closest_marker("alone") is not None
    with open(f"{SHARED}/door", "w") as door, open(f"{SHARED}/room", "w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)  # nobody goes in while somebody waits to be alone
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@pytest.fixture(scope="session")
def sink():
    return LogSink()


@pytest.fixture(autouse=True)
def _log_tells_no_secret(sink):
    """After every test: no secret, backup code or code stands in what the module logged."""
    handed_out.clear()
    start = len(sink.lines)
    yield
    sink.flush()
    text = "\n".join(line.text for line in sink.lines[start:] if line.ours)
    for secret in handed_out:
        assert secret not in text and secret.replace("-", "") not in text
    print("\n".join(f"{line.level} {line.text}" for line in sink.lines[start:][-20:]))
    without_paths = re.sub(r"/\S+|\[\d+\]", "", text)
    assert not re.search(r"(?<![\w.:-])\d{6,8}(?![\w.:-])", without_paths)


@pytest.fixture(autouse=VALGRIND != "")
def _valgrind_finds_nothing():
    os.makedirs(VALGRIND, exist_ok=True)
    yield
    for report in Path(VALGRIND).iterdir():
        found = report.read_text()
        report.unlink()
        assert found == ""


@pytest.fixture
def store(request, tmp_path):
    if request.node.get_closest_marker("in_memory") is None:
        yield Store(tmp_path / "store")
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            yield Store(f"{directory}/store")


@pytest.fixture
def services(tmp_path, store):
    """`login` (local) and `sshd` (remote) with our line alone, without delay."""
    services = Services(tmp_path / "pam.d")
    for name in ("login", "sshd"):
        services.code(name, store, "nodelay")
    return services


@pytest.fixture
def driver(sink, services):
    with Driver(services) as driver:
        yield driver


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The module where libpam looks: a copy of that directory, on this private machine only."""
    directory = next(Path("/usr/lib").glob("*/security/pam_unix.so")).parent
    copy = tmp_path_factory.mktemp("security") / "copy"
    shutil.copytree(directory, copy, symlinks=True)
    shutil.copy(MODULE, copy / "pam_sallyport.so")
    subprocess.run(["mount", "--bind", copy, directory], check=True)
    yield
    # A host that is about to end may have a module there open still.
    subprocess.run(["umount", "--lazy", directory], check=True)
