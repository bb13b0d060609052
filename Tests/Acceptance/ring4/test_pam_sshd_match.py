"""`sallyport pam enable sshd` with the machine's own sshd, where some have keys, others passwords."""

from pathlib import Path

import pytest

from own_sshd import (  # noqa: F401: a fixture
    CONFIG, DROP_INS, OURS, PACKAGED, content, daemon, enable, killed, visible)
from support.hosts import PASSWORD, UIDS, edit
from support.sallyport import sallyport

pytestmark = pytest.mark.usefixtures("debian")


@pytest.fixture
def mixed(daemon, store):
    """alice has a key, bob and the others a password, git a key alone and no enrollment."""
    for name in UIDS:
        if name != "alice":
            Path("/home", name, ".ssh/authorized_keys").unlink()
    edit("/etc/group", lambda text: text + "keys:x:7007:alice\n")
    daemon.start()
    yield store.enroll("alice", allow_missing=False), store.enroll("bob", allow_missing=False)
    edit("/etc/group", lambda text: text.replace("keys:x:7007:alice\n", ""))


# shows: sshd-match
@pytest.mark.parametrize("more", [(), ("--key-group", "keys")])
def test_each_is_asked_for_what_they_have(more, mixed, daemon):
    alice, bob = mixed
    before = content()
    done = enable("--sshd", "match", *more)
    assert done.returncode == 0, done.stderr
    assert "By a key alone, as now: git\nA key and a code: alice\n" in done.stdout
    assert "Match User git\n" in OURS.read_text()
    assert daemon.by_key("git")
    assert not daemon.by_key("alice")
    assert not daemon.prompted("alice", alice.code(), PASSWORD), "a password is no key"
    assert not daemon.enter("alice", alice.wrong(), password=None)
    assert daemon.enter("alice", alice.code(), password=None), "no password is asked for"
    assert not daemon.enter("bob", bob.code(), password="guessed")
    assert not daemon.enter("bob", bob.wrong())
    assert daemon.enter("bob", bob.code())
    assert "Nothing was changed" in enable().stdout
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert content() == before
    assert daemon.by_key("alice") and daemon.by_key("git") and daemon.enter("bob", None)


def test_a_robots_block_stands_alone_where_nobody_else_has_a_key(mixed, daemon):
    bob = mixed[1]
    Path("/home/alice/.ssh/authorized_keys").unlink()
    before = content()
    done = enable("--sshd", "match")
    assert done.returncode == 0, done.stderr
    assert OURS.read_text().count("Match") == 1 and "Match User git\n" in OURS.read_text()
    assert daemon.by_key("git")
    assert not daemon.enter("bob", bob.wrong())
    assert daemon.enter("bob", bob.code())
    assert "Nothing was changed" in enable().stdout
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert content() == before and daemon.by_key("git")


def test_each_chooses_between_a_key_and_the_password(mixed, daemon):
    alice, bob = mixed
    done = enable("--sshd", "either")
    assert done.returncode == 0, done.stderr
    assert "a stolen password then takes the place of the key" in done.stdout
    assert not daemon.by_key("alice") and not daemon.by_key("git")
    assert daemon.enter("alice", alice.code(), password=None)
    assert not daemon.prompted("alice", alice.wrong(), PASSWORD)
    assert not daemon.enter("bob", bob.code(), password="guessed")
    assert daemon.enter("bob", bob.code())


def test_a_block_of_somebody_else_that_would_count_is_told_and_nothing_is_changed(mixed, daemon):
    CONFIG.write_text(PACKAGED.replace(
        "Include ", "Match User alice\n    AuthenticationMethods publickey\nMatch all\nInclude "))
    daemon.reload()
    before = content()
    done = enable("--sshd", "match")
    assert done.returncode == 78, done.stdout
    assert content() == before and daemon.by_key("alice")


def test_what_counts_for_everybody_is_not_told_of_each_where_no_line_includes_ours(mixed, daemon):
    here = (DROP_INS / "90-here.conf").read_text()
    CONFIG.write_text(PACKAGED.replace("Include ", "#Include ") + here)
    daemon.reload()
    before = content()
    done = enable("--sshd", "match")
    assert done.returncode == 78 and content() == before, done.stdout
    assert str(OURS) not in done.stderr and "alice" not in done.stderr, done.stderr


def test_the_blocks_are_proposed_and_what_changes_is_told_for_each(mixed, daemon):
    said = sallyport("pam", "enable", "sshd", "--sshd", "match", "--dry-run").stdout
    changes = " ".join(said.split("What changes:")[1].split())
    # In the order of the accounts, which other tests make again.
    assert "asked for a code alice at sshd before: without a code, a key" in changes, said
    assert "asked for a code bob at sshd" in changes and "git" not in changes, said
    said = sallyport("pam", "enable", "sshd", "--dry-run").stdout
    assert "    Match User git\n        AuthenticationMethods publickey\n" in said
    assert not OURS.exists()


def test_the_blocks_are_written_where_another_file_includes_ours(mixed, daemon):
    alice, bob = mixed
    site = CONFIG.with_name("site.conf")
    site.write_text("Include /etc/ssh/sshd_config.d/*.conf\n")
    CONFIG.write_text(PACKAGED.replace("/etc/ssh/sshd_config.d/*.conf", str(site)))
    daemon.reload()
    try:
        done = enable("--sshd", "match")
        assert done.returncode == 0, done.stderr
        assert daemon.by_key("git") and not daemon.by_key("alice")
        assert daemon.enter("alice", alice.code(), password=None) and daemon.enter("bob", bob.code())
    finally:
        site.unlink()


@pytest.mark.first
@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_a_kill_keeps_nobody_out_and_lets_nobody_in_by_a_code(verb, mixed, daemon, store):
    people = dict(zip(("alice", "bob"), mixed))
    fresh = {name: store.state(name).read_bytes() for name in people}
    before, words = content(), ["--sshd", "match"] if verb == "enable" else []
    assert enable("--sshd", "match").returncode == 0
    after = visible()
    seen, kills = set(), 0

    def look():
        state = (tuple(sorted(visible().items())), daemon.offers(), daemon.by_key())
        if state in seen:
            return
        seen.add(state)
        for name in people:
            store.state(name).write_bytes(fresh[name])
        assert daemon.by_key("git"), state
        for name, phone in people.items():
            assert not daemon.prompted(name, phone.code(), "guessed"), (name, state)
        assert daemon.by_key() or daemon.enter("alice", people["alice"].code(), password=None), state
        assert daemon.enter("bob", people["bob"].code()), state

    for call in ("rename", "unlink"):
        for count in range(1, 50):
            if verb == "enable" and visible() != before:
                assert sallyport("pam", "disable", "sshd", "--yes").returncode in (0, 66)
            elif verb == "disable" and visible() != after:
                assert enable("--sshd", "match").returncode == 0
            if not killed(call, count, "pam", verb, "sshd", "--yes", *words):
                break
            kills += 1
            look()
            daemon.reload()
            look()
    assert kills >= 5 and len(seen) >= 3, (kills, len(seen))
    assert enable("--sshd", "match").returncode == 0
    assert visible() == after, "running it again completes it"
