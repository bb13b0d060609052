"""Files in a home, which its user chose and root looks at."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.hosts import UIDS
from support.sallyport import COMMAND, sallyport

SSH = Path("/home/alice/.ssh")
KEYS = SSH / "authorized_keys"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice@laptop\n"


@pytest.fixture(autouse=True)
def home(machine):
    kept = SSH.with_name("ssh.kept")
    if SSH.exists():
        SSH.rename(kept)
    SSH.mkdir()
    yield
    shutil.rmtree(SSH)
    if kept.exists():
        kept.rename(SSH)


def opened(path, trace):
    """How doctor opened it: each line of the trace that names it."""
    done = subprocess.run(
        ["strace", "-f", "-y", "-o", trace, "-e", "trace=open,openat,openat2", COMMAND, "doctor", "sshd"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1, 2), done.stderr
    lines = [line for line in trace.read_text().splitlines()
             if str(KEYS) in line or f"<{path}" in line]
    assert lines, "it was looked at"
    return [line for line in lines if "O_PATH" not in line and "ENOENT" not in line]


def test_a_device_behind_a_link_in_a_home_is_not_opened(store, tmp_path):
    store.enroll(allow_missing=False)
    KEYS.symlink_to("/dev/full")
    assert opened("/dev/full", tmp_path / "trace") == []


def test_a_fifo_in_a_home_is_not_opened(store, tmp_path):
    store.enroll(allow_missing=False)
    os.mkfifo(KEYS, 0o666)
    assert opened(KEYS, tmp_path / "trace") == []


def test_a_file_of_ten_gigabytes_in_a_home_is_read_at_its_beginning(store):
    store.enroll(allow_missing=False)
    KEYS.write_text(KEY)
    os.truncate(KEYS, 10 << 30)
    assert sallyport("doctor", "sshd").returncode in (0, 1, 2)


def test_a_file_of_another_user_is_not_read_for_this_one(store, tmp_path):
    store.enroll(allow_missing=False)
    theirs = Path("/home/bob/keys")
    theirs.write_text(KEY)
    os.chown(theirs, UIDS["bob"], UIDS["bob"])
    theirs.chmod(0o600)
    KEYS.symlink_to(theirs)
    try:
        assert all("EACCES" in line for line in opened(theirs, tmp_path / "trace"))
        theirs.chmod(0o644)
        assert any("EACCES" not in line for line in opened(theirs, tmp_path / "trace"))
    finally:
        theirs.unlink()
