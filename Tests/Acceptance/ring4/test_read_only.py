"""A root disk that is read-only, and what docs/recipes.md says to type at the console."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import recipes
from support.hosts import PASSWORD, SCRATCH, Su, edit
from support.sallyport import DEFAULT_STORE, Store
from support.typist import Child

HEADING = "## When the root disk is read-only"


@pytest.fixture
def disk():
    """The store on a disk of its own, which stands for the root disk, and the store."""
    image = SCRATCH / "read-only-image"
    image.touch()
    os.truncate(image, 16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
    place = Path("/var/lib")
    kept = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True)
    if kept.returncode != 0:
        pytest.skip(f"no loop device: {kept.stderr.strip()}")
    yield place, Store(DEFAULT_STORE)
    while os.path.ismount(DEFAULT_STORE):
        subprocess.run(["umount", DEFAULT_STORE], check=True)
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    subprocess.run(["umount", place], check=True)


def type_in(script):
    return subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)


def enters(code):
    return Su().enter("alice", code)


# shows: read-only-disk
def test_the_disk_that_takes_writing_again_lets_everybody_in(disk, sink):
    place, store = disk
    first, second, *_ = store.enroll(allow_missing=False).backup_codes
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    with sink.watch() as lines:
        assert not enters(first)
    assert any("error: " in line.text for line in lines)
    command = recipes.block(HEADING, "Then, after checking").strip()
    assert command == "mount -o remount,rw /"
    assert type_in(command.replace(" /", f" {place}")).returncode == 0
    assert enters(second) and not enters(second)


# shows: read-only-disk
def test_the_store_in_memory_lets_everybody_in_until_the_next_start(disk):
    place, store = disk
    first, second, *_ = store.enroll(allow_missing=False).backup_codes
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    assert not enters(first)
    done = type_in(recipes.block(HEADING, "If that fails"))
    assert done.returncode == 0, done.stderr
    assert enters(first) and not enters(first)
    assert Path("/run/sallyport").stat().st_mode & 0o777 == 0o700
    # The next start: what was used is forgotten, as the recipe says.
    subprocess.run(["umount", DEFAULT_STORE], check=True)
    subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    assert enters(first) and enters(second)


# shows: read-only-disk
def test_sulogin_asks_for_roots_password_and_no_code(stacks):
    """With the line in every stack."""
    if shutil.which("sulogin") is None:
        pytest.skip("sulogin (util-linux) is not installed")
    rows = Path("/etc/shadow").read_text()
    alice = re.search(r"(?m)^alice:([^:]*):", rows)[1]
    edit("/etc/shadow", lambda text: re.sub(r"(?m)^root:[^:]*:", f"root:{alice}:", text))
    try:
        child = Child(["sulogin"], env={**os.environ, "SUSHELL": "/bin/sh"})
        try:
            child.expect("password for (system )?maintenance")
            child.answer("wrong horse")
            child.expect("incorrect")
            child.expect("password for (system )?maintenance")
            child.answer(PASSWORD)
            child.expect("[#$] ?$")
            child.sendline("echo IN-$((6*7))")
            child.expect("IN-42")
        finally:
            child.close(force=True)
    finally:
        Path("/etc/shadow").write_text(rows)
