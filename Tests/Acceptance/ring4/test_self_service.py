"""A user who is not root looks after his own enrollment, on a terminal, by sallyport-session."""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
from base64 import b32decode
from pathlib import Path

import pytest

from own import (
    CODE, CONF, FIRST, PASSWORD_PROMPT, SESSION, SOCKET, STATUS, Own, files, names, policy, running)
from support.hosts import PASSWORD, edit
from support.sallyport import first_code, sallyport
from support.service import SERVICE, many_users, soon

REMOVE_PHONE = b"\x01\x14\x01\x05\x00phone"
pytestmark = [pytest.mark.skipif(
    not os.access(SESSION, os.X_OK), reason="sallyport-session is not built"),
    pytest.mark.usefixtures("running")]


def logged(sink, words):
    """The lines of a session with these words."""
    sink.flush()
    return [line for line in sink.lines if "sallyport-session[" in line.text and words in line.text]


def sessions(running):
    """The processes of sallyport-session."""
    found = subprocess.run(["pgrep", "-P", str(running.process.pid)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def ended(running):
    """Whether every session has: one that is ending counts among the four of its user."""
    return soon(lambda: not sessions(running))


def talk(user, *packets):
    """What a session says to a user's own program, packet by packet, until it ends."""
    script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
              "s.settimeout(20)\ns.connect('/run/sallyport/session')\n"
              "for word in sys.argv[1:]:\n  s.send(bytes.fromhex(word))\n"
              "while True:\n  said = s.recv(1 << 17)\n  if not said: break\n  print(said.hex())\n")
    command = ["/usr/bin/python3", "-c", script, *(packet.hex() for packet in packets)]
    if user is not None:
        command = ["setpriv", "--reuid", str(user), "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return [bytes.fromhex(line) for line in done.stdout.split()]


def denial(packets):
    """The number of the one refusal that was said."""
    assert len(packets) == 1 and packets[0][:3] == b"\x01\x36\x02", packets
    return packets[0][5]


def test_an_empty_line_and_i_cost_no_try(store):
    store.enroll("bob", allow_missing=False)
    own = Own("enroll")
    assert own.until(PASSWORD_PROMPT) == 0
    own.child.answer(PASSWORD)
    for typed in ["", "", "", "i", "", "", ""]:
        assert own.until(FIRST) == 0, own.text
        own.child.sendline(typed)
    assert own.finish() == 0 and names(store) == ["phone"], own.text
    assert "left." not in own.text


def test_a_user_enrolls_and_changes_his_enrollment_without_root(store, sink):
    store.enroll("bob", allow_missing=False)  # makes the store, as the package does
    own = Own("enroll", "--qr", "none")
    assert own.finish() == 0, own.text
    assert logged(sink, "action=enrolled user=alice")
    codes = re.findall(r"\b(?:[0-9A-Z]{4}-){3}[0-9A-Z]{4}\b", own.text)
    assert len(codes) == 10 and names(store) == ["phone"]

    own = Own("add", "--name", "laptop", "--qr", "none")
    assert own.finish(code=codes.pop()) == 0, own.text
    assert 'Verification code to add "laptop":' in own.prompts[1]
    assert names(store) == ["phone", "laptop"]

    own = Own("rename", "laptop", "tablet")
    assert own.finish(code=codes.pop()) == 0, own.text
    assert 'to rename "laptop" to "tablet":' in own.prompts[1] and names(store) == ["phone", "tablet"]

    own = Own("remove", "alice", "tablet")
    assert own.finish(code=codes.pop()) == 0, own.text
    assert 'to remove "tablet":' in own.prompts[1] and names(store) == ["phone"]

    own = Own("backup-codes", "--regenerate")
    assert own.finish(code=codes.pop()) == 0, own.text
    assert logged(sink, "action=backup-codes user=alice")
    fresh = re.findall(r"\b(?:[0-9A-Z]{4}-){3}[0-9A-Z]{4}\b", own.text)
    assert len(fresh) == 10 and not set(fresh) & set(codes)
    before = store.enrollment().read_bytes()
    assert Own("add").finish(code=codes.pop()) != 0 and store.enrollment().read_bytes() == before
    assert Own("add", "--qr", "none").finish(code=fresh.pop()) == 0


@pytest.mark.decisive
def test_a_user_sees_his_status_without_a_code_and_without_a_secret(store):
    enrollment = store.enroll(allow_missing=False)
    own = Own("status")
    assert own.finish() == 0 and not own.prompts
    assert "phone" in own.text and "10 of 10 left" in own.text and "wrong codes" in own.text
    assert sallyport("verify", "alice", typed=enrollment.code() + "\n").returncode == 0
    own = Own("status")
    assert own.finish() == 0 and re.search(r"phone .* used today \d\d:\d\d", own.text), own.text
    [packet] = talk(3001, STATUS)
    assert b"phone" in packet
    raw = b32decode(enrollment.secret + "=" * (-len(enrollment.secret) % 8))
    kept = store.enrollment().read_text()
    digests = re.findall(r"[0-9a-f]{32,}", kept)
    assert digests
    for secret in [raw, enrollment.secret.encode(), enrollment.secret.lower().encode(),
                   *(one.encode() for one in digests)]:
        assert secret not in packet


# shows: self-guesses
def test_a_wrong_password_changes_nothing_in_fifty_tries(store, running):
    enrollment = store.enroll(allow_missing=False)
    before = files(store)
    for turn in range(50):
        own = Own("remove" if turn % 2 else "add", "--name", "phone" if turn % 2 else "laptop")
        if turn % 2:
            own.kill()
            own = Own("backup-codes", "--regenerate")
        assert own.finish(password="wrong horse", code=enrollment.code()) != 0
        assert len(own.prompts) == 1 and ended(running)
    assert files(store) == before


# shows: self-guesses
def test_a_wrong_code_changes_nothing_in_fifty_tries(store, running):
    enrollment = store.enroll(allow_missing=False)
    before = store.enrollment().read_bytes()
    for _ in range(50):
        own = Own("add", "--name", "laptop")
        assert own.finish(code=enrollment.wrong()) != 0
        assert len(own.prompts) == 2 and "otpauth:" not in own.text and ended(running)
    assert store.enrollment().read_bytes() == before


# shows: self-code
@pytest.mark.parametrize("said", ["self_service = no", "state = disabled", "nothing"])
def test_where_the_policy_says_no_nothing_is_changed(store, running, said):
    enrollment = store.enroll(allow_missing=False)
    before = files(store)
    if said == "nothing":
        CONF.write_text("[default]\n")
    else:
        CONF.write_text(f"[default]\nself_service = yes\n{said}\n".replace(
            "self_service = yes\nself_service = no", "self_service = no"))
    for words in (["add"], ["backup-codes", "--regenerate"], ["rename", "phone", "x"]):
        own = Own(*words)
        assert own.finish(code=enrollment.code()) == 77 and not own.prompts
        assert "self_service = no" in own.text or said == "state = disabled"
        assert ended(running)
    assert files(store) == before


# shows: self-code
@pytest.mark.parametrize("level", ["refuse", "voluntary", "exempt"])
def test_who_need_not_or_may_not_enroll_does_not_enroll_himself(store, level):
    store.enroll("bob", allow_missing=False)
    if level == "exempt":
        assert sallyport("exempt", "alice").returncode == 0
    else:
        edit(CONF, lambda text: text.replace("= offer", f"= {level}"))
    own = Own("enroll")
    assert own.finish() == 77 and not own.prompts
    assert not store.enrollment().exists()


# shows: self-code
def test_a_stack_that_lets_everybody_in_changes_nothing_without_a_code(store):
    Path("/etc/pam.d/sallyport").write_text(
        "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n")
    policy("remember = 30 d")
    enrollment = store.enroll(allow_missing=False)
    before = store.enrollment().read_bytes()
    own = Own("backup-codes", "--regenerate")
    assert own.finish(code=enrollment.wrong()) != 0 and len(own.prompts) == 1
    assert store.enrollment().read_bytes() == before
    assert Own("backup-codes", "--regenerate").finish(code=enrollment.code()) == 0
    after = store.enrollment().read_bytes()
    assert after != before
    assert Own("backup-codes", "--regenerate").finish(code=enrollment.code()) != 0
    assert store.enrollment().read_bytes() == after


# shows: self-secret
@pytest.mark.decisive
def test_the_clients_memory_never_holds_a_secret_that_was_there_before(store):
    enrollment = store.enroll(allow_missing=False)
    old = [b32decode(enrollment.secret), enrollment.secret.encode()]
    own = Own("add", "--name", "laptop", "--qr", "none")
    for prompt in (PASSWORD_PROMPT, CODE):
        assert own.until(prompt) == 0
        held = memory(own.child.pid)
        assert not any(one in held for one in old)
        own.child.answer(PASSWORD if prompt == PASSWORD_PROMPT else enrollment.code())
    assert own.until(FIRST) == 0
    held = memory(own.child.pid)
    assert not any(one in held for one in old)
    fresh = re.search(r"secret=([A-Z2-7]+)", own.text)[1]
    assert b32decode(fresh) in held
    own.kill()


def memory(process):
    """All that a process has in its writable memory."""
    held = []
    with open(f"/proc/{process}/mem", "rb", 0) as file:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if found:
                start, end = (int(word, 16) for word in found.groups())
                file.seek(start)
                held.append(file.read(end - start))
    return b"".join(held)


def taken(own):
    """The client's connection, taken by somebody who may; the client is killed."""
    libc, pid = ctypes.CDLL(None, use_errno=True), own.child.pid
    pidfd = os.pidfd_open(pid)
    [number] = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd")
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")]
    descriptor = libc.syscall(438, pidfd, number, 0)  # pidfd_getfd
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    own.kill()
    os.close(pidfd)
    return socket.socket(fileno=descriptor)


def at_first_code(store):
    enrollment = store.enroll(allow_missing=False)
    own = Own("add", "--name", "laptop", "--qr", "none")
    assert own.until(PASSWORD_PROMPT) == 0
    own.child.answer(PASSWORD)
    assert own.until(CODE) == 0
    own.child.answer(enrollment.code())
    assert own.until(FIRST) == 0
    return own


# shows: self-one-change
def test_a_connection_taken_after_the_code_gives_the_one_change_and_no_second(store):
    own = at_first_code(store)
    code = first_code(own.text).encode()
    with taken(own) as stolen:
        stolen.settimeout(20)
        stolen.send(b"\x01\x21\x01" + bytes([len(code), 0]) + code)
        assert stolen.recv(1 << 17)[:2] == b"\x01\x34"
        after = files(store)
        try:
            stolen.send(REMOVE_PHONE)
            rest = stolen.recv(1 << 17)
        except (BrokenPipeError, ConnectionResetError):
            rest = b""
        assert rest == b""
    assert names(store) == ["phone", "laptop"] and files(store) == after


# shows: self-one-change
def test_a_connection_taken_after_the_code_gives_no_other_change(store):
    own = at_first_code(store)
    before = files(store)
    with taken(own) as stolen:
        stolen.settimeout(20)
        stolen.send(REMOVE_PHONE)
        assert denial([stolen.recv(1 << 17)]) and stolen.recv(1 << 17) == b""
    assert files(store) == before


# shows: self-whole
def test_of_two_sessions_of_a_user_the_second_is_refused(store):
    store.enroll(allow_missing=False)
    store.enroll("bob", allow_missing=False)
    first = Own("add")
    assert first.until(PASSWORD_PROMPT) == 0
    second = Own("status")
    assert second.finish() == 75 and "another session" in second.text
    other = Own("status", user="bob")
    assert other.finish() == 0
    first.kill()
    assert soon(lambda: Own("status").finish() == 0)


# shows: self-whole
@pytest.mark.parametrize("victim", ["client", "session"])
@pytest.mark.parametrize("turn", range(3))
def test_killed_at_a_prompt_nothing_is_changed(store, running, victim, turn):
    enrollment = store.enroll(allow_missing=False)
    before = store.enrollment().read_bytes()
    own = Own("add", "--name", "laptop", "--qr", "none")
    for prompt in (PASSWORD_PROMPT, CODE, FIRST)[:turn + 1]:
        assert own.until(prompt) == 0
        if prompt != (PASSWORD_PROMPT, CODE, FIRST)[turn]:
            own.child.answer(PASSWORD if prompt == PASSWORD_PROMPT else enrollment.code())
    if victim == "client":
        own.kill()
    else:
        # The service was asked by root whether it is there: that session ends soon.
        assert soon(lambda: len(sessions(running)) == 1)
        os.kill(sessions(running)[0], signal.SIGKILL)
        own.child.sendline("123456")
        assert own.until() == 0
        own.child.wait()
        assert own.child.exitstatus == 75
    assert soon(lambda: not sessions(running))
    assert store.enrollment().read_bytes() == before
    assert soon(lambda: Own("status").finish() == 0)


# shows: self-peer
def test_root_and_who_has_no_account_get_no_session(store):
    store.enroll("root", allow_missing=False)
    assert denial(talk(None, STATUS)) == 15
    assert denial(talk(65534, STATUS)) == 16
    # A service that was started without systemd does not begin one for him.
    assert talk(4711, STATUS) == []


# shows: session-share
def test_one_users_many_numbers_in_user_namespaces_keep_nobody_else_out(store, running):
    """As by newuidmap: each is another user to the kernel, and none has an account."""
    store.enroll(allow_missing=False)
    with many_users(SOCKET):
        for _ in range(5):
            own = Own("status")
            assert own.finish() == 0 and "10 of 10 left" in own.text, own.text
        assert ended(running)


# shows: self-peer
def test_another_users_enrollment_stays_roots(store):
    store.enroll("bob", allow_missing=False)
    own = Own("status", "bob")
    assert own.finish() == 77 and "sudo sallyport status bob" in own.text


def test_without_a_session_service_the_message_is_as_before(store, running):
    store.enroll(allow_missing=False)
    running.stop()
    own = Own("status")
    assert own.finish() == 77 and "hint: sudo sallyport status" in own.text
    assert "self_service" in own.text


def test_a_service_for_sessions_alone_takes_their_socket_from_systemd(store, running):
    if shutil.which("systemd-socket-activate") is None:
        pytest.skip("systemd-socket-activate is not installed")
    store.enroll(allow_missing=False)
    SOCKET.unlink()
    activate = subprocess.Popen(
        ["systemd-socket-activate", "--seqpacket", "--listen", SOCKET,
         SERVICE, "--sessions", "--session-program", SESSION],
        stderr=subprocess.DEVNULL)
    try:
        assert soon(SOCKET.exists)
        SOCKET.chmod(0o666)
        for _ in range(2):
            own = Own("status")
            assert own.finish() == 0 and "10 of 10 left" in own.text
    finally:
        activate.kill()
        activate.wait()


# shows: self-frames
@pytest.mark.parametrize("packet", [b"", b"\x00", b"\x01\x21\x00", b"\x01\x11\x01\x00\x00",
                                    b"\x02\x11\x00", b"\xff" * 60000],
                         ids=["none", "short", "an answer", "with more", "version 2", "long"])
def test_what_is_no_change_request_ends_the_session(store, packet):
    store.enroll(allow_missing=False)
    before = files(store)
    assert all(one[1] == 0x36 for one in talk(3001, packet or b"\x01"))
    assert files(store) == before
