"""A host whose policy leaves logins to a fleet that it cannot reach, with real hosts: who is asked for
what, what verifies codes, and that nothing falls back to the enrollments of this machine."""

import contextlib
import shutil
import socket
from pathlib import Path

import pytest

from support import reserve
from support.hosts import Sshd, Su, Sudo
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.reserve import CODES
from support.service import Service

CONF = Path("/etc/security/sallyport.conf")
FLEET = "[default]\nverification = fleet\n"
BREAK_GLASS = "[rule break-glass]\nmatch_user = alice\nverification = local\n"


@pytest.fixture(autouse=True)
def host(store, sink):
    """alice is enrolled on this machine, and has backup codes of the fleet, which are others."""
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    enrollment = store.enroll(allow_missing=False)
    reserve.cut_off()
    reserve.put()
    CONF.write_text(FLEET)
    yield enrollment
    for path in (reserve.FLEET, reserve.KEY, CONF):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def said(sink, *words):
    """The service says that in its log meanwhile."""
    sink.flush()
    start = len(sink.lines)
    yield
    sink.flush()
    lines = [line.text for line in sink.lines[start:] if line.text.startswith("sallyportd[")]
    for word in words:
        assert any(word in line for line in lines), lines


def asked(login):
    return [text for _, text in login.prompts]


@pytest.mark.decisive
def test_ssh_su_and_sudo_take_a_backup_code_of_the_fleet_once_over_all_of_them(daemons, host):
    sshd = daemons["keyboard-interactive"]
    with Service():
        for program in (sshd, Su(), Sudo()):
            assert not program.enter("alice", host.code())
            assert not program.enter("alice", host.backup_codes[0])
        assert sshd.enter("alice", CODES[0])
        for program in (sshd, Su(), Sudo()):
            assert not program.enter("alice", CODES[0])
        assert Su().enter("alice", CODES[1])
        assert reserve.used() == 0b11


@pytest.mark.decisive
def test_ssh_with_a_grace_of_20_seconds_has_its_answer_from_verifiers_that_say_nothing(machine, host):
    """They take the connection, and whatever is sent. sshd itself would end a login that takes longer."""
    sshd = Sshd("keyboard-interactive", "LoginGraceTime 20\nUsePAM yes\nKbdInteractiveAuthentication yes\n"
                "PasswordAuthentication no\nAuthenticationMethods keyboard-interactive\n")
    with contextlib.ExitStack() as all_of_it:
        all_of_it.callback(sshd.stop)
        mute = [all_of_it.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        text = reserve.FLEET.read_text().replace("verifier = 127.0.0.1:1\n", "".join(
            f"verifier = 127.0.0.1:{one.getsockname()[1]}\n" for one in mute))
        reserve.FLEET.write_text(text)
        all_of_it.enter_context(Service())
        for code, is_in in ((CODES[0], True), (CODES[0], False), (host.code(), False), (CODES[1], True)):
            assert sshd.enter("alice", code) == is_in, code
        assert "Timeout before authentication" not in (sshd.directory / "log").read_text()
        assert reserve.used() == 0b11


def test_everybody_is_asked_alike_and_who_is_in_no_reserve_is_refused(services, host):
    CONF.write_text(FLEET + "enrollment = voluntary\nhints = yes\n")
    with Service(), Driver(services) as driver:
        for user in ("alice", "bob", "nobody-here"):
            login = driver.login("login", user, "123456")
            assert (login.result, asked(login)) == (AUTH_ERR, ["Backup code: "])
        login = driver.login("login", "alice", CODES[0])
        assert (login.result, asked(login)) == (SUCCESS, ["Backup code: "])


def test_a_rule_for_one_account_opens_another_way(services, host):
    CONF.write_text(FLEET + BREAK_GLASS)
    with Service(), Driver(services) as driver:
        assert driver.login("login", "alice", CODES[0]).result == AUTH_ERR
        login = driver.login("login", "alice", host.code())
        assert (login.result, asked(login)) == (SUCCESS, ["Verification code: "])
    # It needs no service either.
    with Driver(services) as driver:
        assert driver.login("login", "alice", host.backup_codes[0]).result == SUCCESS
        assert driver.login("login", "bob", "123456").result == TROUBLE


def test_without_the_service_the_enrollments_of_this_machine_let_nobody_in(
        store, daemons, services, host, sink):
    before = store.state().read_bytes()
    with Driver(services) as driver:
        for answer in (host.code(), host.backup_codes[0], CODES[0]):
            login = driver.login("login", "alice", answer)
            assert (login.result, login.prompts) == (TROUBLE, [])
    for program in (daemons["keyboard-interactive"], Su(), Sudo()):
        with sink.watch() as lines:
            assert not program.enter("alice", host.code())
        assert any("/run/sallyport/root" in line.text for line in lines)
    assert store.state().read_bytes() == before


def test_root_is_verified_by_this_machine_unless_a_rule_names_root(store, services, host):
    store.enroll("root", allow_missing=False)
    code = store.regenerate("root")[0]
    with Service(), Driver(services) as driver:
        CONF.write_text(FLEET + "[rule root]\nmatch_user = root\nverification = fleet\n")
        assert driver.login("login", "root", code).result == AUTH_ERR
        CONF.write_text(FLEET)
        assert driver.login("login", "root", code).result == SUCCESS


def test_a_policy_that_cannot_be_read_leaves_logins_to_the_fleet_of_the_machine(services, host):
    shutil.rmtree("/var/lib/sallyport/policy.good", ignore_errors=True)
    CONF.write_text("[default]\nverification = flet\n")
    with Service(), Driver(services) as driver:
        login = driver.login("login", "alice", host.code())
        assert (login.result, asked(login)) == (AUTH_ERR, ["Backup code: "])
        for path in (reserve.FLEET, reserve.KEY):
            path.unlink()
        login = driver.login("login", "alice", host.code())
        assert (login.result, asked(login)) == (SUCCESS, ["Verification code: "])


def test_nobody_gets_in_where_the_policy_says_so(services, host, sink):
    CONF.write_text(FLEET + "away = refuse\n")
    with said(sink, "away = refuse"), Service(), Driver(services) as driver:
        for user in ("alice", "bob", "nobody-here"):
            login = driver.login("login", user, CODES[0])
            assert (login.result, login.prompts) == (TROUBLE, [])


def test_a_machine_of_no_fleet_lets_nobody_in_and_says_why(services, host, sink):
    for path in (reserve.FLEET, reserve.KEY):
        path.unlink()
    why = "this machine is in no fleet (sallyport fleet join)"
    with said(sink, why), Service(), Driver(services) as driver:
        for answer in (host.code(), CODES[0]):
            assert driver.login("login", "alice", answer).result == TROUBLE
