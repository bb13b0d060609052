"""Machines by chance: the ground that they stand on, and the total of a run."""

import json

import pytest

from comparing import Total
from drawing import COUNT, SEED, WHOLE
from support.sallyport import REAL_ROOT


def pytest_collection_modifyitems(items):
    if not REAL_ROOT:
        for item in items:
            if "ground" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason="machines run real hosts and need root"))


@pytest.fixture(scope="session")
def ground(sink):
    """The private machine, with no pauses after refusals, and the module where libpam looks."""
    from ground import THERE, Ground, quick_refusals, with_the_module
    with quick_refusals(), with_the_module(), THERE.connected():
        made = Ground()
        yield made
        made.restore()


@pytest.fixture(scope="session")
def polkit(ground, tmp_path_factory):
    """None where polkit is not installed: pkexec is then no way."""
    from polkit import Polkit, is_here
    running = Polkit(tmp_path_factory.mktemp("polkit")) if is_here() else None
    yield running
    if running:
        running.stop()


# MARK: the total, in the process that hands out and counts


def reported(terminalreporter, kind):
    return [json.loads(text) for outcome in ("passed", "failed")
            for report in terminalreporter.getreports(outcome)
            for name, text in getattr(report, "user_properties", ()) if name == kind]


def totals(terminalreporter):
    total = Total()
    for facts in reported(terminalreporter, "machine"):
        total.add(facts)
    return total


def never_found(terminalreporter):
    """Faults that were planted somewhere and found nowhere."""
    planted, found = set(), set()
    for fault, was_found in reported(terminalreporter, "fault"):
        planted.add(tuple(fault))
        if was_found:
            found.add(tuple(fault))
    return planted, sorted(planted - found)


def pytest_terminal_summary(terminalreporter):
    total = totals(terminalreporter)
    if not total.machines:
        return
    terminalreporter.section(f"machines of seed {SEED}")
    for line in total.lines():
        terminalreporter.line(line)
    planted, missed = never_found(terminalreporter)
    terminalreporter.line(f"{len(planted)} faults planted, {len(missed)} found nowhere")
    for line in complaints(terminalreporter, total):
        terminalreporter.line(f"FAILED machines: {line}")


def complaints(terminalreporter, total):
    """A fault that few machines have may be found on none of them: only the whole has all."""
    missed = never_found(terminalreporter)[1] if COUNT >= WHOLE else []
    return [*map(str, missed), *total.complaints(COUNT >= WHOLE)]


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    total = totals(reporter)
    if total.machines and complaints(reporter, total) and session.exitstatus == 0:
        session.exitstatus = 1
