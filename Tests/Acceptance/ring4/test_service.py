"""The service verifies codes for programs that are not root, and for su and sudo where it listens."""

import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.hosts import Su, Sudo, as_user, become, converse, service
from support.odd_services import Crowded, OddService
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Crowd, Driver
from support.sallyport import DEFAULT_STORE, MODULE, Services, reason
from support.service import PUBLIC, ROOT, Service, attempt, soon

CALL = 5.5  # seconds in which the module answers one call, whatever the service does


@pytest.fixture(autouse=True)
def _no_sockets_before():
    """Nor after: what else is tested on this machine must not find what stood in their place."""
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    yield
    shutil.rmtree("/run/sallyport", ignore_errors=True)


@pytest.fixture
def running():
    with Service() as started:
        yield started


@pytest.fixture
def stacks_for_all():
    """A service that users who are not root may read."""
    directory = Path("/run/stacks")
    shutil.rmtree(directory, ignore_errors=True)
    services = Services(directory)
    services.code("locker", None, "nodelay")
    return services


# shows: one-state
@pytest.mark.decisive
def test_a_program_that_is_not_root_accepts_a_code_once(store, running, stacks_for_all, sink):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    with Driver(stacks_for_all, preexec=become("alice")) as driver:
        assert driver.login("locker", "alice", enrollment.wrong()).result == AUTH_ERR
        assert driver.login("locker", "alice", code).result == SUCCESS
        assert driver.login("locker", "alice", code).result == AUTH_ERR
    with sink.watch() as lines:
        assert not Sudo().enter("alice", code)
    assert reason(lines) == "replayed"


def test_it_does_so_without_a_way_to_new_privileges(store, running, stacks_for_all, sink):
    enrollment = store.enroll(allow_missing=False)
    prefix = ["setpriv", "--no-new-privs"]
    with Driver(stacks_for_all, prefix=prefix, preexec=become("alice")) as driver:
        assert driver.login("locker", "alice", enrollment.code()).result == SUCCESS


# shows: own-account
def test_no_program_of_a_user_is_answered_for_another_account(
        store, running, stacks_for_all, sink):
    enrollment = store.enroll(allow_missing=False)
    before = store.state().read_bytes()
    answers = [enrollment.code(), *enrollment.backup_codes]
    with Driver(stacks_for_all, preexec=become("bob")) as driver:
        for turn in range(100):
            answer = answers[turn % len(answers)]
            assert driver.login("locker", "alice", answer).result == TROUBLE
        assert driver.login("locker", "root", answers[0]).result == TROUBLE
        assert driver.login("locker", "nobody-here", answers[0]).result == TROUBLE
    assert store.state().read_bytes() == before


# shows: container
@pytest.mark.parametrize("words", [["-Ur"], ["-U"], ["-Ur", "-m", "-p", "-f"]], ids=" ".join)
def test_a_user_namespace_makes_nobody_somebody_else(
        store, running, stacks_for_all, sink, words):
    """Its root is alice outside; its nobody is, too."""
    enrollment = store.enroll(allow_missing=False)
    store.enroll("bob", allow_missing=False)
    of_bob = store.state("bob").read_bytes()
    prefix = ["unshare", *words]
    with Driver(stacks_for_all, prefix=prefix, preexec=become("alice")) as driver:
        for user in ("bob", "root"):
            assert driver.login("locker", user, enrollment.code()).result in (AUTH_ERR, TROUBLE)
        own = [driver.login("locker", "alice", code).result for code in enrollment.backup_codes[:2]]
    assert set(own) in ({SUCCESS}, {TROUBLE})
    assert store.state("bob").read_bytes() == of_bob


# shows: one-state
def test_of_many_at_once_by_files_and_by_service_one_gets_in(
        store, running, services, stacks_for_all, sink, figure):
    """Root's programs read the files; those of alice and su by bob ask the service."""
    turns, codes, seen = 200, [], {}
    store.enroll(allow_missing=False)
    with Crowd(services, 16) as files, Crowd(stacks_for_all, 8, preexec=become("alice")) as own, \
            Crowd(stacks_for_all, 8, preexec=become("bob", effective=0)) as su:
        for turn in range(turns):
            codes = codes or store.regenerate()
            code = codes.pop()
            for one, name in ((files, "login"), (own, "locker"), (su, "locker")):
                one.wait_at_prompts([((name, "alice", code), {})] * len(one.drivers))
            for one in (files, own, su):
                one.release()
            results = [driver.verdict().result for one in (files, own, su) for driver in one.drivers]
            assert results.count(SUCCESS) == 1, f"round {turn}: {results}"
            assert set(results) <= {SUCCESS, AUTH_ERR, TROUBLE}
            for result in results:
                seen[result] = seen.get(result, 0) + 1
    figure(f"one code, 16 by files and 16 by the service, {turns} rounds: one in each; {seen}")


