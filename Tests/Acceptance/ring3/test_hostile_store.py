"""Stores that were damaged or planted: trouble and a log line, never an entry, never a wait."""

import fcntl
import os
import random
import re
import shutil
import struct
import time

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Crowd
from support.sallyport import REAL_ROOT, aligned_now, reason

LOCK_BOUND = 6  # seconds: the lock's five and room for a slow machine


def replace_with_link(path):
    path.rename(path.with_name(".kept"))
    path.symlink_to(".kept")


def replace_with_directory(path):
    path.unlink()
    path.mkdir()


def replace_with_fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def replace_with_device(path):
    if not REAL_ROOT:
        pytest.skip("making a device node needs root")
    path.unlink()
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


def give_away(path):
    if not REAL_ROOT:
        pytest.skip("giving a file away needs root")
    os.chown(path, 65534, 0)


DAMAGE = {
    "empty": lambda path: os.truncate(path, 0),
    "gone": lambda path: path.unlink(),
    "one line of 1 MB": lambda path: path.write_bytes(b"a" * (1 << 20)),
    "1 MB behind its content": lambda path: path.write_bytes(path.read_bytes() + b"\n" * (1 << 20)),
    "NUL bytes": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a symbolic link": replace_with_link,
    "a hard link": lambda path: os.link(path, path.with_name(".second")),
    "a FIFO": replace_with_fifo,
    "a directory": replace_with_directory,
    "a device": replace_with_device,
    "readable by all": lambda path: path.chmod(0o644),
    "writable by the group": lambda path: path.chmod(0o660),
    "another's": give_away,
}


