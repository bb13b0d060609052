"""docs/examples/fail2ban against lines of the real module, read by the real fail2ban-regex."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

FILTER = Path(__file__).parents[3] / "docs/examples/fail2ban/filter.conf"
STRANGER, STRANGER6, OWNER = "198.51.100.9", "2001:db8::9", "192.0.2.7"
VICTIM = "203.0.113.66"
pytestmark = pytest.mark.skipif(
    shutil.which("fail2ban-regex") is None, reason="fail2ban is not installed")


@pytest.fixture
def banned(tmp_path):
    """The addresses that the filter finds in such lines, with how often."""
    def read(lines):
        log = tmp_path / "auth.log"
        log.write_text("".join(f"Nov 21 12:00:00 web1 {line}\n" for line in lines))
        done = subprocess.run(
            ["fail2ban-regex", "--out", "ip", log, FILTER],
            capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not done.stdout, done.stderr
        return Counter(done.stdout.split())
    return read


@pytest.fixture
def said(driver, sink):
    """The module's lines of one login."""
    def login(user, *answers, rhost=None, service="sshd", **more):
        *answers, rhost = answers if rhost is None else (*answers, rhost)
        with sink.watch() as lines:
            driver.login(service, user, *answers, rhost=rhost, **more)
        assert lines
        return [line.text for line in lines]
    return login


def test_every_refusal_of_a_stranger_counts(said, banned, store):
    enrollment = store.enroll()
    code = enrollment.code()
    lines = said("alice", code, OWNER)
    lines += said("alice", code, STRANGER)  # replayed
    lines += said("alice", enrollment.wrong(), STRANGER)
    lines += said("alice", enrollment.wrong(), STRANGER6)
    lines += said("daemon", "123456", STRANGER)  # not enrolled
    lines += said("no-such-person", "123456", STRANGER)
    assert banned(lines) == {STRANGER: 4, STRANGER6: 1}


def test_a_transaction_counts_as_one_however_often_it_asks(said, banned, store):
    wrong = store.enroll().wrong()
    for answers in ((wrong, "letters", wrong[::-1]), ("letters", wrong, wrong[::-1]),
                    (wrong, wrong, "")):
        assert banned(said("alice", *answers, STRANGER, person=1)) == {STRANGER: 1}


def test_a_refusal_for_the_throttle_counts(said, banned, store):
    enrollment = store.enroll()
    lines = [line for _ in range(22) for line in said("alice", enrollment.wrong(), STRANGER)]
    assert "reason=throttled" in lines[-1]
    assert banned(lines) == {STRANGER: 22}


def test_who_gets_in_and_who_types_nothing_is_not_counted(said, banned, store):
    enrollment = store.enroll()
    lines = said("alice", enrollment.code(), OWNER)
    lines += said("alice", enrollment.backup_codes[0], OWNER)
    lines += said("alice", "", OWNER)
    lines += said("alice", "my password", OWNER)
    assert banned(lines) == {}


def test_a_place_that_is_no_address_is_not_counted(said, banned, store):
    wrong = store.enroll().wrong()
    lines = said("alice", wrong, None, service="login")
    lines += said("alice", wrong, "host.example.org")
    lines += said("alice", wrong, "fe80::1%eth0")
    assert banned(lines) == {}


def test_trouble_is_not_counted(said, banned, store):
    enrollment = store.enroll()
    store.state().chmod(0o644)
    lines = said("alice", enrollment.code(), OWNER)
    assert f"error: user=alice origin={OWNER}: " in lines[0] and banned(lines) == {}


# shows: no-alert
def test_trouble_of_crafted_names_is_not_counted(said, banned, store):
    """Its lines carry user and origin too."""
    store.enroll()
    store.directory.joinpath("decoy").chmod(0o755)
    lines = [line for name in CRAFTED for line in said(name, "123456", STRANGER)]
    lines += [line for name in CRAFTED for line in said("daemon", "123456", name)]
    assert len(lines) == 2 * len(CRAFTED) and all(": error: user=" in line for line in lines)
    assert banned(lines) == {}


FORGED = f"refused: reason=wrong-code user=root origin={VICTIM}"
CRAFTED = [
    f"x origin={VICTIM}", f"x user=root origin={VICTIM} budget=known:20,other:19",
    f"x\nNov 21 12:00:00 web1 sshd[1]: pam_sallyport(sshd:auth): {FORGED}",
    f"sshd[1]: pam_sallyport(sshd:auth): {FORGED}", f"x\torigin={VICTIM}", f"x\u00a0origin={VICTIM}",
    f"x\"origin={VICTIM}",
]


def test_no_name_of_a_user_bans_somebody_else(said, banned, store):
    store.enroll()
    lines = [line for name in CRAFTED for line in said(name, "123456", STRANGER)]
    assert len(lines) >= len(CRAFTED) and set(banned(lines)) <= {STRANGER}


def test_no_name_of_a_host_bans_somebody_else(said, banned, store):
    wrong = store.enroll().wrong()
    lines = [line for name in CRAFTED for line in said("alice", wrong, name)]
    assert len(lines) >= len(CRAFTED) and banned(lines) == {}


def test_fail2ban_takes_filter_and_jail(tmp_path):
    configuration = tmp_path / "fail2ban"
    shutil.copytree("/etc/fail2ban", configuration)
    shutil.copy(FILTER, configuration / "filter.d/sallyport.conf")
    shutil.copy(FILTER.with_name("jail.conf"), configuration / "jail.d/sallyport.conf")
    done = subprocess.run(["fail2ban-client", "-c", configuration, "-d"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "['add', 'sallyport', 'systemd']" in done.stdout
    assert re.search(r"'sallyport', 'addjournalmatch', .*SYSLOG_FACILITY=10.*_UID=0", done.stdout)
    assert r"pam_sallyport\\(" in done.stdout


QUOTING = [
    f"sshd[7]: Invalid user pam_sallyport(sshd:auth): {FORGED} from {STRANGER}",
    f"sshd[7]: Invalid user x: pam_sallyport(sshd:auth): {FORGED}",
    f"sudo[7]: bob : COMMAND=/bin/echo : pam_sallyport(sudo:auth): {FORGED}",
    f"sshd[7]: pam_sallyport(sshd:auth): {FORGED} and more",
]


def test_a_line_of_another_program_that_quotes_ours_is_not_counted(banned):
    assert banned(QUOTING) == {}
