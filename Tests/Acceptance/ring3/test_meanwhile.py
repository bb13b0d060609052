"""Enrolling inside a login while root's commands change the store."""

import json
import os
import random
import re
import subprocess
import threading
import time

import pytest

from support.pam_driver import LIVE, SUCCESS, Driver
from support.sallyport import COMMAND, MODULE, first_code, our_line, sallyport

ROUNDS = 40  # of each command: 200 in all
DENIED = "PAM_PERM_DENIED"
SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


@pytest.fixture
def enrolling(store, services, tmp_path):
    """One login of carol's that enrolls her; what the account phase answered."""
    store.enroll("bob")  # makes the store
    policy = tmp_path / "policy.conf"
    policy.write_text("[default]\nenrollment = required\n")
    policy.chmod(0o644)
    place = f"store={store.directory} conf={policy}"
    services.write("sshd", "auth required pam_exec.so quiet expose_authtok /bin/true",
                   our_line(store, f"conf={policy}", "enroll", "nodelay"),
                   f"account required {MODULE} {place}", "account required pam_permit.so")

    def play(driver):
        return driver.login("sshd", "carol", "x", "y", LIVE, "", phases=("auth", "acct"),
                            rhost="192.0.2.7", live=first_code).results[-1]
    return play


def words(verb, store):
    """A command, what is typed into it, and the statuses it may end with."""
    there = ["--user", "carol", "--store", store.directory]
    if verb == "import":
        uri = f"otpauth://totp/carol?secret={SECRET}\n"
        return ["import", "uri", "-", *there], uri, (0, 65)
    return {
        "enroll --force": (["enroll", *there, "--force", "--no-confirm", "--json", "--secret-from",
                            "-"], SECRET + "\n", (0,)),
        "unenroll": (["unenroll", *there, "--force"], None, (0, 66)),
        "require": (["require", *there], None, (0,)),
        "prepare": (["prepare", "--store", store.directory], None, (0,)),
    }[verb]


def kept(store):
    """What is there of carol: nothing, or a whole enrollment that can be used."""
    done = sallyport("status", "--user", "carol", "--json", "--store", store.directory)
    assert done.returncode in (0, 66), done.stderr
    return done.returncode == 0


# shows: enroll-and-command
@pytest.mark.first
@pytest.mark.parametrize("verb", ["enroll --force", "unenroll", "import", "require", "prepare"])
def test_a_login_that_enrolls_and_a_command_leave_something_whole(
        store, services, sink, carol, enrolling, figure, verb):
    command, typed, statuses = words(verb, store)
    outcomes, dice = {}, random.Random(1)
    with Driver(services) as driver:
        for turn in range(ROUNDS):
            sallyport("unenroll", "--user", "carol", "--force", "--store", store.directory)
            results = []
            login = threading.Thread(target=lambda: results.append(enrolling(driver)))
            # Now the login is first, now the command.
            if turn % 2:
                login.start()
            running = subprocess.Popen(
                [COMMAND, *map(str, command)], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if not turn % 2:
                time.sleep(dice.uniform(0, 0.15))  # at any moment of the command
                login.start()
            _, said = running.communicate(typed, timeout=60)
            login.join(60)
            assert not login.is_alive() and len(results) == 1
            assert running.returncode in statuses, said
            assert results[0] in (SUCCESS, DENIED), f"round {turn}"
            is_enrolled = kept(store)
            assert is_enrolled or verb == "unenroll"
            hidden = [name for name in os.listdir(store.directory / "users") if name[0] == "."]
            assert hidden == []
            outcome = results[0], running.returncode, is_enrolled
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    figure(f"an enrolling login against {verb}, {ROUNDS} rounds: {outcomes}")


def test_what_is_just_begun_is_not_locked_by_a_command(store, tmp_path):
    """Between its mkdir and its flock an enrolling login has no lock yet, and would fail."""
    store.enroll("bob")
    begun, report = store.directory / "users" / ".new-0123456789abcdef", tmp_path / "strace"
    begun.mkdir(mode=0o700)
    done = subprocess.run(
        ["strace", "-f", "-y", "-o", report, "-e", "trace=openat,flock", COMMAND, "prepare",
         "--store", store.directory],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    lines = report.read_text().splitlines()
    assert any("openat(" in line and begun.name in line for line in lines), "it is looked at"
    assert any("flock(" in line and "LOCK_EX" in line for line in lines), "strace sees flock"
    assert not [line for line in lines if "flock(" in line and begun.name in line]
    assert begun.is_dir()


# shows: power-cut
def test_creating_syncs_the_directory_before_it_answers(store, tmp_path, sink):
    """A login that was told yes is enrolled after a power cut as well, with files that are whole."""
    store.enroll("bob")
    report = tmp_path / "strace"
    done = subprocess.run(
        ["strace", "-f", "-y", "-o", report, COMMAND, "enroll", "--user", "alice", "--no-confirm",
         "--allow-missing", "--json", "--store", store.directory],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["user"] == "alice"
    lines = report.read_text().splitlines()

    def first(pattern, after=0):
        found = [at for at, line in enumerate(lines) if at >= after and re.search(pattern, line)]
        assert found, pattern
        return found[0]
    named = first(r'renameat2\(.*"\.new-[0-9a-f]{16}", .*"alice", RENAME_NOREPLACE\) = 0')
    for name in ("enrollment", "state"):
        written = first(rf"write64\(\d+<{store.directory}/users/\.new-[0-9a-f]{{16}}/{name}>")
        assert first(rf"fsync\(\d+<{store.directory}/users/\.new-\w+/{name}>\) = 0", written) < named
    synced = first(rf"fsync\(\d+<{store.directory}/users>\) = 0", named)
    answered = first(r"write\(1<", named)
    assert synced < answered
