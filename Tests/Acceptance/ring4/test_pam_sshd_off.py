"""`sallyport pam disable sshd` where sshd does not run, or where its settings have to stay."""

from pathlib import Path

import pytest

from own_sshd import CONFIG, METHODS, OURS, PACKAGED, content, daemon, enable  # noqa: F401
from support.hosts import PAM_D
from support.sallyport import sallyport

pytestmark = pytest.mark.usefixtures("debian")


def stopped(daemon):
    daemon.process.terminate()
    daemon.process.wait()
    Path("/run/sshd").rmdir()


def activated(daemon):
    """As ssh.socket leaves it until somebody connects."""
    stopped(daemon)
    daemon.wait_for_a_client()


def for_each(daemon):
    """As ssh.socket with Accept=yes: one sshd for each client."""
    stopped(daemon)
    daemon.wait_for_a_client(each="yes")


# shows: disable-sshd
@pytest.mark.parametrize("way", [stopped, activated, for_each])
@pytest.mark.parametrize("method", METHODS[:2])
def test_it_is_turned_off_where_no_sshd_was_started_yet(way, method, daemon, store):
    store.enroll(allow_missing=False)
    before = content()
    daemon.start()
    assert enable("--sshd", method).returncode == 0
    way(daemon)
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert content() == before
    if way is stopped:
        daemon.start()
    assert daemon.by_key() and daemon.enter("alice", None)


# shows: disable-sshd
def test_settings_that_cannot_be_undone_are_an_error(daemon, store):
    store.enroll(allow_missing=False)
    daemon.start()
    assert enable().returncode == 0
    ours = OURS.read_text()
    CONFIG.write_text(PACKAGED + "Nonsense yes\n")
    for _ in range(2):
        done = sallyport("pam", "disable", "sshd", "--yes")
        assert done.returncode == 78 and "sshd's settings are still there" in done.stderr, done
        assert OURS.read_text() == ours and "pam_sallyport" not in (PAM_D / "sshd").read_text()
    CONFIG.write_text(PACKAGED)
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 0 and not OURS.exists(), done.stderr


# shows: disable-sshd
def test_a_file_of_somebody_else_stays_and_is_an_error(daemon, store):
    store.enroll(allow_missing=False)
    daemon.start()
    assert enable().returncode == 0
    OURS.write_text("UseDNS no\n")
    done = sallyport("pam", "disable", "sshd", "--yes")
    assert done.returncode == 73 and "is not as this command writes it" in done.stderr
    assert OURS.exists() and "pam_sallyport" not in (PAM_D / "sshd").read_text()
