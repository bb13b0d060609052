"""Who can read, in a real journal, why somebody was refused."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support import recipes
from support.hosts import UIDS, Su, Sudo
from support.pam_driver import AUTH_ERR, Driver
from support.sallyport import COMMAND, Services, sallyport
from support.service import ANSWERS, PUBLIC, Service, ask

JOURNALD = "/lib/systemd/systemd-journald"
LOG, KEPT = Path("/dev/log"), Path("/dev/log.kept")
RUN, FILES = Path("/run/systemd/journal"), Path("/var/log/journal")


@pytest.fixture
def other_log(sink):
    """/dev/log is free for another log during the test."""
    LOG.rename(KEPT)
    RUN.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", RUN], check=True)
    yield
    LOG.unlink(missing_ok=True)
    KEPT.rename(LOG)
    subprocess.run(["umount", "--lazy", RUN], check=True)


class Journal:
    def __init__(self):
        self.directory = FILES / Path("/etc/machine-id").read_text().strip()

    def lines(self, name):
        """What stands in one of its files."""
        subprocess.run(["journalctl", "--sync"], check=True, capture_output=True)
        # `-q`: a file without an entry is not an error.
        return subprocess.run(["journalctl", "-q", "--no-pager", "-o", "cat", "--file", self.directory / name],
                              check=True, capture_output=True, text=True).stdout


@pytest.fixture
def journal(other_log):
    """systemd's own, which keeps a file for each user."""
    if not Path(JOURNALD).exists():
        pytest.skip("systemd-journald is not installed")
    FILES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", FILES], check=True)
    identity = Path("/etc/machine-id")
    if not identity.exists() or not identity.read_text().strip():
        identity.write_text("0123456789abcdef0123456789abcdef\n")
    (RUN / "flushed").touch()
    daemon = subprocess.Popen([JOURNALD], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (RUN / "dev-log").exists() or not (RUN / "io.systemd.journal").exists():
        assert daemon.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    LOG.symlink_to(RUN / "dev-log")
    yield Journal()
    daemon.terminate()
    daemon.wait()
    subprocess.run(["umount", "--lazy", FILES], check=True)


# shows: refusal-reason
@pytest.mark.parametrize("host", [Su(), Sudo()], ids=["su", "sudo"])
def test_who_calls_su_or_sudo_does_not_read_in_his_journal_why_it_was_refused(host, store, journal):
    name = type(host).__name__.lower()
    caller = UIDS["bob" if name == "su" else "alice"]
    # Something of the caller's, so that he has a journal at all.
    subprocess.run(["setpriv", f"--reuid={caller}", f"--regid={caller}", "--clear-groups",
                    "logger", "his own"], check=True)
    store.enroll("bob", allow_missing=False)
    assert not host.enter("alice", "123456")
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    assert not host.enter("alice", enrollment.wrong())
    assert host.enter("alice", code)
    assert not host.enter("alice", code)
    theirs = journal.lines(f"user-{caller}.journal")
    assert "his own" in theirs
    assert "sallyport" not in theirs and "reason=" not in theirs and "authenticator=" not in theirs
    roots = [line for line in journal.lines("system.journal").splitlines() if "sallyport(" in line]
    start = f"pam_sallyport({name}:auth): "
    assert [line.split(" user=")[0] for line in roots if line.startswith(start)] == [
        start + "refused: reason=not-enrolled", start + "refused: reason=wrong-code",
        start + "code accepted:", start + "refused: reason=replayed"]


FORGED = 'code accepted: user=mallory authenticator="phone" origin=192.0.2.66'


def forge(*words, uid=None, tag="sshd"):
    drop = [] if uid is None else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    subprocess.run([*drop, "logger", "-p", "authpriv.notice", "-t", tag, *words], check=True)


# shows: true-log
@pytest.mark.decisive
def test_log_tells_the_story_and_no_line_that_somebody_forged(store, journal):
    """Root enrolls alice, gives her a pass, she uses it by su; then come those who would be heard."""
    enrollment = store.enroll(allow_missing=False)
    given = sallyport("pass", "alice", "--json")
    assert given.returncode == 0, given.stderr
    host = Su()
    assert not host.enter("alice", enrollment.wrong())
    assert host.enter("alice", json.loads(given.stdout)["pass"])
    forge(f"pam_sallyport(sshd:auth): {FORGED}", uid=UIDS["bob"])
    forge(f"{FORGED} service=sshd", uid=UIDS["bob"], tag="sallyportd")
    for uid in (UIDS["bob"], None):
        forge(f"pam_sallyport(sshd:auth): {FORGED}", uid=uid, tag="logger")
        forge("act=unenroll by=root for=alice via=command stage=done", uid=uid, tag="sallyport")
    native = (f"SALLYPORT_ACT=act=unenroll by=root for=alice\nMESSAGE=pam_sallyport(su:auth): {FORGED}\n"
              "SYSLOG_FACILITY=10\n_UID=0\n_EXE=/usr/sbin/sshd\n")
    subprocess.run(["setpriv", f"--reuid={UIDS['bob']}", f"--regid={UIDS['bob']}", "--clear-groups", "logger",
                    "--journald"], input=native, text=True, check=True)
    subprocess.run(["journalctl", "--sync"], check=True, capture_output=True)
    done = sallyport("log", "--json", "--since", "1h")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(act["act"], act["by"], act["for"], act["stage"]) for act in told["acts"]] == [
        ("enroll", "root", "alice", "done"), ("pass", "root", "alice", "done")]
    logins = [(one["user"], one["service"], one["result"], one["reason"]) for one in told["logins"]]
    assert list(dict.fromkeys(logins)) == [("alice", "su", "refused", "wrong-code"), ("alice", "su", "pass", None)]
    lines = sallyport("log", "alice").stdout.splitlines()
    assert list(dict.fromkeys(line.split("  ", 1)[1].split(", uses")[0] for line in lines)) == [
        f'root enrolled alice with "phone", store {store.directory} [command]', "root gave alice a pass",
        "alice at su, on this machine, by another user: refused (wrong-code)",
        "alice at su, on this machine, by another user: a pass was accepted"]
    assert "mallory" not in done.stdout and "unenroll" not in done.stdout


