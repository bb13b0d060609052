"""`sallyport pam enable sshd` where some have keys and some passwords, with the machine's own sshd."""

from pathlib import Path

import pytest

from own_sshd import CONFIG, OURS, PACKAGED, content, daemon, enable  # noqa: F401: a fixture
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


def test_the_blocks_are_proposed_and_what_changes_is_told_for_each(mixed, daemon):
    said = sallyport("pam", "enable", "sshd", "--sshd", "match", "--dry-run").stdout
    changes = " ".join(said.split("What changes:")[1].split())
    assert changes.startswith("asked for a code alice at sshd before: without a code, a key"), said
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