def test_roots_own_login_reads_files_and_connects_to_nothing_of_ours(
        store, running, services, sink, tmp_path):
    enrollment = store.enroll(allow_missing=False)
    trace = tmp_path / "trace"
    prefix = ["strace", "-f", "-e", "trace=connect", "-o", trace]
    with Driver(services, prefix=prefix) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
    assert "sallyport" not in trace.read_text()
    assert "/dev/log" in trace.read_text()


LIMITS = {
    "no file may grow": ["prlimit", "--fsize=0:0"],
    "a second of the processor": ["prlimit", "--cpu=1:1"],
    "idle": ["chrt", "-i", "0"],
}


# shows: callers-limits
@pytest.mark.decisive
@pytest.mark.parametrize("limit", LIMITS)
def test_under_its_callers_limits_su_never_turns_to_the_files(
        store, running, sink, tmp_path, limit):
    """Traced by root, so that su is still set-uid; the limits are those of what bob starts."""
    service("su", f"required {MODULE} nodelay")
    enrollment, trace = store.enroll(allow_missing=False), tmp_path / "trace"
    for code, is_right in ((enrollment.wrong(), False), (enrollment.code(), True)):
        entered, _ = converse(
            ["strace", "-f", "-u", "bob", "-e", "trace=openat,connect", "-o", trace, *LIMITS[limit],
             "su", "alice", "-c", "echo IN-$((6*7))"], code)
        assert str(DEFAULT_STORE) not in trace.read_text() and str(ROOT) in trace.read_text()
        assert entered == is_right


# shows: callers-limits
@pytest.mark.decisive
@pytest.mark.parametrize("host", [Su, Sudo])
def test_with_few_descriptors_the_service_is_never_taken_for_absent(
        store, running, sink, figure, host, tmp_path):
    """With each number right and wrong codes alike: verified by the service, or refused."""
    service("su", f"required {MODULE} nodelay")
    for limit in range(0, 33):
        enrollment = store.enroll(allow_missing=False)
        state = store.state().read_bytes()

        def few(limit=limit):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        with sink.watch() as lines:
            assert not host().enter("alice", enrollment.wrong(), preexec_fn=few)
        verified = reason(lines) == "wrong-code"
        assert verified or store.state().read_bytes() == state
        assert not any(str(DEFAULT_STORE) in line.text for line in lines)
        with sink.watch() as lines:
            entered = host().enter("alice", enrollment.code(), preexec_fn=few)
        assert any("code accepted" in line.text for line in lines) == verified or not verified
        if entered:
            break
    figure(f"{host.__name__.lower()}, asking the service: RLIMIT_NOFILE {limit} is enough")


# shows: listener
@pytest.mark.parametrize("kind", ["stopped", "silent", "garbage", "closing", "of bob", "a file",
                                  "a link to nothing"])
def test_a_service_that_does_not_serve_refuses_in_time(
        store, services, stacks_for_all, sink, kind):
    """Both for su by bob and for a program of alice; and root's own logins go on."""
    enrollment = store.enroll(allow_missing=False)
    odd = OddService(kind)
    try:
        for user, preexec in (("su", become("bob", effective=0)), ("own", become("alice"))):
            with Driver(stacks_for_all, preexec=preexec) as driver:
                for code in (enrollment.wrong(), enrollment.code()):
                    start = time.monotonic()
                    with sink.watch() as lines:
                        assert driver.login("locker", "alice", code).result == TROUBLE, user
                    assert time.monotonic() - start < CALL
                    assert any("/run/sallyport/" in line.text for line in lines)
        with Driver(services) as driver:
            assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
    finally:
        odd.close()


# shows: service-crowd
@pytest.mark.parametrize("unread", [2, 3])
def test_who_is_crowded_out_asks_again_until_the_third_time(
        store, running, services, stacks_for_all, sink, unread):
    """Each question of su comes to the service in the third try, or never."""
    enrollment = store.enroll(allow_missing=False)
    front = Crowded(unread)
    try:
        with Driver(stacks_for_all, preexec=become("bob", effective=0)) as driver:
            codes = [enrollment.wrong(), enrollment.code(), enrollment.code()]
            results = [driver.login("locker", "alice", code).result for code in codes]
    finally:
        front.close()
    assert results == ([AUTH_ERR, SUCCESS, AUTH_ERR] if unread == 2 else [TROUBLE] * 3)
    with Driver(services) as driver:
        again = driver.login("login", "alice", enrollment.code()).result
    assert again == (AUTH_ERR if unread == 2 else SUCCESS)


