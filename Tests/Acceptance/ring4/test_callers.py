"""What the user who starts su or sudo can do to it: limits and signals, never an advantage."""

import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from support.hosts import PASSWORD, UIDS, Su, Sudo, as_user, edit, service, two_factors
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import MODULE, Services, reason
from support.typist import Child


def limits(action=signal.SIG_IGN, **bounds):
    def set_up():
        signal.signal(signal.SIGXFSZ, action)
        for name, bound in bounds.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (bound, bound))
    return set_up


# shows: limits
@pytest.mark.parametrize("limit", [0, 6000], ids=["nothing", "half a page"])
@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
def test_su_without_the_right_to_write_answers_alike_and_writes_nothing(
        store, sink, action, limit):
    enrollment = store.enroll(allow_missing=False)
    code, before = enrollment.code(), store.state().read_bytes()
    seen = set()
    for answer in (code, enrollment.wrong(), enrollment.backup_codes[0]):
        with sink.watch() as lines:
            assert not Su().enter("alice", answer, preexec_fn=limits(action, FSIZE=limit))
        assert len(lines) == 1 and "EFBIG" in lines[0].text
        seen.add(lines[0].text.split("]")[-1])
    assert len(seen) == 1
    assert store.state().read_bytes() == before
    assert Su().enter("alice", code)


# shows: limits
@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
def test_sudo_without_the_right_to_write_is_no_oracle(store, sink, action):
    """sudo lifts its caller's limits by itself: right in, wrong out, and the state whole."""
    enrollment = store.enroll(allow_missing=False)
    bound = limits(action, FSIZE=0)
    with sink.watch() as wrong:
        assert not Sudo().enter("alice", enrollment.wrong(), preexec_fn=bound)
    with sink.watch() as right:
        entered = Sudo().enter("alice", enrollment.code(), preexec_fn=bound)
    if entered:
        assert reason(wrong) == "wrong-code"
    else:
        assert "EFBIG" in wrong[0].text and "EFBIG" in right[0].text
    assert Sudo().enter("alice", enrollment.backup_codes[0])


# shows: limits
@pytest.mark.parametrize("host", [Su, Sudo])
def test_at_the_edge_of_open_files_a_right_code_is_no_more_than_a_wrong_one(
        store, sink, figure, host):
    """Every limit until a login succeeds: each verifies both or neither, and writes whole or not."""
    for limit in range(3, 40):
        enrollment, bound = store.enroll(allow_missing=False), limits(NOFILE=limit)
        state = store.state().read_bytes()
        with sink.watch() as wrong:
            assert not host().enter("alice", enrollment.wrong(), preexec_fn=bound)
        verified = reason(wrong) == "wrong-code"
        assert verified or store.state().read_bytes() == state
        with sink.watch() as right:
            entered = host().enter("alice", enrollment.code(), preexec_fn=bound)
        assert any("code accepted" in line.text for line in right) == verified, limit
        assert store.status()["user"] == "alice"
        if entered:
            break
    assert entered
    figure(f"{host.__name__.lower()}: RLIMIT_NOFILE {limit} is enough for a login")


USED = r"That code was used already\. Wait about [0-9]+ s for the next\.\r\n"
PASS, CODE, IN = "[Pp]assword.*: ?$", "Verification code: ?$", "IN-42"


def test_sudo_names_a_used_code_at_its_next_prompt(store):
    """Between the two it shows no text of a module."""
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.codes(2)[1]  # of a step that ends in half a minute or more
    assert Sudo().enter("alice", code)
    sudoers = Path("/etc/sudoers")
    before = sudoers.read_text()
    edit(sudoers, lambda text: text + "Defaults passwd_tries=2\n")
    try:
        child = Child(as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))"))
        for answer, is_told in ((code, False), (enrollment.backup_codes[0], True)):
            child.expect(PASS)
            child.answer(PASSWORD)
            child.expect(CODE)
            assert bool(re.search(f"{USED}$", child.before)) == is_told, child.before
            child.answer(answer)
        child.expect(IN)
        child.expect(pexpect.EOF)
    finally:
        sudoers.write_text(before)


# shows: told-used
@pytest.mark.parametrize("caller, is_told", [("bob", True), ("alice", False)])
def test_su_names_a_used_code_at_once_and_to_its_owner_alone(store, caller, is_told):
    """As an error, which is not in what the command writes."""
    enrollment = store.enroll("bob", allow_missing=False)
    code = enrollment.codes(2)[1]
    assert Su().enter("bob", code)
    out = Path(f"/home/{caller}/out")
    out.unlink(missing_ok=True)
    child = Child(as_user(caller, "sh", "-c", f"su bob -c true > {out}"))
    child.expect(PASS)
    child.answer(PASSWORD)
    child.expect(CODE)
    child.answer(code)
    child.expect(pexpect.EOF)
    assert bool(re.search(USED, child.before)) == is_told, child.before
    assert out.read_text() == ""


