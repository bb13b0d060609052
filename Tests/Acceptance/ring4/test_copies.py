"""A store that was copied to another machine, or that is to go with an image."""

import datetime
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support import recipes
from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import COMMAND, sallyport
from support.steps import broken_at, steps
from support.whole import STRIDE
from test_adopt import CHANGING, files

MACHINE_ID, WORD = Path("/etc/machine-id"), Path("/etc/security/sallyport-machine")
TOLD = Path("/run/sallyport-machine.told")
WARNING = "this store was made on another machine (by its machine-id): codes used there are good here"
FIX = '; "sallyport prepare --new-machine" refuses them'


def become(number):
    """Another machine, as far as its machine-id says."""
    MACHINE_ID.write_text(f"{number:032x}\n")


@pytest.fixture
def store(store):
    before = MACHINE_ID.read_bytes() if MACHINE_ID.exists() else None
    become(1)
    yield store
    MACHINE_ID.unlink() if before is None else MACHINE_ID.write_bytes(before)
    for path in (WORD, TOLD):
        path.unlink(missing_ok=True)


def prepare(*words, prefix=(), typed=None):
    return subprocess.run([*map(str, prefix), COMMAND, "prepare", *words], input=typed,
                          stdin=subprocess.DEVNULL if typed is None else None,
                          capture_output=True, text=True, timeout=60)


def found(store, name):
    """doctor's finding of this id, or None."""
    said = json.loads(sallyport("doctor", "--json", "--store", store.directory).stdout)
    return next((one for one in said["findings"] if one["id"] == name), None)


def alerts(sink, start):
    sink.flush()
    return [line.text for line in sink.lines[start:]
            if line.level == "ALERT" and "another machine" in line.text]


def contents(store):
    """But for the acts, of which each command leaves one."""
    return {path: path.read_bytes() for path in store.directory.rglob("*")
            if path.is_file() and path.parent.name != "acts"}


def after(enrollment, seconds=360):
    """A moment after all codes of now, and the code of then."""
    moment = int(time.time()) + seconds
    return moment, enrollment.code(moment)


def test_a_copy_is_told_by_doctor_and_once_a_boot_and_locks_nobody_out(store, services, sink):
    enrollment = store.enroll(allow_missing=False)
    done = prepare()
    assert done.returncode == 0 and "another machine" not in done.stderr
    assert found(store, "store-machine")["severity"] == "ok"
    sink.flush()
    start = len(sink.lines)
    sallyport("pam", "status", "--check", "--settle", "0")
    assert alerts(sink, start) == []
    become(2)
    for _ in range(3):
        sallyport("pam", "status", "--check", "--settle", "0")
    assert alerts(sink, start) == [f"sallyport: {WARNING}{FIX}"]
    TOLD.unlink()  # as a boot does
    sallyport("pam", "status", "--check", "--settle", "0")
    assert len(alerts(sink, start)) == 2
    told = found(store, "store-machine")
    assert (told["severity"], told["text"]) == ("warning", WARNING)
    done = prepare()
    assert done.returncode == 0 and done.stderr == f"sallyport: warning: {WARNING}{FIX}\n"
    assert found(store, "store-machine")["severity"] == "warning"
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


def test_a_store_of_before_is_taken_for_this_machines_by_the_next_change(store):
    store.enroll(allow_missing=False)
    mark = store.directory / "machine"
    assert mark.stat().st_mode & 0o777 == 0o600
    mark.unlink()
    become(2)
    assert found(store, "store-machine") is None
    store.enroll(user="bob", allow_missing=False)
    assert found(store, "store-machine")["severity"] == "ok" and f"{2:032x}" in mark.read_text()


