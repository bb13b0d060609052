"""Notes on users when the command is killed, or the disk fails, at any of its system calls."""

import os
import re
import subprocess

import pytest

from support.sallyport import COMMAND
from support.steps import broken_at, steps
from support.whole import STRIDE

CHANGING = ("mkdirat", "openat", "fchmod", "write", "pwrite64", "fsync", "flock", "renameat",
            "renameat2", "rename", "unlinkat")


def verb(store, name, *prefix):
    words = [COMMAND, name, "--user", "carol", "--allow-missing", "--json", "--store", store.directory]
    return subprocess.run([*prefix, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)


def level(note):
    """As the whole file says; None where there is none."""
    if not note.exists():
        return None
    assert note.stat().st_mode & 0o777 == 0o600
    return re.fullmatch(r"# uid = 3003\n#.*\nversion = 1\nuser = carol\nfrom = none\nlevel = (\w+)\n",
                        note.read_text())[1]


def calls(store, tmp_path, name):
    """[(call, how many-th of that name in the process)] of a verb that touch the store."""
    report = tmp_path / "strace"
    assert verb(store, name, "strace", "-y", "-o", str(report)).returncode == 0
    return steps(report, store.directory, CHANGING)


@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC"])
@pytest.mark.parametrize("old,new", [(None, "require"), ("require", "exempt")])
def test_a_fault_at_any_system_call_leaves_the_old_level_or_the_new_one(
        carol, store, tmp_path, figure, fault, old, new):
    store.enroll()
    words = {None: None, "require": "required", "exempt": "exempt"}
    note = store.directory / "unenrolled" / "carol"
    if old:
        assert verb(store, old).returncode == 0
    before = note.read_bytes() if old else None
    places = calls(store, tmp_path, new)
    assert {"fsync", "flock"} <= {name for name, _ in places}
    assert any(name.startswith("rename") for name, _ in places)
    outcomes = {}
    for name, nth in places[::STRIDE]:
        note.unlink(missing_ok=True)
        if before:
            note.touch(0o600)
            note.write_bytes(before)
        done = verb(store, new, *broken_at(name, nth, fault))
        after = level(note)
        assert after in (words[old], words[new]), (name, nth)
        # What was said to be done is done.
        assert done.returncode != 0 or after == words[new], (name, nth)
        outcomes[after] = outcomes.get(after, 0) + 1
    # The next one cleans up.
    assert verb(store, new).returncode == 0
    assert level(note) == words[new]
    assert [entry for entry in os.listdir(store.directory / "users") if entry[0] == "."] == []
    assert os.listdir(note.parent) == ["carol"]
    figure(f"{fault} at {len(places[::STRIDE])} system calls of {new}: then {outcomes}")


def test_the_name_that_went_is_synced_before_the_one_that_came(carol, store, tmp_path):
    """Else a power cut on btrfs leaves the note two names, and it is refused."""
    store.enroll()
    report = tmp_path / "strace"
    assert verb(store, "require", "strace", "-y", "-o", str(report)).returncode == 0
    users, notes = re.escape(str(store.directory / "users")), re.escape(str(store.directory / "unenrolled"))
    order = re.findall(rf'renameat2?\(\d+<({users})>, .*"carol"|fsync\(\d+<({users}|{notes})>', report.read_text())
    after = [synced for _, synced in order[[bool(renamed) for renamed, _ in order].index(True) + 1:]]
    assert after[:2] == [str(store.directory / "users"), str(store.directory / "unenrolled")], order
