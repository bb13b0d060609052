"""`sallyport pam enable sshd` with the machine's own sshd, on the settings that Debian ships."""

import json
from pathlib import Path

import pytest

from own_sshd import (  # noqa: F401: a fixture
    CALLS, CONFIG, DROP_INS, METHODS, OURS, PACKAGED, content, daemon, enable, killed, signalled,
    visible)
from support.hosts import PAM_D, PASSWORD
from support.sallyport import sallyport

pytestmark = pytest.mark.usefixtures("debian")


def test_the_password_and_a_code_let_in_on_debians_own_settings(daemon, store):
    alice = store.enroll(allow_missing=False)
    before = content()
    daemon.start()
    assert daemon.enter("alice", None) and daemon.by_key()
    done = enable()
    assert done.returncode == 0, done.stderr
    assert OURS.stat().st_mode & 0o777 == 0o644
    assert "AuthenticationMethods keyboard-interactive" in OURS.read_text()
    assert daemon.offers() == "keyboard-interactive"
    assert not daemon.by_key(), "nor does a key alone"
    assert not daemon.enter("alice", alice.wrong())
    assert not daemon.enter("alice", alice.code(), password="guessed")
    assert daemon.enter("alice", alice.code())
    again = enable()
    assert again.returncode == 0 and "Nothing was changed" in again.stdout
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert content() == before
    assert daemon.enter("alice", None) and daemon.by_key()


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_key_comes_first_where_it_is_asked_for(method, daemon, store):
    alice = store.enroll(allow_missing=False)
    before = content()
    daemon.start()
    done = enable("--sshd", method)
    assert done.returncode == 0, done.stderr
    assert daemon.offers() == "publickey"
    assert not daemon.by_key()
    assert not daemon.enter("alice", alice.wrong())
    password = None if method == "key+code" else PASSWORD
    assert daemon.enter("alice", alice.code(), password=password)
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert content() == before and daemon.by_key()


# shows: after-key
def test_without_our_settings_key_and_code_are_no_code_alone(daemon, store):
    alice = store.enroll(allow_missing=False)
    daemon.start()
    assert enable("--sshd", "key+code").returncode == 0
    OURS.write_text("KbdInteractiveAuthentication yes\nAuthenticationMethods any\n")
    daemon.reload()
    assert "keyboard-interactive" in daemon.offers()
    assert not daemon.prompted("alice", alice.code(), PASSWORD)
    assert daemon.by_key()


def test_who_is_excepted_by_key_is_named_and_stays_in(daemon, store):
    store.enroll(allow_missing=False)
    CONFIG.write_text(PACKAGED + "Match User git\n    AuthenticationMethods publickey\n")
    daemon.start()
    line = PACKAGED.count("\n") + 1
    said = enable()
    assert said.returncode == 0, said.stderr
    assert f"Still in by key alone: git (Match user git, /etc/ssh/sshd_config:{line})" in said.stdout
    assert daemon.by_key("git") and not daemon.by_key("alice")


def test_who_has_a_key_and_no_password_is_named_before_the_question(daemon, store):
    store.enroll(allow_missing=False)
    daemon.start()
    said = sallyport("pam", "enable", "sshd", "--dry-run", "--json")
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    sshd = answer["sshd"]
    assert (sshd["method"], sshd["byKeyAlone"]) == ("password+code", [])
    assert answer["lockedOut"] == [
        "bob (not enrolled)", "git (no password, and sshd does not take its key alone)"]
    changes = " ".join(said.stderr.split("What changes:")[1].split())
    assert "refused git at sshd no password, and sshd does not take its key" in changes, changes
    assert "+  AuthenticationMethods keyboard-interactive" in said.stderr
    assert not OURS.exists()


def earlier(daemon):
    (DROP_INS / "00-aaa.conf").write_text("KbdInteractiveAuthentication no\n")
    return "/etc/ssh/sshd_config.d/00-aaa.conf:1: KbdInteractiveAuthentication no"


def no_include(daemon):
    lines = PACKAGED.replace("Include ", "#Include ") + (DROP_INS / "90-here.conf").read_text()
    CONFIG.write_text(lines)
    line = lines.split("\n").index("KbdInteractiveAuthentication no") + 1
    return f"/etc/ssh/sshd_config:{line}: KbdInteractiveAuthentication no"


def a_match_of_its_own(daemon):
    CONFIG.write_text(PACKAGED + "Match User alice\n    KbdInteractiveAuthentication no\n")
    line = PACKAGED.count("\n") + 2
    return f"/etc/ssh/sshd_config:{line}: Match user alice: KbdInteractiveAuthentication no"


def a_match_for_all_from_here(daemon):
    CONFIG.write_text(PACKAGED + "Match Address 127.0.0.0/8\n    AuthenticationMethods publickey\n")
    line = PACKAGED.count("\n") + 2
    return f"/etc/ssh/sshd_config:{line}: Match address 127.0.0.0/8: AuthenticationMethods publickey"


def another_file(daemon):
    """`-f`: what sshd -T says is not what the running sshd has read."""
    own = daemon.directory / "config"
    own.write_text((DROP_INS / "90-here.conf").read_text() + "UsePAM yes\nPidFile /run/sshd.pid\n")
    daemon.options = ("-f", str(own))
    return f"was started with -f {own}"


