"""A store whose secrets go before an image is made of its machine."""

import re
import shutil
from pathlib import Path

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import sallyport
from test_adopt import files
from test_copies import (  # noqa: F401: store is a fixture
    WORD, become, contents, killed_at_each_step, prepare, store)

SECRETS = re.compile(rb"secret =|salt =|code =|SPSTATE1")


@pytest.mark.decisive
def test_an_image_has_no_secret_and_the_machine_made_of_it_begins_afresh(store, services):
    enrollment = store.enroll(allow_missing=False)
    assert sallyport("require", "bob", "--store", store.directory).returncode == 0
    assert prepare().returncode == 0
    reserve = store.directory / "reserve" / "users" / "alice"
    reserve.mkdir(parents=True, mode=0o700)
    for directory in (reserve.parent, reserve.parent.parent):
        directory.chmod(0o700)
    (reserve / "enrollment").write_text("salt = 00\n")
    done = prepare("--empty", "--yes")
    assert done.returncode == 0, done.stderr
    for path, content in contents(store).items():
        assert not SECRETS.search(content), path
    assert files(store) == [] and not (store.directory / "machine").exists() and not WORD.exists()
    assert (store.directory / "unenrolled" / "bob").exists()
    become(2)
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result != SUCCESS
        assert prepare().returncode == 0 and WORD.exists()
        assert f"{2:032x}" in (store.directory / "machine").read_text()
        assert driver.login("login", "alice", enrollment.code()).result == AUTH_ERR
        assert driver.login("login", "alice", store.enroll(allow_missing=False).code()).result == SUCCESS


def test_a_store_is_not_called_empty_while_something_is_left(store):
    store.enroll(allow_missing=False)
    kept = store.directory / "users" / "alice" / "kept"
    kept.mkdir()
    (kept / "enrollment").write_bytes(store.enrollment().read_bytes())
    for _ in range(2):
        done = prepare("--empty", "--yes")
        assert done.returncode == 74 and "ENOTEMPTY" in done.stderr, done
        assert (store.directory / "machine").exists()
    left, = (store.directory / "users").iterdir()
    shutil.rmtree(left)
    assert prepare("--empty", "--yes").returncode == 0 and files(store) == []


def test_killed_at_each_step_of_emptying_the_same_command_ends_it(store, tmp_path, figure):
    for name in ("alice", "bob"):
        store.enroll(user=name, allow_missing=False)
    assert prepare().returncode == 0
    steps = 0
    for place in killed_at_each_step(store, tmp_path / "strace", "--empty", "--yes"):
        steps += 1
        assert prepare("--empty", "--yes").returncode == 0, place
        for path, content in contents(store).items():
            assert not SECRETS.search(content), (place, path)
        assert not (store.directory / "machine").exists(), place
    figure(f"{steps} kills of prepare --empty")


def test_a_host_of_a_fleet_is_no_image(store):
    store.enroll(allow_missing=False)
    before = contents(store)
    fleet = Path("/etc/security/sallyport-fleet.conf")
    fleet.write_text("anything\n")
    try:
        done = prepare("--empty", "--yes")
        assert done.returncode == 78 and "hint: sallyport fleet leave" in done.stderr
    finally:
        fleet.unlink()
    assert contents(store) == before
