"""Ways around the levels, and ways to lock somebody out by them, through the real module."""

import pytest

from support.pam_driver import AUTH_ERR, LIVE, SUCCESS, Driver
from support.sallyport import MODULE, first_code, our_line, sallyport
from test_levels import (ANY_PASSWORD, CODE, DEMAND, DENIED, asked, kinds, play,
                         stack)  # noqa: F401: a fixture

LOCAL = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "169.254.3.4", "fe80::7%eth0"]


def test_who_puts_off_what_is_required_is_not_remembered(stack, services, store):
    """Else the second login from there would need neither a code nor what is missing."""
    enrollment = store.enroll("nobody")
    more = stack.set("enrollment = required\nfactor_hotp = mandatory\nremember = 30 d")
    codes = enrollment.backup_codes
    assert play(services, "nobody", "pw", codes[0], "n", **more).results == [SUCCESS, DENIED, DENIED]
    again = play(services, "nobody", "pw", codes[1], "n", **more)
    assert CODE in asked(again) and again.results[1:] == [DENIED, DENIED]


def test_what_is_required_later_is_asked_for_at_a_remembered_origin_too(stack, services, store):
    codes = store.enroll("nobody").backup_codes
    more = stack.set("enrollment = required\nremember = 30 d")
    assert play(services, "nobody", "pw", codes[0], **more).results == [SUCCESS] * 3
    assert CODE not in asked(play(services, "nobody", "pw", **more))
    more = stack.set("enrollment = required\nremember = 30 d\nfactor_hotp = mandatory")
    login = play(services, "nobody", "pw", codes[1], "y", LIVE, live=first_code, **more)
    assert login.results == [SUCCESS] * 3 and CODE in asked(login)
    assert kinds(store) == ["totp", "hotp"]


def test_completing_an_enrollment_forgets_every_remembered_place(stack, services, store):
    """Also where it is completed from one of them, which has not been asked since."""
    codes = store.enroll("nobody").backup_codes
    more = stack.set("enrollment = required\nremember = 30 d")
    with Driver(services) as driver:
        for code, place in zip(codes, ("192.0.2.7", "192.0.2.8")):
            login = driver.login("sshd", "nobody", "pw", code, phases=("auth", "acct", "open"),
                                 rhost=place, **more)
            assert login.results == [SUCCESS] * 3
    assert len(store.status("nobody")["remembered"]) == 2
    more = stack.set("enrollment = required\nremember = 30 d\nfactor_hotp = mandatory")
    login = play(services, "nobody", "pw", codes[2], "y", LIVE, live=first_code, **more)
    assert login.results == [SUCCESS] * 3 and kinds(store) == ["totp", "hotp"]
    assert store.status("nobody")["remembered"] == []


def test_who_is_denied_leaves_no_remembered_place(stack, services, store):
    codes = store.enroll("nobody").backup_codes
    more = stack.set("enrollment = required\nfactor_hotp = mandatory\nremember = 30 d")
    assert play(services, "nobody", "pw", codes[0], "n", **more).results == [SUCCESS, DENIED, DENIED]
    assert store.status("nobody")["remembered"] == []
    more = stack.set("enrollment = offer\nfactor_hotp = mandatory\nremember = 30 d")
    assert play(services, "nobody", "pw", codes[1], "n", **more).results == [SUCCESS] * 3
    assert len(store.status("nobody")["remembered"]) == 1


# shows: lost-record
@pytest.mark.parametrize("saved", [False, True])
def test_forgetting_that_is_destroyed_on_the_disk_holds(stack, services, store, saved):
    """The record before it counts then, in which the origin is remembered."""
    enrollment = store.enroll("alice")
    more = stack.set("remember = 1 h", "key")
    assert play(services, "alice", enrollment.code(), **more).results == [SUCCESS] * 3
    assert sallyport("forget", "--user", "alice", "--store", store.directory).returncode == 0
    state = bytearray(store.state("alice").read_bytes())
    number = [int.from_bytes(state[start + 8:start + 16], "little") for start in (0, 4096)]
    start = 4096 * number.index(max(number))
    state[start:start + 4096] = bytes(4096)
    store.state("alice").write_bytes(state)
    assert len(store.status("alice")["remembered"]) == 1
    if saved:
        store.unlock("alice")
        assert store.status("alice")["remembered"] == []
    assert play(services, "alice", "1", **more).results[0] == AUTH_ERR


@pytest.mark.decisive
@pytest.mark.parametrize("address", LOCAL)
def test_this_machine_and_a_link_are_never_remembered(stack, services, store, address):
    """Everybody on it comes from there, and everybody who comes through a tunnel."""
    codes = store.enroll("alice").backup_codes
    more = stack.set("remember = 30 d", "key")
    with Driver(services) as driver:
        for code in codes[:2]:
            login = driver.login("sshd", "alice", code, phases=("auth", "acct", "open"), rhost=address,
                                 **more)
            assert asked(login) == [CODE] and login.results == [SUCCESS] * 3