@pytest.mark.parametrize("spoil", [
    lambda mark: mark.chmod(0o666), lambda mark: os.chown(mark, 1, 1),
    lambda mark: (mark.unlink(), mark.symlink_to("/etc/passwd")),
    lambda mark: (mark.unlink(), mark.mkdir()), lambda mark: mark.write_bytes(b"x" * 100000),
], ids=["open", "another's", "a link", "a directory", "long"])
def test_a_mark_that_cannot_be_read_stops_no_command(store, services, spoil):
    enrollment = store.enroll(allow_missing=False)
    spoil(store.directory / "machine")
    told = found(store, "store-machine")
    assert told["severity"] == "warning" and str(store.directory / "machine") in told["text"]
    assert prepare().returncode == 0
    for words in (("require", "bob"), ("exempt", "bob"), ("enroll", "bob", "--no-confirm", "--json")):
        done = sallyport(*words, "--store", store.directory)
        assert done.returncode == 0, (words, done.stderr)
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


@pytest.mark.decisive
def test_what_a_rule_let_be_far_ahead_on_the_original_is_refused_on_the_copy(store, services):
    """A rule of the service, or the other machine's policy, lets clocks differ by more."""
    policy = Path("/etc/security/sallyport.conf")
    before = policy.read_bytes() if policy.exists() else None
    enrollment = store.enroll(allow_missing=False)
    assert prepare().returncode == 0
    code = enrollment.code(int(time.time()) + 270)  # used on the original
    become(2)
    try:
        policy.write_text("[rule login]\nmatch_service = login\nadjacent_intervals = 10\n")
        assert prepare("--new-machine", "--yes").returncode == 0
        with Driver(services) as driver:
            assert driver.login("login", "alice", code).result == AUTH_ERR
            moment, code = after(enrollment)
            assert driver.login("login", "alice", code, at=moment).result == SUCCESS
    finally:
        policy.unlink() if before is None else policy.write_bytes(before)


def test_the_word_of_prepare_tells_machines_apart_that_are_alike_otherwise(store):
    store.enroll(allow_missing=False)
    assert prepare().returncode == 0
    word = WORD.read_text()
    assert re.fullmatch(r"[0-9a-f]{32}\n", word) and WORD.stat().st_mode & 0o777 == 0o600
    assert prepare().returncode == 0 and WORD.read_text() == word
    WORD.write_text(f"{7:032x}\n")
    told = found(store, "store-machine")
    assert told["severity"] == "warning" and "word of sallyport prepare" in told["text"]


def test_two_at_once_leave_the_store_to_this_machine(store, tmp_path):
    """One of them is slow between its word and the mark."""
    store.enroll(allow_missing=False)
    assert prepare().returncode == 0
    kept, report, word = tmp_path / "kept", tmp_path / "strace", WORD.read_text()
    shutil.copytree(store.directory, kept)
    become(2)
    assert prepare("--new-machine", "--yes", prefix=("strace", "-o", report)).returncode == 0
    until_last = report.read_text().rpartition("LOCK_EX")[0]
    locks = len(re.findall(r"^flock\(", until_last, re.M))
    shutil.rmtree(store.directory)
    shutil.copytree(kept, store.directory)
    WORD.write_text(word)
    inject = f"inject=flock:delay_enter=3000000:when={locks}"
    slow = subprocess.Popen(["strace", "-o", "/dev/null", "-e", inject, COMMAND, "prepare",
                             "--new-machine", "--yes"], stdout=subprocess.DEVNULL)
    while slow.poll() is None and WORD.read_text() == word:
        time.sleep(0.01)
    assert prepare("--new-machine", "--yes").returncode == 0
    assert slow.wait(60) == 0
    assert found(store, "store-machine")["severity"] == "ok"


