"""`sallyport pam enable --revert-in`: what nobody confirms is taken back, whatever becomes of the
command and of the terminal that it was typed on."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.hosts import PAM_D
from support.sallyport import COMMAND, sallyport
from support.typist import Child
from test_pam import BASE, base  # noqa: F401: a fixture
from own_sshd import OURS, Daemon, content, daemon, signalled  # noqa: F401: a fixture

pytestmark = pytest.mark.usefixtures("base")
RECORD = Path("/etc/security/sallyport-revert")


def timers():
    """The processes that wait to take something back."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:4] == [b"pam", b"revert", b"--due"]:
            found.append(int(path.parent.name))
    return found


def until(is_so, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def taken_back():
    """Whether nothing waits any more; the file goes last."""
    return not RECORD.exists() and not timers()


def overdue():
    """Whether nothing is taken back any more: there is no timer, and there was none in time."""
    try:
        text = RECORD.read_text()
    except FileNotFoundError: # before the change, or the timer has just taken it back
        text = ""
    due = re.search("(?m)^due ([0-9]+)$", text)
    return due and not timers() and time.time() > int(due[1]) + 5


def asks(service):
    return b"pam_sallyport.so" in (PAM_D / service).read_bytes()


def services():
    """Without what a kill leaves of files that were not put in place."""
    return {path.name: path.read_bytes() for path in PAM_D.iterdir() if path.name[0] != "."
            and "before-sallyport" not in path.name}


def enable(*words):
    done = sallyport("pam", "enable", *words, "--yes")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def nothing_pending(base):  # noqa: F811
    yield
    for number in timers():
        os.kill(number, signal.SIGKILL)
    RECORD.unlink(missing_ok=True)


def test_what_nobody_confirms_is_taken_back(store):
    store.enroll(allow_missing=False)
    said = enable("sudo", "su", "--revert-in", "2s")
    assert "taken back in 2 s unless you confirm it" in said
    until(taken_back)
    assert {path.name: path.read_bytes() for path in PAM_D.iterdir()} == BASE
    assert not RECORD.exists()


def test_what_is_confirmed_stays(store):
    store.enroll(allow_missing=False)
    enable("sudo", "--revert-in", "10m")
    assert asks("sudo") and RECORD.stat().st_mode & 0o777 == 0o600
    until(lambda: len(timers()) == 1)
    assert sallyport("pam", "confirm").returncode == 0
    until(taken_back)
    assert asks("sudo") and not RECORD.exists()


# shows: revert-in
def test_a_terminal_that_is_closed_changes_nothing_of_it(store):
    store.enroll(allow_missing=False)
    child = Child([COMMAND, "pam", "enable", "sudo", "--yes", "--revert-in", "2s"],
                  dimensions=(24, 80))
    child.expect("sudo sallyport pam confirm")
    child.close(force=True)
    until(taken_back)
    assert services() == BASE


# shows: revert-in
@pytest.mark.first
@pytest.mark.parametrize("call", ["link", "rename", "fsync"])
def test_what_a_killed_command_has_changed_is_taken_back(call, store):
    store.enroll(allow_missing=False)
    words = ["pam", "enable", "sudo", "su", "--yes", "--revert-in", "1s"]
    kills = 0
    for count in range(1, 30):
        if signalled("SIGKILL", call, count, *words) not in (-9, 137):
            break
        kills += 1
        until(lambda: taken_back() or overdue())
        assert services() == BASE
        if RECORD.exists():  # It was ended before the timer ran, and had written nothing else.
            assert sallyport("pam", "revert").returncode == 0
    assert kills >= 2
    until(taken_back)
    assert services() == BASE


def test_sshd_is_taken_back_too(daemon, store):  # noqa: F811
    store.enroll(allow_missing=False)
    before = content()
    daemon.start()
    offered = daemon.offers()
    enable("sshd", "--revert-in", "4s")
    until(taken_back)
    assert content() == before and daemon.offers() == offered and daemon.by_key()


def test_a_method_is_taken_back_to_the_one_before(daemon, store):  # noqa: F811
    alice = store.enroll(allow_missing=False)
    daemon.start()
    enable("sshd")
    first = OURS.read_text()
    enable("sshd", "--sshd", "key+password+code", "--revert-in", "4s")
    until(taken_back)
    assert OURS.read_text() == first and asks("sshd")
    assert daemon.offers() == "keyboard-interactive" and daemon.enter("alice", alice.code())


# shows: revert-in
def test_after_a_restart_doctor_names_the_command_that_takes_it_back(store, tmp_path):
    store.enroll(allow_missing=False)
    enable("sudo", "--revert-in", "10m")
    until(timers)
    os.kill(timers()[0], signal.SIGKILL)
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    real = "/proc/sys/kernel/random/boot_id"
    subprocess.run(["mount", "--bind", boot, real], check=True)
    try:
        said = json.loads(sallyport("doctor", "--json").stdout)
    finally:
        subprocess.run(["umount", real], check=True)
    found = next(found for found in said["findings"] if found["id"] == "pam-revert")
    assert found["severity"] == "error" and found["fixes"][0]["text"] == "sallyport pam revert"
    assert sallyport("pam", "revert").returncode == 0
    assert services() == BASE and not RECORD.exists()