# shows: killed-service
@pytest.mark.decisive
def test_a_service_that_is_killed_at_any_moment_accepts_nothing_twice(
        store, stacks_for_all, sink, figure):
    """200 times: a right code under way, SIGKILL, a new service, the same code once more."""
    store.enroll(allow_missing=False)
    codes, slowest, counts = [], 0.0, {"before": 0, "after": 0, "never": 0}
    chance = random.Random(7)
    with Driver(stacks_for_all, preexec=become("alice")) as driver:
        for _ in range(200):
            codes = codes or store.regenerate()
            code = codes.pop()
            with Service() as killed:
                driver.send("locker", "alice", code)
                time.sleep(chance.uniform(0, 0.012))  # the moment of the kill, whatever it meets
                killed.stop(signal.SIGKILL)
                first = driver.verdict()
            slowest = max(slowest, first.seconds)
            with Service():
                second = driver.login("locker", "alice", code)
                third = driver.login("locker", "alice", code)
            results = [first.result, second.result, third.result]
            assert results.count(SUCCESS) <= 1, results
            counts["before" if first.result == SUCCESS else
                   "after" if second.result == SUCCESS else "never"] += 1
    assert slowest < CALL
    assert counts["before"] and counts["after"]
    figure(f"200 kills of the service with a right code under way: accepted {counts}, "
           f"never twice; slowest answer {slowest:.2f} s")


def test_one_service_answers_many_and_grows_no_more(
        store, running, stacks_for_all, sink, figure):
    """2,000 in turn, then 64 at once."""
    enrollment = store.enroll(allow_missing=False)
    wrong = "letters"  # malformed: it costs nothing
    with Driver(stacks_for_all, preexec=become("alice")) as driver:
        driver.summary("locker", "alice", wrong, repeat=200)
        memory, count = running.memory, len(running.descriptors)
        verdicts, _ = driver.summary("locker", "alice", wrong, repeat=2000)
        assert verdicts == {AUTH_ERR: 2000}
        assert soon(lambda: len(running.descriptors) <= count)
        grown = running.memory - memory
        assert grown < 1024
    with Crowd(stacks_for_all, 64, preexec=become("bob", effective=0)) as crowd:
        logins = crowd.race([(("locker", "alice", wrong), {})] * 64)
        assert {login.result for login in logins} == {AUTH_ERR}
    assert soon(lambda: len(running.descriptors) <= count)
    figure(f"2,000 logins in turn and 64 at once through the service: {grown} kB more")
    assert enrollment


@pytest.fixture
def policy():
    """Writes /etc/security/sallyport.conf, which is gone afterwards."""
    file = Path("/etc/security/sallyport.conf")
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_bytes() if file.exists() else None

    def write(*lines):
        file.write_text("\n".join(lines) + "\n")
    yield write
    file.unlink() if before is None else file.write_bytes(before)


@pytest.mark.parametrize("rule", ["state = enabled", "enrollment = required"])
def test_a_rule_for_a_program_of_a_user_holds_though_the_service_has_a_looser_one(
        store, running, stacks_for_all, sink, policy, rule):
    looser = "state = disabled" if rule == "state = enabled" else "enrollment = voluntary"
    policy("[default]", looser, "[rule]", "match_service = locker", rule)
    enrollment = store.enroll(allow_missing=False)
    with Driver(stacks_for_all, preexec=become("alice")) as driver:
        assert driver.login("locker", "alice", enrollment.wrong()).result == AUTH_ERR
        assert driver.login("locker", "alice", enrollment.code()).result == SUCCESS
    with Driver(stacks_for_all, preexec=become("bob")) as driver:
        result = driver.login("locker", "bob", "123456").result
        assert result == AUTH_ERR  # not enrolled, and under both rules refused or required


FORGER = """
import os, socket, struct, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect("/run/sallyport/socket")
said = struct.pack("3i", os.getpid(), 3002, os.getgid())
client.sendmsg([bytes.fromhex(sys.argv[1])], [(socket.SOL_SOCKET, 2, said)])
print(client.recv(100).hex())
"""


def test_on_the_public_socket_nobody_says_whose_he_is(store, running, sink):
    """As in a user namespace: a process of alice that may name another uid in its packet."""
    store.enroll(allow_missing=False)
    may = ["--inh-caps=+setuid", "--ambient-caps=+setuid"]
    start = len(sink.lines)
    done = subprocess.run(
        [*as_user("alice", *may), "/usr/bin/python3", "-c", FORGER,
         attempt(b"alice", b"123450").hex()], capture_output=True, text=True, timeout=20)
    assert done.stdout.startswith("015a"), done.stderr
    sink.flush()
    verified = [line.text for line in sink.lines[start:] if "reason=wrong-code" in line.text]
    assert len(verified) == 1 and "uid=3001" in verified[0] and "origin=local " in verified[0]
