"""Somebody who is blocked, at the real hosts: after a key alone, a cached ticket of sudo, NOPASSWD, su."""

from pathlib import Path

import pytest

from support.hosts import Sshd, Su, as_user, converse, edit
from support.sallyport import MODULE, sallyport

SUDOERS = Path("/etc/sudoers")
LINES = ["auth required pam_unix.so nodelay", f"auth required {MODULE} nodelay",
         f"account required {MODULE}", "account required pam_unix.so",
         "session required pam_permit.so"]


@pytest.fixture(autouse=True)
def account_lines(stacks):
    for name in ("sshd", "su", "sudo"):
        Path("/etc/pam.d", name).write_text("\n".join(LINES) + "\n")


@pytest.fixture
def by_key():
    daemon = Sshd("publickey")
    yield daemon
    daemon.stop()


@pytest.fixture
def sudoers():
    before = SUDOERS.read_text()

    def add(line):
        edit(SUDOERS, lambda text: text + line + "\n")
    yield add
    SUDOERS.write_text(before)


def block(*more):
    done = sallyport("block", "alice", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sudo():
    return converse(as_user("alice", "sudo", "/bin/sh", "-c", "echo IN-$((6*7))"), "none")[0]


@pytest.mark.decisive
def test_a_key_alone_does_not_let_in_who_is_blocked(store, by_key):
    store.enroll(allow_missing=False)
    assert by_key.enter("alice", "none")
    said = block()
    assert not by_key.enter("alice", "none")
    # Every way that comes to our account line is shut; sshd's is among them.
    assert "sshd" not in said.partition("do not ask")[2], said
    block("--undo")
    assert by_key.enter("alice", "none")


def test_a_way_without_our_line_is_named(store, by_key):
    store.enroll(allow_missing=False)
    Path("/etc/pam.d/sshd").write_text("\n".join(line for line in LINES if MODULE not in line) + "\n")
    said = block()
    assert "sshd" in said.partition("do not ask")[2] or "ssh" in said.partition("do not ask")[2], said
    assert by_key.enter("alice", "none")


@pytest.mark.decisive
def test_a_ticket_of_sudo_does_not_let_in_who_is_blocked(store, sudoers):
    enrollment = store.enroll(allow_missing=False)
    sudoers("Defaults:alice timestamp_type=global, timestamp_timeout=60")
    command = as_user("alice", "sudo", "/bin/sh", "-c", "echo IN-$((6*7))")
    assert converse(command, enrollment.code())[0]
    assert sudo()
    block()
    assert not sudo()
    block("--undo")
    assert sudo()


@pytest.mark.decisive
def test_nopasswd_does_not_let_in_who_is_blocked(store, sudoers):
    store.enroll(allow_missing=False)
    sudoers("alice ALL=(ALL) NOPASSWD: ALL")
    assert sudo()
    block()
    assert not sudo()
    # Nor the account of that uid by another name.
    block("--undo")
    assert sudo()


def test_su_refuses_who_is_blocked_to_others_and_to_root(store):
    enrollment = store.enroll(allow_missing=False)
    block()
    assert not Su().enter("alice", enrollment.code())
    assert not converse(["su", "alice", "-c", "echo IN-$((6*7))"], "none")[0]
    assert converse(["runuser", "-u", "alice", "--", "sh", "-c", "echo IN-$((6*7))"], "none")[0]
    block("--undo")
    assert Su().enter("alice", enrollment.code())
