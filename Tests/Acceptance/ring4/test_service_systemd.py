"""The package's units under systemd itself, which is booted in namespaces of its own."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from support.hosts import SCRATCH
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE
from support.sallyport import REPOSITORY
from support.service import SERVICE, soon

HERE = REPOSITORY / "Tests/Acceptance/ring4"
SYSTEMD = Path("/usr/lib/systemd/systemd")
SESSION = os.environ["SALLYPORT_SESSION"]
STATUS = "0135"  # version 1, what is enrolled


def groups():
    """Control groups of its own, one in each hierarchy that systemd uses."""
    root = Path("/sys/fs/cgroup")
    roots = [root] if (root / "cgroup.controllers").exists() else [root / "systemd", root / "unified"]
    return [one / f"sallyport-{SCRATCH.name}-boot" for one in roots]


@pytest.fixture
def cgroups():
    made = groups()
    try:
        for group in made:
            group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield made
    for group in made:
        def is_gone(group=group):
            for inner in sorted(group.rglob("*"), reverse=True):
                if inner.is_dir():
                    with contextlib.suppress(OSError):
                        inner.rmdir()
            with contextlib.suppress(OSError):
                group.rmdir()
            return not group.exists()
        assert soon(is_gone)


def boot(cgroups, output, *command):
    """What the command tells; systemd ends with it."""
    def enter():
        for group in cgroups:
            (group / "cgroup.procs").write_text("0")
    unshare = "unshare --cgroup --ipc --uts --mount --pid --fork --mount-proc --kill-child --propagation private"
    done = subprocess.run(
        [*unshare.split(), "sh", HERE / "boot", SCRATCH, REPOSITORY, SERVICE, SESSION, output, *command],
        preexec_fn=enter, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    said = output.read_text() if output.exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + said
    facts = {}
    for line in said.splitlines():
        facts |= json.loads(line)
    return facts


# shows: killed-service
def test_systemd_starts_service_and_sessions_and_again_after_each_kill(store, cgroups, figure):
    if not SYSTEMD.exists():
        pytest.skip("systemd is not installed")
    enrollment = store.enroll(allow_missing=False)
    conf = Path("/etc/security/sallyport.conf")
    conf.write_text("[default]\nself_service = yes\n")
    output = SCRATCH / "under-systemd"
    try:
        facts = boot(cgroups, output, "/usr/bin/python3", HERE / "under_systemd.py",
                     *enrollment.backup_codes[:5])
    finally:
        conf.unlink()
    assert facts["done"] and not facts["running_before"] and facts["running"]
    assert facts["answered"] == [True, True] and facts["modes"] == ["0o600", "0o666", "0o666"]
    assert facts["own"] == [SUCCESS, AUTH_ERR] and facts["su"] == facts["own_after"] == SUCCESS
    assert facts["session"] == [STATUS] * 3 and facts["sessions_answered"] == STATUS
    assert facts["numbers_left"] == STATUS
    # polkit's helper: root's own program, to which the store is read-only.
    assert facts["sandboxed"] == [SUCCESS, AUTH_ERR]
    assert facts["sandboxed_alone"] == [TROUBLE]
    assert facts["sandboxed_again"] == [SUCCESS]
    assert facts["longest_wait"] < 5
    figure(f"under systemd, killed eight times in a row: answered within {facts['longest_wait']:.2f} s")