def not_ours(daemon):
    OURS.write_text("UseDNS no\n")
    return "is not as this command writes it"


# shows: enable-sshd
@pytest.mark.parametrize(
    "trap", [earlier, no_include, a_match_of_its_own, a_match_for_all_from_here, another_file,
             not_ours])
def test_where_the_settings_would_not_count_nothing_is_changed(trap, daemon, store):
    store.enroll(allow_missing=False)
    expected = trap(daemon)
    daemon.start()
    before = content()
    offered = daemon.offers()
    done = enable()
    assert done.returncode not in (0, 64), done.stdout
    assert expected in done.stderr, done.stderr
    assert content() == before
    assert daemon.offers() == offered
    assert daemon.process.poll() is None
    if trap is not no_include:
        dry = sallyport("pam", "enable", "sshd", "--dry-run")
        assert (dry.returncode != 0) == (trap is not another_file)


# shows: enable-sshd
def test_an_sshd_that_does_not_run_shows_nothing(daemon, store):
    store.enroll(allow_missing=False)
    before = content()
    done = enable()
    assert done.returncode == 78 and "no sshd listens at 127.0.0.1" in done.stderr
    assert content() == before
    assert enable("--sshd", "none").returncode == 0
    assert not OURS.exists() and "pam_sallyport" in (PAM_D / "sshd").read_text()


def test_where_keys_alone_are_taken_the_method_has_to_be_named(daemon, store):
    store.enroll(allow_missing=False)
    (DROP_INS / "50-keys.conf").write_text("PasswordAuthentication no\n")
    daemon.start()
    done = enable()
    assert done.returncode == 64 and "--sshd key+code" in done.stderr
    assert enable("--sshd", "key+password+code").returncode == 0
    assert daemon.offers() == "publickey"


@pytest.fixture
def asks(daemon, store):
    """sshd asks for the password and a code, by our settings and PAM's lines."""
    alice = store.enroll(allow_missing=False)
    daemon.start()
    assert enable().returncode == 0
    return alice


# shows: sshd-killed
@pytest.mark.first
def test_a_kill_on_the_way_to_a_key_as_well_opens_no_way_by_a_key_alone(asks, daemon, store):
    fresh = store.state("alice").read_bytes()
    seen, kills, first = set(), 0, visible()

    def look():
        state = (OURS.read_text(), daemon.offers())
        if state in seen:
            return
        seen.add(state)
        store.state("alice").write_bytes(fresh)
        assert not daemon.by_key(), state
        assert not daemon.prompted("alice", asks.code(), "guessed"), state
        assert daemon.enter("alice", asks.code()), state

    for call, step in CALLS.items():
        for count in range(1, 200, step):
            if visible() != first:
                assert enable("--sshd", METHODS[0]).returncode == 0
            if not killed(call, count, "pam", "enable", "sshd", "--yes", "--sshd", METHODS[2]):
                break
            kills += 1
            look()
            daemon.reload()
            look()
    assert kills >= 5 and len(seen) >= 3, (kills, len(seen))


# shows: sshd-killed
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_no_signal_that_can_be_held_back_ends_it_between_two_steps(sent, asks, daemon):
    words = ["pam", "enable", "sshd", "--yes", "--sshd", METHODS[2]]
    assert signalled(sent, "rename", 1, *words) == 0
    assert daemon.offers() == "publickey" and not daemon.by_key()
    assert "first step" not in OURS.read_text()


# shows: sshd-killed
@pytest.mark.first
@pytest.mark.parametrize("verb", ["enable", "disable"])
@pytest.mark.parametrize("method", METHODS[:2])
def test_a_kill_lets_nobody_in_by_a_code_and_keeps_nobody_out(method, verb, daemon, store):
    alice = store.enroll(allow_missing=False)
    Path("/etc/security/sallyport.conf").unlink(missing_ok=True)
    words = ["--sshd", method] if verb == "enable" else []
    daemon.start()
    before = content()
    assert enable("--sshd", method).returncode == 0
    after = visible()
    seen, kills, fresh = {}, 0, store.state("alice").read_bytes()

    def look():
        """What holds now, once for each state of the files and of the running sshd."""
        state = (tuple(sorted(visible().items())), daemon.offers())
        if state in seen:
            return
        seen[state] = True
        # No code was used.
        store.state("alice").write_bytes(fresh)
        assert not daemon.prompted("alice", alice.code(), "guessed"), state
        if method == "key+code":
            # Who has a key, and perhaps no password that is right.
            assert daemon.by_key() or daemon.enter("alice", alice.code(), "guessed"), state
        else:
            assert daemon.prompted("alice", alice.code(), PASSWORD), state

    for call, step in CALLS.items():
        for count in range(1, 200, step):
            if verb == "enable" and visible() != before:
                assert sallyport("pam", "disable", "sshd", "--yes").returncode in (0, 66)
            elif verb == "disable" and visible() != after:
                assert enable("--sshd", method).returncode == 0
            if not killed(call, count, "pam", verb, "sshd", "--yes", *words):
                break
            kills += 1
            look()
            daemon.reload()
            look()
    assert kills >= 5 and len(seen) >= 3, (kills, len(seen))
    assert enable("--sshd", method).returncode == 0
    assert visible() == after, "running it again completes it"
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0, done.stderr
    assert {name for name in content()} == {name for name in before} and visible() == before
