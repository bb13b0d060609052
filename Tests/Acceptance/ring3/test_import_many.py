"""Imports of thousands: killed, interrupted, and beside others."""

import json
import signal
import subprocess
import time

import pytest

from support.pam_driver import SUCCESS, Driver
from support.peers import imported
from support.sallyport import COMMAND, sallyport

# A disk takes longer to remove these files than the tests to make them.
pytestmark = pytest.mark.in_memory


def oath_list(path, count):
    path.write_text("".join(f"HOTP\tu{n:05}\t-\t{n:040x}\n" for n in range(1, count + 1)))
    path.chmod(0o600)


def test_an_import_that_is_killed_leaves_whole_enrollments_and_goes_on(tmp_path, store):
    path, count = tmp_path / "users.oath", 5000
    oath_list(path, count)
    users = store.directory / "users"
    process = subprocess.Popen(
        [COMMAND, "import", "pam-oath", path, "--allow-missing", "--store", store.directory],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(users.glob("u*")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    listed = sallyport("list", "--json", "--store", store.directory)
    assert listed.returncode == 0, listed.stderr
    done = len(json.loads(listed.stdout)["users"])
    assert 0 < done < count
    report = imported(store, "pam-oath", path, "--allow-missing")
    results = [each["result"] for each in report.values()]
    assert (results.count("already-imported"), results.count("imported")) == (done, count - done)
    assert not [each for each in users.iterdir() if each.name.startswith(".")]


def test_an_interrupted_import_says_so_and_goes_on(tmp_path, store):
    path = tmp_path / "users.oath"
    oath_list(path, 5000)
    process = subprocess.Popen(
        [COMMAND, "import", "pam-oath", path, "--allow-missing", "--store", store.directory],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not any((store.directory / "users").glob("u*")):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130 and "stopped after " in told, told
    whole = sallyport("import", "pam-oath", path, "--allow-missing", "--store", store.directory)
    assert whole.returncode == 0 and "already imported" in whole.stdout, whole.stderr


def test_others_enroll_and_log_in_while_many_are_imported(tmp_path, store, services, sink):
    path, count = tmp_path / "users.oath", 10_000
    oath_list(path, count)
    process = subprocess.Popen(
        [COMMAND, "import", "pam-oath", path, "--allow-missing", "--store", store.directory],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any((store.directory / "users").glob("u*")):
        time.sleep(0.001)
    alice = store.enroll("alice")
    with Driver(services) as driver:
        logins = [driver.login("login", "alice", code).result for code in alice.backup_codes]
    assert process.poll() is None, "the import was over before anybody else came"
    assert logins == [SUCCESS] * 10
    assert process.wait() == 0
    listed = json.loads(sallyport("list", "--json", "--store", store.directory).stdout)
    assert len(listed["users"]) == count + 1