class SlowedSu:
    """su to alice, started by bob, stopped by strace inside the critical section for `seconds`."""

    def __init__(self, store, answer, seconds):
        service("su", f"required {MODULE} nodelay")
        # Under a shell with job control, or the kernel would not stop an orphaned group at Ctrl-Z.
        command = as_user("bob", "sh", "-mc", "su alice -c 'echo IN-42'; read wait")
        self.child = Child(command)
        self.child.expect("Verification code: ?$")
        shell = self.child.pid
        self.pid = int(Path(f"/proc/{shell}/task/{shell}/children").read_text())
        self.strace = subprocess.Popen(
            ["strace", "-p", str(self.pid), "-e", "trace=fdatasync", "-o", "/dev/null",
             "-e", f"inject=fdatasync:delay_enter={int(seconds * 1e6)}"],
            stderr=subprocess.PIPE, text=True)
        assert "attached" in self.strace.stderr.readline()
        self.child.answer(answer)
        inode = str(store.state().stat().st_ino)
        deadline = time.monotonic() + 10
        while not any(inode == line.split()[-3].split(":")[-1] for line in open("/proc/locks")):
            assert time.monotonic() < deadline, "the lock was never seen"
            time.sleep(0.01)

    def by_bob(self, name):
        """Sends a signal as bob; True if the kernel let him."""
        command = as_user("bob", "kill", f"-{name}", str(self.pid))
        return subprocess.run(command, capture_output=True).returncode == 0

    def close(self):
        if self.strace.poll() is None:
            self.strace.terminate()
        self.strace.wait()
        self.strace.stderr.close()
        self.child.close(force=True)


@pytest.fixture
def slowed(store):
    made = []

    def make(answer, seconds):
        made.append(SlowedSu(store, answer, seconds))
        return made[-1]
    yield make
    for one in made:
        one.close()


# shows: stopped-su
@pytest.mark.parametrize("name", ["STOP", "TSTP", "KILL", "TERM"])
def test_the_caller_cannot_signal_su_while_the_lock_is_held(store, services, sink, slowed, name):
    """strace's delay of fdatasync holds su in the critical section; bob may not touch it there."""
    enrollment = store.enroll(allow_missing=False)
    su = slowed(enrollment.wrong(), 2)
    assert not su.by_bob(name)
    with Driver(services) as driver:
        start = time.monotonic()
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
        assert time.monotonic() - start < 5


# shows: stopped-su
def test_the_terminal_cannot_stop_su_while_the_lock_is_held(store, services, sink, slowed):
    """Ctrl-Z comes from the kernel: no permission is asked for."""
    enrollment = store.enroll(allow_missing=False)
    su = slowed(enrollment.wrong(), 2)
    su.child.sendcontrol("z")
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


# shows: host-state
def test_the_real_uid_and_the_signals_are_put_back(store, services, sink):
    """The driver as su is: bob's real uid, root's effective one. It compares them by itself."""
    enrollment = store.enroll(allow_missing=False)
    with Driver(services, preexec=lambda: os.setresuid(UIDS["bob"], 0, 0)) as driver:
        assert driver.login("login", "alice", enrollment.wrong()).result == AUTH_ERR
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
        assert driver.login("login", "alice", "letters").result == AUTH_ERR
        assert driver.login("login", "nobody-here", "123456").result == AUTH_ERR


# shows: missing-store
def test_a_host_that_is_not_root_is_trouble_where_there_is_no_service(store, sink):
    """A screen locker that runs as the user: no code is verified, and none is asked for in vain."""
    enrollment, bob = store.enroll(allow_missing=False), UIDS["bob"]
    services = Services("/run/services-of-bob")
    services.code("login", None, "nodelay")
    with Driver(services, preexec=lambda: (os.setgroups([]), os.setresgid(bob, bob, bob),
                                           os.setresuid(bob, bob, bob))) as driver:
        for user in ("alice", "bob", "nobody-here"):
            with sink.watch() as lines:
                assert driver.login("login", user, enrollment.code()).result == TROUBLE
            assert "the service is not running" in lines[0].text


# shows: stopped-su
@pytest.mark.parametrize("name", ["STOP", "KILL"])
def test_a_caller_who_stops_su_at_the_prompt_holds_nothing(store, services, sink, name):
    service("su", *two_factors())
    enrollment = store.enroll(allow_missing=False)
    command = as_user("bob", "su", "alice")
    child = Child(command)
    child.expect("assword")
    subprocess.run(as_user("bob", "kill", f"-{name}", str(child.pid)), check=True)
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
    os.kill(child.pid, signal.SIGCONT)
    child.close(force=True)


# shows: su-other-place
def test_bob_spends_his_own_bucket_when_he_guesses_alices_code(store, services, sink):
    """`su alice` by bob is not alice at home: the known bucket is untouched."""
    service("su", f"required {MODULE} nodelay")
    enrollment = store.enroll(allow_missing=False)
    wrong, verified = enrollment.wrong(), 0
    for _ in range(21):
        with sink.watch() as lines:
            assert not Su().enter("alice", wrong)
        verified += reason(lines) == "wrong-code"
    assert verified == 20
    with Driver(services) as driver:
        assert driver.login("login", "alice", wrong).result == AUTH_ERR
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
