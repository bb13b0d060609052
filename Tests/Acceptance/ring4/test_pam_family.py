"""`sallyport pam enable sudo` takes sudo's other service too: with real sudo and sudo -i."""

import json
import subprocess
import time

import pytest

from support.hosts import DEBIAN, PAM_D, Sudo, as_user, converse
from support.sallyport import COMMAND, sallyport
from support.steps import broken_at

pytestmark = pytest.mark.usefixtures("debian")
PASSWORD_ALONE = ""
ON, OFF = ["pam", "enable", "sudo", "--yes"], ["pam", "disable", "sudo", "--yes"]


class SudoLogin(Sudo):
    """sudo -i by `user`."""

    def enter(self, user, code, **more):
        return converse(as_user(user, "sudo", "-k", "-i", "printf", "IN-%d", "42"), code, **more)[0]


WAYS = {"sudo": Sudo(), "sudo-i": SudoLogin()}


def directory():
    return {path.name: path.read_bytes() for path in PAM_D.iterdir()}


def run(words):
    done = sallyport(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def doctors_ways():
    """The services that let in without a code, as doctor tells."""
    found = json.loads(sallyport("doctor", "--json").stdout)["findings"]
    return [one["area"] for one in found if one["id"] == "family-open"]


def asking():
    return [name for name in WAYS if (PAM_D / name).read_bytes() != DEBIAN[name]]


# shows: service-family
def test_sudo_and_sudo_i_ask_from_enable_to_disable(store):
    alice = store.enroll(allow_missing=False)
    for way in WAYS.values():
        assert way.enter("alice", None), "Debian's own stack lets a password in"
    run(ON)
    for way, ahead in zip(WAYS.values(), (0, 60)):
        assert not way.enter("alice", PASSWORD_ALONE)
        assert not way.enter("alice", alice.wrong())
        assert way.enter("alice", alice.code(time.time() + ahead)), "each code is good once"
    assert doctors_ways() == []
    run(OFF)
    assert directory() == DEBIAN
    assert WAYS["sudo-i"].enter("alice", None)


def test_only_one_of_them_is_told_of_by_doctor(store):
    alice = store.enroll(allow_missing=False)
    run([*ON, "--only"])
    assert asking() == ["sudo"] and doctors_ways() == ["sudo-i"]
    assert not WAYS["sudo"].enter("alice", PASSWORD_ALONE)
    assert WAYS["sudo-i"].enter("alice", None), "as doctor says"
    run(ON)
    assert asking() == ["sudo", "sudo-i"] and doctors_ways() == []
    assert WAYS["sudo-i"].enter("alice", alice.code())


def killed(call, count, words):
    done = subprocess.run([*broken_at(call, count), COMMAND, *words], capture_output=True, timeout=60)
    return done.returncode in (-9, 137)


# shows: service-family
@pytest.mark.first
@pytest.mark.parametrize("words, before", [(ON, []), (OFF, ["sudo", "sudo-i"])], ids=["enable", "disable"])
def test_a_kill_between_the_two_is_told_and_mended_and_keeps_nobody_out(words, before, store):
    alice = store.enroll(allow_missing=False)
    halves = 0
    for call in ("rename", "link", "unlink", "fsync"):
        for count in range(1, 40):
            if asking() != before:
                run(ON if before else OFF)
            assert asking() == before
            if not killed(call, count, words):
                break
            on = asking()
            if len(on) != 1:
                continue
            halves += 1
            assert doctors_ways() == [name for name in WAYS if name not in on]
            if halves > 1:
                continue
            for name, way in WAYS.items():
                if name in on:
                    assert not way.enter("alice", PASSWORD_ALONE)
                    assert way.enter("alice", alice.code()), "nobody is locked out"
                else:
                    assert way.enter("alice", None)
    assert halves >= 2
    run(ON)
    assert asking() == ["sudo", "sudo-i"]
    run(OFF)
    assert directory() == DEBIAN, "nothing is left over"


def test_where_the_second_cannot_be_written_the_first_is_taken_back(store):
    store.enroll(allow_missing=False)
    in_the_way = PAM_D / ".sudo-i.sallyport-new"
    (in_the_way / "x").mkdir(parents=True)
    done = sallyport(*ON)
    assert done.returncode == 74 and "sudo-i: /etc/pam.d/sudo-i" in done.stderr
    assert "sudo is as it was before" in done.stderr and asking() == []
    (in_the_way / "x").rmdir()
    in_the_way.rmdir()
    run(ON)
    assert asking() == ["sudo", "sudo-i"]