# shows: store-closed
@pytest.mark.parametrize("name", ["enrollment", "state"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_trouble_and_the_log_names_it(driver, store, sink, name, damage):
    enrollment = store.enroll()
    path = store.of() / name
    DAMAGE[damage](path)
    for answer in (enrollment.code(), enrollment.wrong(), enrollment.backup_codes[0]):
        assert_trouble(driver, sink, path, answer)


def assert_trouble(driver, sink, path, answer, **more):
    """Refused as trouble, soon, with one ALERT line that names the file and says why."""
    start = time.monotonic()
    with sink.watch() as lines:
        login = driver.login("login", "alice", answer, **more)
    assert login.result == TROUBLE
    assert time.monotonic() - start < LOCK_BOUND
    place = path if os.path.lexists(path) else path.parent
    told = [line for line in lines if str(place) in line.text]
    assert told and "error: " in told[0].text and told[0].level == "ALERT", lines


# shows: store-closed
@pytest.mark.parametrize("directory, damage", [
    ("users", "gone"), *((directory, damage) for directory in ("users", "users/alice")
                         for damage in ("a symbolic link", "writable by all", "another's"))])
def test_a_damaged_directory_is_trouble(driver, store, sink, directory, damage):
    enrollment = store.enroll()
    path = store.directory / directory
    if damage == "writable by all":
        path.chmod(0o777)
    elif damage == "gone":
        path.rename(path.with_name(".gone"))
    else:
        DAMAGE[damage](path)
    with sink.watch() as lines:
        login = driver.login("login", "alice", enrollment.code())
    assert login.result == TROUBLE
    assert lines and str(path) in lines[0].text and lines[0].level == "ALERT"


# shows: store-closed
def test_a_store_below_a_directory_that_others_can_write_is_trouble(driver, store, sink):
    enrollment = store.enroll()
    store.directory.parent.chmod(0o777)
    with sink.watch() as lines:
        assert driver.login("login", "alice", enrollment.code()).result == TROUBLE
    assert str(store.directory.parent) in lines[0].text
    store.directory.parent.chmod(0o700)
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


# shows: missing-store
def test_a_store_that_is_not_there_is_trouble_even_with_nullok(driver, store, services, sink):
    services.code("optional", store, "nodelay", "nullok")
    with sink.watch() as lines:
        assert driver.login("optional", "alice", "123456").result == TROUBLE
    assert str(store.directory) in lines[0].text


@pytest.mark.parametrize("name", ["enrollment", "state"])
def test_a_damaged_decoy_keeps_nobody_out_who_is_enrolled(driver, store, sink, name):
    enrollment = store.enroll()
    (store.directory / "decoy" / name).chmod(0o644)
    with sink.watch() as lines:
        assert driver.login("login", "nobody-here", "123456").result == TROUBLE
    assert lines[0].level == "ALERT" and "/decoy/" in lines[0].text
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


# shows: owner-waits, slow-flush
@pytest.mark.decisive
def test_a_lock_that_is_never_given_back_is_trouble_for_right_and_wrong_alike(
        store, services, sink):
    enrollment = store.enroll()
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with open(store.state(), "r+b") as held, sink.watch() as lines:
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, whole)
        with Crowd(services, 2) as crowd:
            logins = crowd.race([(("login", "alice", answer), {}) for answer in
                                 (enrollment.code(), enrollment.wrong())])
    assert [login.result for login in logins] == [TROUBLE, TROUBLE]
    assert all(4.5 < login.seconds < LOCK_BOUND for login in logins)
    assert all("lock" in line.text and str(store.state()) in line.text for line in lines)
    # Anybody who may start a login can hold it: no alert.
    assert len(lines) == 2 and {line.level for line in lines} == {"WARNING"}
    assert all("error: user=alice origin=local: " in line.text for line in lines)


def test_the_state_of_another_user_is_trouble_or_worth_nothing(driver, store, sink):
    alice, bob = store.enroll("alice"), store.enroll("bob")
    code = alice.code()
    assert driver.login("login", "alice", code).result == SUCCESS
    shutil.copy(store.state("bob"), store.state("alice"))
    with sink.watch() as lines:
        login = driver.login("login", "alice", bob.code())
    assert login.result in (AUTH_ERR, TROUBLE) and len(lines) == 1
    assert driver.login("login", "alice", alice.wrong()).result in (AUTH_ERR, TROUBLE)


def test_one_destroyed_slot_is_survived_and_both_are_trouble(driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    state = store.state()
    for slot in (0, 1):
        whole = bytearray(state.read_bytes())
        whole[slot * 4096:(slot + 1) * 4096] = os.urandom(4096)
        state.write_bytes(whole)
        now += 3000
        # The slot may have held a later record, with any code of up to now in it.
        with sink.watch() as lines:
            login = driver.login("login", "alice", enrollment.code(now), at=now)
        assert login.result == AUTH_ERR and " clock" in lines[0].text
        until = int(re.search(r"until unix time (\d+)", lines[0].text).group(1))
        assert until <= now + 330
        assert driver.login(
            "login", "alice", enrollment.code(until), at=until).result == SUCCESS
    state.write_bytes(os.urandom(8192))
    assert_trouble(driver, sink, state, enrollment.code(now + 3000), at=now + 3000)


# shows: damage
@pytest.mark.in_memory
def test_an_enrollment_cut_at_any_byte_is_trouble(driver, store, sink):
    """Its last line says that it is whole; the line feed after that carries nothing."""
    enrollment, now = store.enroll(digits=8), aligned_now()
    wrong, path = enrollment.wrong(now), store.enrollment()
    whole = path.read_bytes()
    assert whole.endswith(b"\n[end]\n")
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        assert_trouble(driver, sink, path, wrong, at=now)


def assert_refused_or_trouble(driver, sink, store, wrong, now):
    """Never a success, never without one line that says why; trouble names the file."""
    with sink.watch() as lines:
        login = driver.login("login", "alice", wrong, at=now)
    if login.result == TROUBLE:
        assert len(lines) == 1 and lines[0].level == "ALERT" and str(store.of()) in lines[0].text
    else:
        assert login.result == AUTH_ERR
        assert reason(lines) in ("wrong-code", "malformed", "throttled"), lines
    return login.result


# shows: damage
@pytest.mark.in_memory
def test_a_state_cut_at_any_byte_is_trouble(driver, store, sink):
    enrollment, now = store.enroll(digits=8), aligned_now()
    path = store.state()
    whole = path.read_bytes()
    assert len(whole) == 8192
    for length in [*range(0, 300), *range(3900, 4300), *range(8100, 8192)]:
        path.write_bytes(whole[:length])
        assert_trouble(driver, sink, path, enrollment.wrong(now), at=now)


def mutated(content, dice):
    """One to eight changes such as a bad disk, a bad editor or a bad person make."""
    bytes_ = bytearray(content)
    for _ in range(dice.randint(1, 8)):
        place = dice.randrange(len(bytes_)) if bytes_ else 0
        kind = dice.randrange(6)
        if kind == 0 and bytes_:
            bytes_[place] ^= 1 << dice.randrange(8)
        elif kind == 1 and bytes_:
            bytes_[place] = dice.choice(b"\0\n\r\x7f\xff=[]#0123456789 ")
        elif kind == 2:
            del bytes_[place:place + dice.randint(1, 40)]
        elif kind == 3:
            bytes_[place:place] = bytes_[dice.randrange(len(bytes_) + 1):][:dice.randint(1, 200)]
        elif kind == 4:
            bytes_[place:place] = dice.randbytes(dice.randint(1, 20))
        else:
            bytes_[place:place] = b"9" * dice.randint(1, 30)
    return bytes(bytes_)


def mutated_record(content, dice):
    """A state whose size is right: only bits inside its slots are wrong."""
    bytes_ = bytearray(content)
    for _ in range(dice.randint(1, 16)):
        bytes_[dice.randrange(2) * 4096 + dice.randrange(400)] = dice.randrange(256)
    return bytes(bytes_)


# shows: damage
@pytest.mark.decisive
@pytest.mark.in_memory
@pytest.mark.parametrize("name, mutate, count", [
    ("enrollment", mutated, 2500), ("state", mutated, 500), ("state", mutated_record, 2000)])
def test_random_damage_never_lets_a_wrong_code_in(driver, store, sink, name, mutate, count, figure):
    enrollment, now = store.enroll(digits=8), aligned_now()
    wrong, dice = enrollment.wrong(now), random.Random(f"{name} {mutate.__name__}")
    path = store.of() / name
    kept = {file: (store.of() / file).read_bytes() for file in ("enrollment", "state")}
    seen, slowest = {}, 0
    for _ in range(count):
        for file, content in kept.items():
            (store.of() / file).write_bytes(content)
        path.write_bytes(mutate(kept[name], dice))
        start = time.monotonic()
        result = assert_refused_or_trouble(driver, sink, store, wrong, now)
        slowest = max(slowest, time.monotonic() - start)
        seen[result] = seen.get(result, 0) + 1
    assert slowest < LOCK_BOUND
    figure(f"{count} random mutations of {name} ({mutate.__name__}): {seen}, "
           f"slowest {slowest:.3f} s")