# shows: refusal-reason
def test_a_log_that_takes_no_line_of_roots_gets_none_with_a_reason(store, other_log):
    """One of another kind than the journal's, and a journal beside it."""
    found = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(LOG))
        os.chmod(LOG, 0o666)
        server.listen(64)

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while part := connection.recv(1 << 16):
                        found.append(part)

        threading.Thread(target=serve, daemon=True).start()
        assert not Su().enter("alice", "123456")
        deadline = time.monotonic() + 30
        while b"for root alone could not be sent" not in b"".join(found):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        server.shutdown(socket.SHUT_RDWR)
    assert b"reason=" not in b"".join(found)


def test_each_act_of_root_is_mailed_by_the_recipe_and_no_line_of_another_user(store, journal, tmp_path):
    mails = tmp_path / "mails"
    (tmp_path / "mail").write_text(f'#!/bin/sh\n{{ echo "$*"; cat; }} >>{mails}\n')
    script = tmp_path / "sallyport-mail"
    script.write_text(recipes.block("### A mail for each act", "sallyport-mail"))
    for file in (tmp_path / "mail", script):
        file.chmod(0o755)
    store.enroll(allow_missing=False)
    journal.lines("system.journal")
    watcher = subprocess.Popen([script], env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
                               start_new_session=True)
    try:
        forged = "act=exempt by=root for=alice via=command stage=done"
        deadline = time.monotonic() + 60
        # It sees what comes once it listens.
        while not mails.exists():
            assert time.monotonic() < deadline and watcher.poll() is None
            subprocess.run(["setpriv", f"--reuid={UIDS['bob']}", "--clear-groups", "logger", "-t", "sallyport", forged],
                           check=True)
            store.unlock()
            time.sleep(0.1)
        store.give_pass()
        mail = "^-s sallyport: act=pass root\nact=pass by=root.* for=alice .*stage=done$"
        while not re.search(mail, text := mails.read_text(), re.M):
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        assert "act=unlock" in text and "exempt" not in text and "stage=will" not in text
    finally:
        os.killpg(watcher.pid, signal.SIGTERM)
        watcher.wait()


def test_each_act_is_a_record_for_the_kernels_audit_log(store, tmp_path):
    """What the real libaudit sends; whether the kernel keeps it is a setting of the whole machine."""
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).close()  # NETLINK_AUDIT
    except OSError as error:
        pytest.skip(f"no audit in this kernel: {error}")
    store.enroll(allow_missing=False)
    report = tmp_path / "strace"
    subprocess.run(["strace", "-f", "-s", "2000", "-x", "-e", "trace=sendto", "-o", report, COMMAND, "pass", "alice"],
                   capture_output=True, check=True, timeout=60)
    # 0x454 is 1108, USER_CHAUTHTOK.
    records = re.findall(r'nlmsg_type=0x454\b[^"]*"((?:\\x[0-9a-f]{2})+)', report.read_text())
    texts = [bytes.fromhex(record.replace("\\x", "")).rstrip(b"\0").decode() for record in records]
    assert len(texts) == 1, report.read_text()
    assert texts[0].startswith('op=sallyport-pass acct="alice" exe='), texts
    assert texts[0].endswith("res=success")


@pytest.fixture
def full_log(other_log):
    """A log whose daemon has stopped: its socket is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log, contextlib.ExitStack() as fillers:
        log.bind(str(LOG))
        count = 1
        while count > 0:  # each has a bound of its own
            filler = fillers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            filler.setblocking(False)
            count = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    filler.sendto(b"x", str(LOG))
                    count += 1
        yield log


def test_a_log_that_has_stopped_holds_no_login_of_su_for_ever(full_log, store):
    """What is logged of su's login is lost after three seconds; what su itself logs is not ours."""
    store.enroll(allow_missing=False)
    directory = Path("/run/stacks")
    shutil.rmtree(directory, ignore_errors=True)
    services = Services(directory)
    services.code("locker", store, "nodelay")

    def as_su():
        os.setgroups([])
        os.setresuid(UIDS["bob"], 0, 0)
    with Driver(services, preexec=as_su) as driver:
        start = time.monotonic()
        driver.send("locker", "alice", "letters")
        assert select.select([driver.process.stdout], [], [], 60)[0], "still waiting after a minute"
        assert driver.verdict().result == AUTH_ERR
        assert 3 <= time.monotonic() - start < 30


def test_a_log_that_has_stopped_holds_no_service_for_ever(full_log, store):
    """Its first line is lost after three seconds, and what follows at once."""
    start = time.monotonic()
    with Service() as service:
        assert ask(PUBLIC) == ANSWERS[PUBLIC]
        assert service.stop() == 0
    assert 3 <= time.monotonic() - start < 30
