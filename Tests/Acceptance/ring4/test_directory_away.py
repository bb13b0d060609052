"""A directory whose server is away: a person of this machine does not wait for it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.hosts import SCRATCH, edit
from support.pam_driver import BUILT
from support.sallyport import sallyport
from test_pam import base  # noqa: F401: a fixture

pytestmark = pytest.mark.usefixtures("base")
ASKED = Path("/run/away")


@pytest.fixture
def away(machine):
    shutil.copy(f"{BUILT}/libnss_away.so.2", SCRATCH / "lib")
    subprocess.run(["ldconfig", "-X"], check=True)
    before = Path("/etc/nsswitch.conf").read_text()
    edit("/etc/nsswitch.conf",
         lambda old: re.sub("(?m)^(passwd|group):.*", r"\1: files away", old))
    ASKED.unlink(missing_ok=True)
    yield ASKED
    Path("/etc/nsswitch.conf").write_text(before)
    ASKED.unlink(missing_ok=True)


def test_status_of_a_person_of_this_machine_asks_it_nothing(away, store):
    store.enroll(allow_missing=False)
    done = sallyport("status", "alice")
    assert done.returncode == 0 and "\nWays in:\n" in done.stdout, done.stderr
    assert not away.exists(), away.read_text()


def test_pam_enable_says_that_its_people_are_not_seen(away, store):
    store.enroll(allow_missing=False)
    done = sallyport("pam", "enable", "sudo", "--dry-run")
    warning = "warning: a directory does not answer, so its people are not seen here: getpwent: "
    assert done.returncode == 0 and warning in done.stderr, done.stderr


@pytest.mark.parametrize("words", [
    ["status"], ["enroll", "--no-confirm"], ["require"], ["unenroll", "--force"], ["doctor", "--user"],
    ["adopt", "--uid", "1234", "--yes"]])
def test_of_a_person_of_it_nothing_is_said_that_is_not_known(away, store, words):
    store.enroll(allow_missing=False)
    done = sallyport(*words, "dirk")
    text = "it is not known whether there is an account dirk: a source in nsswitch.conf does not answer ("
    assert done.returncode == 74 and text in done.stderr, done.stderr
    assert "\nhint: getent passwd dirk\n" in done.stderr
