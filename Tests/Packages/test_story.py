"""Somebody loses her phone and her backup codes, and the helpdesk lets her enroll a new one: told by four people
on a clean Debian, in their order (story.py)."""

import os
import re
import shutil
import subprocess

import pytest

import story
from clean import SUITE

TOLD = [
    r'root enrolled alice with "phone" \[command\]',
    r"harry gave alice a pass, enrolls yes, until \S+, pid \d+ \[session\]",
    r"alice at sshd from (127\.0\.0\.1|::1): a pass was accepted",
    r'alice enrolled alice with "phone", by a pass, in place of all before, origin (127\.0\.0\.1|::1) \[login\]',
    r"alice at sshd from (127\.0\.0\.1|::1): refused \(wrong-code\), 3 times, last ",
    r'alice at sshd from (127\.0\.0\.1|::1): a code of "phone" was accepted']


@pytest.fixture(scope="module", params=sorted({SUITE, "trixie"}))
def told(request, tmp_path_factory):
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a clean Debian needs root and debootstrap")
    try:
        root = story.prepare(tmp_path_factory.mktemp("story") / "root", request.param)
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"no clean {request.param} with systemd was made, is a mirror in reach? {problem}")
    machine = story.Machine(root)
    yield story.Story(machine)
    machine.close()


def test_alice_loses_all_and_gets_in_by_a_helper_and_the_old_phone_does_not(told):
    told.root_sets_it_up()
    given = told.harry_gives_a_pass()
    told.alice_enrolls_with_it(given)
    told.the_finder_tries()
    first, lines = told.alice_logs_in(), told.log()
    assert len(lines) == len(TOLD), lines
    for line, pattern in zip(lines, TOLD):
        assert re.fullmatch(pattern, line), lines
    assert "Since your last login: 3 wrong codes from elsewhere; " in first
    # What the new phone could have eaten is told again at the next login.
    for seen in (first, told.alice_logs_in()):
        assert re.search(r'"phone" was added to your enrollment \d+ minutes? ago; a pass was used \d+ minutes? ago\.',
                         seen), seen