@pytest.mark.decisive
def test_what_was_used_on_the_original_is_refused_on_the_copy(store, services):
    enrollment = store.enroll(allow_missing=False)
    assert prepare().returncode == 0
    become(2)
    code, backup = enrollment.code(), enrollment.backup_codes[0]  # used on the original
    begun = time.time()
    done = prepare("--new-machine", "--yes")
    assert done.returncode == 0, done.stderr
    assert "No backup codes now: alice." in done.stdout and "both take the same" in done.stdout
    assert found(store, "store-machine")["severity"] == "ok"
    until = re.search(r"^Codes are accepted again at (\S+)\.$", done.stdout, re.M)[1]
    told = found(store, "user-ahead")
    assert told["severity"] == "warning" and told["text"].startswith(
        f"codes of alice are refused until {until} (prepare --new-machine,")
    assert "backup codes work" not in told["text"] and "resync" not in json.dumps(told)
    end = datetime.datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp()
    assert 300 < end - begun <= 331 + time.time() - begun
    with Driver(services) as driver:
        assert driver.login("login", "alice", code).result == AUTH_ERR
        assert driver.login("login", "alice", backup).result == AUTH_ERR
        moment, code = int(end), enrollment.code(int(end))
        early = enrollment.code(moment - 1)
        assert driver.login("login", "alice", early, at=moment - 1).result == AUTH_ERR
        assert driver.login("login", "alice", code, at=moment).result == SUCCESS
        assert driver.login("login", "alice", code, at=moment).result == AUTH_ERR
        fresh = store.regenerate()[0]
        assert driver.login("login", "alice", fresh).result == SUCCESS
    before = contents(store)
    assert "Nothing was changed" in prepare("--new-machine", "--yes").stdout
    assert contents(store) == before


@pytest.mark.decisive
def test_a_counter_of_a_copy_is_refused_until_it_is_synchronized(store, services):
    fob = store.enroll(name="fob", type="hotp", allow_missing=False)
    codes = fob.codes(12)
    with Driver(services) as driver:
        assert driver.login("login", "alice", codes[0]).result == SUCCESS
        become(2)
        done = prepare("--new-machine", "--yes")
        assert done.returncode == 0 and "sallyport resync NAME" in done.stdout
        told = found(store, "user-counter")
        assert told["severity"] == "warning" and "sallyport resync alice" in json.dumps(told)
        assert store.status()["authenticators"][0]["counter"] == 1
        for code in codes[1:8]:
            assert driver.login("login", "alice", code).result == AUTH_ERR
        again = sallyport("resync", "alice", "--store", store.directory,
                          typed=f"{codes[0]}\n{codes[1]}\n")
        assert again.returncode == 1, "codes that were used"
        done = sallyport("resync", "alice", "--store", store.directory,
                         typed=f"{codes[9]}\n{codes[10]}\n")
        assert done.returncode == 0, done.stderr
        assert found(store, "user-counter") is None
        assert sallyport("unlock", "alice", "--store", store.directory).returncode == 0
        assert driver.login("login", "alice", codes[11]).result == SUCCESS


def test_without_an_answer_a_copy_stays_as_it_is(store):
    store.enroll(allow_missing=False)
    become(2)
    before = contents(store)
    for words in (("--new-machine",), ("--empty",)):
        assert prepare(*words, typed="n\n").returncode != 0
        done = prepare(*words)
        assert done.returncode == 1 and done.stderr == (
            "sallyport: there is no terminal to ask on: nothing was changed\n"
            f"hint: sallyport prepare {words[0]} --yes  # does not ask\n")
        assert "from now on" not in done.stdout
    for words in (("--yes",), ("--new-machine", "--empty"), ("--new-machine", "--store-only")):
        assert prepare(*words).returncode == 64
    assert contents(store) == before


def test_one_that_cannot_be_read_is_told_and_the_others_are_taken_over(store, services):
    enrollment = store.enroll(allow_missing=False)
    bob = store.enroll(user="bob", allow_missing=False)
    whole = store.enrollment("bob").read_bytes()
    store.enrollment("bob").write_bytes(whole[:-5])
    become(2)
    done = prepare("--new-machine", "--yes")
    assert done.returncode == 65 and "sallyport: bob: " in done.stderr, done.stderr
    assert "\nhint: sallyport enroll bob --force  # replaces it\n" in done.stderr
    told = found(store, "store-machine")
    assert told["severity"] == "warning" and "prepare could not take over bob" in told["text"]
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.backup_codes[0]).result == AUTH_ERR
        # As at each start of sshd: what was made after the first time stays.
        fresh = store.regenerate()
        before = contents(store)
        again = prepare("--new-machine", "--yes")
        assert again.returncode == 65 and "sallyport: bob: " in again.stderr
        assert contents(store) == before
        assert driver.login("login", "alice", fresh[0]).result == SUCCESS
        store.enrollment("bob").write_bytes(whole)
        assert prepare("--new-machine", "--yes").returncode == 0
        assert found(store, "store-machine")["severity"] == "ok"
        assert driver.login("login", "bob", bob.backup_codes[0]).result == AUTH_ERR
        assert driver.login("login", "alice", fresh[1]).result == SUCCESS