# shows: remembered-place
@pytest.mark.parametrize("first, answers, results", [
    ("auth required pam_exec.so quiet expose_authtok /bin/true", ["pw"], [SUCCESS, SUCCESS]),
    ("auth required pam_exec.so quiet expose_authtok /bin/false", ["pw"], None),
    ("auth optional pam_exec.so quiet expose_authtok /bin/false", ["pw"], None),
    ("auth sufficient pam_exec.so quiet expose_authtok /bin/false", ["pw"], None),
    # Nobody says yes.
    ("auth [default=ignore] pam_exec.so quiet expose_authtok /bin/true", ["pw"], None),
    ("auth optional pam_permit.so", ["000"], None),
])
@pytest.mark.usefixtures("alice")
def test_a_remembered_place_opens_nothing_by_itself(
        stack, services, store, first, answers, results):
    """The yes to a password is that of the module that asked for it; without one, there is a code."""
    enrollment = store.enroll("alice")
    more = stack.set("remember = 1 h", "key")
    assert play(services, "alice", enrollment.code(), **more).results == [SUCCESS] * 3
    assert asked(play(services, "alice", **more)) == []
    place = f"store={store.directory} conf={stack.policy}"
    services.write("sshd", first, our_line(store, f"conf={stack.policy}", "nodelay"),
                   f"account required {MODULE} {place}", "account required pam_permit.so")
    with Driver(services) as driver:
        login = driver.login("sshd", "alice", *answers, phases=("auth", "acct"), rhost="192.0.2.7")
    assert login.unused == login.unexpected == 0
    assert login.results == results if results else login.results[0] != SUCCESS


# shows: remembered-place
@pytest.mark.decisive
@pytest.mark.parametrize("rhost, interfaces, codes", [
    ("192.0.2.7", "192.0.2.8", 1), ("192.0.2.7", "192.0.2.7", 2), ("192.0.2.7", "none", 2),
    ("2001:db8::7", "2001:db8::8", 1), ("2001:db8::7", "2001:db8::7", 2)])
@pytest.mark.usefixtures("alice")
def test_an_address_of_this_machine_is_never_remembered(
        stack, services, store, rhost, interfaces, codes):
    """Nor any, where it cannot be found out which these are."""
    backup = store.enroll("alice").backup_codes
    more = stack.set("remember = 30 d", "key")
    with Driver(services, env={"INTERFACES": interfaces}) as driver:
        for code in [backup[0], *([backup[1]] if codes == 2 else [])]:
            login = driver.login("sshd", "alice", code, phases=("auth", "acct"), rhost=rhost, **more)
            assert asked(login) == [CODE] and login.results == [SUCCESS] * 2
        if codes == 1:
            assert asked(driver.login("sshd", "alice", rhost=rhost, **more)) == []
    with Driver(services, env={"INTERFACES": rhost}) as driver:
        assert asked(driver.login("sshd", "alice", "1", rhost=rhost, **more)) == [CODE]


def test_a_neighbour_in_the_same_ipv6_network_is_not_remembered(alice, stack, services, store):
    enrollment = store.enroll("alice")
    more = stack.set("remember = 30 d", "key")
    with Driver(services) as driver:
        def login(address, *answers):
            return driver.login("sshd", "alice", *answers, phases=("auth", "acct"), rhost=address,
                                **more)
        assert login("2001:db8::7", enrollment.code()).results == [SUCCESS] * 2
        assert asked(login("2001:db8::7")) == []
        assert asked(login("2001:db8::8", "1")) == [CODE]
    assert [pair["origin"] for pair in store.status("alice")["remembered"]] == ["2001:db8::7"]


@pytest.mark.parametrize("level", ["voluntary", "offer", "refuse"])
def test_an_account_line_with_another_policy_loosens_nothing(stack, services, store, level, tmp_path):
    """As where `conf=` stands on the auth line alone."""
    more = stack.set("enrollment = required")
    other = tmp_path / "other.conf"
    other.write_text(f"[default]\nenrollment = {level}\n")
    place = f"store={store.directory} conf={other}"
    services.write(
        "sshd", ANY_PASSWORD, our_line(store, f"conf={stack.policy}", "enroll", "nodelay"),
        f"account required {MODULE} {place}", "account required pam_permit.so",
        f"session required {MODULE}", "session required pam_permit.so")
    answers = [] if level == "refuse" else ["n"]
    login = play(services, "nobody", "pw", *answers, **more)
    assert login.results == [SUCCESS, DENIED, DENIED] and login.unused == 0


def test_who_has_no_room_for_what_is_required_gets_in_with_what_there_is(
        stack, services, store, sink):
    """It takes root to make room, and a code was right: to refuse would lock out for ever."""
    enrollment = store.enroll("nobody")
    for number in range(7):
        store.add(f"phone {number}", "nobody")
    more = stack.set("enrollment = required\nfactor_hotp = mandatory")
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", enrollment.code(), **more)
    assert login.results == [SUCCESS] * 3 and DEMAND not in asked(login)
    assert any("no room" in line.text for line in lines)


@pytest.mark.parametrize("level", ["offer", "required"])
def test_a_yes_to_one_user_is_none_to_another(stack, services, store, level):
    """Whatever let nobody through, alice was not asked for her code."""
    store.enroll("alice")
    more = stack.set(f"enrollment = {level}")
    phases = ("auth", "user:" + b"alice".hex(), "acct", "open")
    with Driver(services) as driver:
        login = driver.login("sshd", "nobody", "pw", rhost="192.0.2.7", phases=phases, **more)
        assert login.results == [SUCCESS, SUCCESS, DENIED, DENIED]


# shows: mark-names-user
@pytest.mark.parametrize("level, account", [
    ("refuse", DENIED), ("required", DENIED), ("offer", SUCCESS), ("voluntary", SUCCESS)])
def test_another_user_after_our_yes_who_is_not_enrolled_fares_by_his_level(
        stack, services, store, sink, level, account):
    """A module that changes PAM_USER once alice's code was right."""
    codes = store.enroll("alice").backup_codes
    more = stack.set(f"enrollment = {level}")
    phases = ("auth", "user:" + b"nobody".hex(), "acct", "open")
    with Driver(services) as driver, sink.watch() as lines:
        login = driver.login("sshd", "alice", "pw", codes[0], rhost="192.0.2.7", phases=phases, **more)
    assert login.results == [SUCCESS, SUCCESS, account, account]
    assert any("reason=another-user" in line.text for line in lines) == (account == DENIED)
