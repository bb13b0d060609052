"""The process in which libqrencode works, with one in its place that never answers."""

import os
import signal
import subprocess
import time

import pytest

from pam_driver import LIVE, SUCCESS, Driver
from test_levels import first_code, stack  # noqa: F401: a fixture

NEVER = "#include <unistd.h>\nvoid *QRcode_encodeData(void) { for (;;) pause(); }\n"
# Which nobody can block, and the two that libc keeps for itself.
FREE = {signal.SIGKILL, signal.SIGSTOP, 32, 33}


@pytest.fixture
def silent(stack, services, tmp_path):
    """A host whose libqrencode never answers, in an enrolling."""
    (tmp_path / "never.c").write_text(NEVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libqrencode.so.4",
                    tmp_path / "never.c"], check=True)
    more = stack.set("enrollment = required", "key")
    with Driver(services, env={"LD_LIBRARY_PATH": str(tmp_path)}) as driver:
        driver.send("sshd", "nobody", "y", LIVE, "", phases=("auth", "acct"), rhost="192.0.2.7",
                    **more)
        yield driver


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := what()):
            return found
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def facts(process):
    """Of /proc/PID/status; none of one that is gone, or dead and not yet buried."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            found = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {} if found["State"].startswith(("Z", "X")) else found


def at_work(driver):
    """The child, once it is waiting in the library."""
    child, = until(lambda: children(driver.process.pid))
    until(lambda: facts(child)["State"].startswith("S"))
    return child


def test_no_handler_of_the_hosts_runs_in_it(silent):
    child = at_work(silent)
    blocked = int(facts(child)["SigBlk"], 16)
    assert {n for n in range(1, 65) if not blocked >> (n - 1) & 1} == FREE
    assert facts(silent.process.pid)["SigBlk"] == "0" * 16


@pytest.mark.parametrize("stopped", [False, True])
def test_it_does_not_outlive_the_host(silent, stopped):
    child = at_work(silent)
    if stopped:
        os.kill(child, signal.SIGSTOP)
    silent.process.kill()
    silent.process.wait()
    until(lambda: not facts(child), seconds=5)


def test_its_silence_costs_the_drawing_alone(silent):
    at_work(silent)
    login = silent.verdict(first_code)
    assert login.results == [SUCCESS] * 2 and login.changed == ""
    assert not any("\u00e2" in text for _, text in login.prompts)
    assert children(silent.process.pid) == []
