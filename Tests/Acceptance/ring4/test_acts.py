"""The file of acts, where a writer is killed or the disk is full: no verb waits or fails for it."""

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.sallyport import COMMAND, Store, sallyport
from support.steps import broken_at, steps
from test_disks import fill, mount

TOUCHING = ("mkdirat", "mkdir", "openat", "openat2", "write", "pread64", "read", "fsync", "getdents64", "unlinkat")


def file_of(store):
    return store.directory / "acts" / time.strftime("%Y-%m", time.gmtime())


def give_pass(*before):
    return subprocess.run([*before, COMMAND, "pass", "alice", "--json"], capture_output=True, text=True, timeout=60,
                          check=False)


def told():
    """The acts that log tells, and what it warns of."""
    done = sallyport("log", "alice", "--acts", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return [(act["act"], act["stage"]) for act in answer["acts"]], [
        text for text in answer["warnings"] if text.startswith("acts/")]


@dataclass
class Scene:
    """A store, to which it can be set back, and the calls of `sallyport pass` that touch its acts."""
    store: Store
    saved: Path
    before: list
    calls: list

    def without(self, name, nth, fault):
        """The verb where that comes of that call; then another act. (how it ended, the acts that came, what is
        warned of)"""
        shutil.rmtree(self.store.directory)
        shutil.copytree(self.saved, self.store.directory, symlinks=True)
        done = give_pass(*broken_at(name, nth, fault))
        self.store.unlock()
        acts, warnings = told()
        assert acts[:len(self.before)] == self.before and acts[-1] == ("unlock", "done"), (name, nth, acts)
        return done, acts[len(self.before):-1], warnings


@pytest.fixture(params=["first", "later"])
def scene(request, store, tmp_path):
    """Acts were kept already, or not."""
    store.enroll(allow_missing=False)
    if request.param == "first":
        shutil.rmtree(store.directory / "acts")
    saved, report = tmp_path / "saved", tmp_path / "report"
    shutil.copytree(store.directory, saved, symlinks=True)
    before, _ = told()
    assert give_pass("strace", "-y", "-o", report).returncode == 0
    calls = steps(report, "acts", TOUCHING)
    assert {"openat", "write", "fsync"} <= {name for name, _ in calls} and len(calls) >= 6, calls
    return Scene(store, saved, before, calls)


@pytest.mark.decisive
def test_killed_at_any_system_call_on_the_acts_a_verb_leaves_a_file_that_can_be_read(scene, figure):
    """What was given has a line, and the next act has its own."""
    given = 0
    for name, nth in scene.calls:
        done, acts, warnings = scene.without(name, nth, "signal=KILL")
        assert done.returncode != 0 and warnings == [], (name, nth)
        # The line before it is replaced by the one behind it, where that was written.
        assert acts in ([], [("pass", "will")], [("pass", "done")]), (name, nth, acts)
        count = len(scene.store.status()["passes"])
        assert acts or count == 0, (name, nth)
        given += count
    figure(f"killed at {len(scene.calls)} system calls on the acts: {given} times the pass was given")


@pytest.mark.decisive
def test_a_fault_at_any_system_call_on_the_acts_hinders_no_verb(scene):
    for turn, (name, nth) in enumerate(scene.calls):
        done, acts, warnings = scene.without(name, nth, f"error={('ENOSPC', 'EIO')[turn % 2]}")
        assert done.returncode == 0 and json.loads(done.stdout)["pass"], (name, nth, done.stderr)
        assert warnings == [] and acts in ([], [("pass", "will")], [("pass", "done")]), (name, nth, acts)
        # Where the end was not kept, the command says so.
        assert acts == [("pass", "done")] or "will not show this act" in done.stderr, (name, nth, done.stderr)


@pytest.mark.decisive
@pytest.mark.parametrize("room", [0, 20])
def test_on_a_full_disk_a_verb_goes_on_and_a_torn_line_is_told_and_stays_alone(store, room):
    """A part of a line is on the disk where it ends in a block that is not full."""
    store.directory.mkdir(mode=0o755)
    assert mount("-t", "tmpfs", "-o", "size=256k,mode=700", "small", store.directory).returncode == 0
    try:
        store.enroll(allow_missing=False)
        file = file_of(store)
        # To the byte: `room` of them are left in its last block.
        rest = (-file.stat().st_size - room) % 4096
        with open(file, "a") as acts:
            acts.write("\n" * rest)
        before, _ = told()
        fill(store.directory)
        done = sallyport("unlock", "alice")
        assert done.returncode == 0 and "will not show this act" in done.stderr, done.stderr
        acts, warnings = told()
        assert acts == before and len(warnings) == (room > 0), warnings
        assert all("cut short" in text for text in warnings)
        for filler in store.directory.glob("filler*"):
            filler.unlink()
        (store.directory / "one-more").unlink(missing_ok=True)
        store.unlock()
        acts, warnings = told()
        assert acts == before + [("unlock", "done")]
        assert len(warnings) == (room > 0) and all("cannot be read" in text for text in warnings)
    finally:
        subprocess.run(["umount", store.directory], check=True)