def test_one_that_could_not_be_read_and_is_enrolled_again_keeps_the_new_codes(store, services):
    store.enroll(user="bob", allow_missing=False)
    store.enrollment("bob").write_bytes(b"nothing")
    become(2)
    assert prepare("--new-machine", "--yes").returncode == 65
    mark = store.directory / "machine"
    text = mark.read_text()
    since = int(re.search(r"^since = (\d+)$", text, re.M)[1])
    mark.write_text(text.replace(f"since = {since}", f"since = {since - 1}"))  # not in one second
    bob = store.enroll(user="bob", allow_missing=False)
    assert prepare("--new-machine", "--yes").returncode == 0
    assert found(store, "store-machine")["severity"] == "ok"
    with Driver(services) as driver:
        assert driver.login("login", "bob", bob.backup_codes[0]).result == SUCCESS


def killed_at_each_step(store, report, *words):
    """Yields (call, count), some of them or all, with the store as a kill there left it."""
    kept = report.with_name("kept")
    shutil.copytree(store.directory, kept)
    assert prepare(*words, prefix=("strace", "-y", "-o", report)).returncode == 0
    found = steps(report, store.directory, CHANGING)
    assert len(found) > 6
    for call, count in found[::STRIDE]:
        shutil.rmtree(store.directory)
        shutil.copytree(kept, store.directory)
        killed = prepare(*words, prefix=broken_at(call, count))
        assert killed.returncode != 0, (call, count)
        yield call, count


def test_killed_at_each_step_nobody_is_lost_and_the_same_command_ends_it(
        store, services, tmp_path, figure):
    people = {name: store.enroll(user=name, allow_missing=False) for name in ("alice", "bob")}
    assert prepare().returncode == 0
    become(2)
    steps = 0
    with Driver(services) as driver:
        for place in killed_at_each_step(store, tmp_path / "strace", "--new-machine", "--yes"):
            steps += 1
            assert files(store) == ["alice", "bob"], place
            isDone = found(store, "store-machine")["severity"] == "ok"
            if not isDone:
                assert prepare("--new-machine", "--yes").returncode == 0, place
            assert found(store, "store-machine")["severity"] == "ok", place
            for name, enrollment in people.items():
                assert driver.login("login", name, enrollment.code()).result == AUTH_ERR, place
                backup = enrollment.backup_codes[0]
                assert driver.login("login", name, backup).result == AUTH_ERR, place
                moment, code = after(enrollment)
                assert driver.login("login", name, code, at=moment).result == SUCCESS, place
    figure(f"{steps} kills of prepare --new-machine")


def test_the_recipe_of_a_copy_acts_at_the_first_start_of_sshd_alone(store, services):
    assert recipes.block("### Images and copies", "In an image") == "sallyport prepare --empty --yes\n"
    assert "  - sallyport prepare\n" in recipes.block("### Images and copies", "`user-data`")
    line = re.search(r"^ExecStartPre=-/usr/bin/sallyport (.*)$", recipes.block(
        "### Images and copies", "`/etc/systemd/system/ssh.service.d/sallyport.conf`"), re.M)[1]
    enrollment = store.enroll(allow_missing=False)
    assert sallyport(*line.split()).returncode == 0
    with Driver(services) as driver:
        code, backup = enrollment.code(), enrollment.backup_codes[1]
        assert driver.login("login", "alice", enrollment.backup_codes[0]).result == SUCCESS
        become(2)
        assert sallyport(*line.split()).returncode == 0
        for used in (code, backup):
            assert driver.login("login", "alice", used).result == AUTH_ERR
        before = contents(store)
        assert sallyport(*line.split()).returncode == 0 and contents(store) == before
