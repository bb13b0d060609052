"""What an administrator types on the machine of a verifier.

test_how_the_database_is_reached_is_written_down_once
test_root_acts_as_the_owner_of_the_directory
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.fleet import VERIFIER

NOBODY = pwd.getpwnam("nobody")


def run(verb, directory, *more):
    return subprocess.run([VERIFIER, verb, "--directory", directory, *more], capture_output=True, text=True, timeout=60)


def test_how_the_database_is_reached_is_written_down_once(fleet):
    path = fleet.directory / "database"
    words = fleet.words("postgres")
    assert path.read_text() == f"{words} user=sallyport_verifier\n"
    assert path.stat().st_mode & 0o777 == 0o600
    done = run("status", fleet.directory)
    assert done.returncode == 0 and "users: 0" in done.stdout, done.stderr
    assert run("init", fleet.directory, "--database", f"{words} application_name=other").returncode == 0
    assert "application_name" not in path.read_text(), "what is there stays"
    uri = f"postgresql:///{fleet.database}?host={fleet.cluster.directory}&user=postgres"
    path.unlink()
    assert run("init", fleet.directory, "--database", uri).returncode == 0
    assert path.read_text() == f"{uri}&user=sallyport_verifier\n"
    assert run("status", fleet.directory).returncode == 0
    for text, said in ("", "empty"), (None, "init --database WORDS"):
        path.write_text(text) if text is not None else path.unlink()
        done = run("status", fleet.directory)
        assert done.returncode != 0 and said in done.stderr and "database" in done.stderr


@pytest.fixture
def directory():
    """Of another user, where all may pass."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        own = Path(top, "own")
        own.mkdir(mode=0o700)
        os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
        yield own


def test_root_acts_as_the_owner_of_the_directory(fleet, directory):
    for path in fleet.directory.iterdir():
        if path.name in ("key", "identity.key"):
            shutil.copy2(path, directory)
            os.chown(directory / path.name, NOBODY.pw_uid, NOBODY.pw_gid)
    done = run("init", directory, "--database", fleet.words("postgres"))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in directory.iterdir()} >= {"key", "database", "sallyport.conf"}
    assert {path.stat().st_uid for path in directory.iterdir()} == {NOBODY.pw_uid}
    os.chown(directory / "key", 0, 0)
    assert "Permission denied" in run("run", directory).stderr, "root's key in another one's directory"
