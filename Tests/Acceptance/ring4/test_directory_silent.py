"""A directory that takes connections and never answers: real slapd, stopped, behind real sssd."""

import json
import signal
import time

import pytest

from support.directory import MISSING, TELLS, Directory
from support.sallyport import sallyport
from test_pam import base  # noqa: F401: a fixture

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' '.join(MISSING)}"),
              pytest.mark.usefixtures("base")]


PEOPLE = ("ana", "bea", "cleo", "dora", "zoe")
NAMES = ", ".join(PEOPLE)


@pytest.fixture(params=["slapd", "sssd"])
def silent(machine, store, request):
    """Five people of it are enrolled, and alice of this machine; nothing of it is in the cache."""
    directory = Directory()
    directory.up()
    directory.cache(TELLS)
    store.enroll(allow_missing=False)
    for name in PEOPLE:
        store.enroll(name, allow_missing=False)
    directory.cache(TELLS)
    directory.signal(request.param, signal.SIGSTOP)
    yield request.param
    directory.signal(request.param, signal.SIGCONT)
    directory.close()


def run(figure, silent, *words):
    begun = time.monotonic()
    done = sallyport(*words)
    took = time.monotonic() - begun
    figure(f"{silent} is stopped, {words[0]}: {took:.1f} s")
    assert took < 25
    return done


def test_doctor_does_not_wait_for_it_and_names_who_is_unseen(silent, figure):
    told = json.loads(run(figure, silent, "doctor", "--json").stdout)
    unseen = [found for found in told["findings"] if found["id"] == "user-unseen"]
    assert len(unseen) == len(PEOPLE) and {found["severity"] for found in unseen} == {"unseen"}
    assert "no answer of sss within 5 s" in json.dumps(told["access"])


def test_pam_enable_does_not_wait_for_it_and_names_who_is_unseen(silent, figure):
    done = run(figure, silent, "pam", "enable", "sudo", "--dry-run")
    assert done.returncode == 0
    assert (
        "warning: a directory does not answer, so its people are not seen here: no answer of sss "
        f"within 5 s; enrolled and not found: {NAMES}" in done.stderr), done.stderr


def test_config_check_does_not_wait_for_it(silent, figure, tmp_path):
    path = tmp_path / "sallyport.conf"
    path.write_text("[rule r]\nmatch_user = ana\nmatch_group = admins\nenrollment = refuse\n")
    done = run(figure, silent, "config", "check", path)
    assert done.stderr.splitlines() == [
        f"{path}:2: warning: match_user: there is no account ana, or a source in nsswitch.conf is away",
        f"{path}:3: warning: there is no group admins, or a source in nsswitch.conf is away"]
