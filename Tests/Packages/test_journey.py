"""The README's commands, as they stand there, lead from the packages to a login with a code, and ask
less of a person than google-authenticator does."""

import os
import shutil
import subprocess

import pytest

import journey
import peer_journey
from clean import SUITE


@pytest.fixture(scope="module", params=sorted({SUITE, "trixie"}))
def ours(request):
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a clean Debian needs root and debootstrap")
    try:
        journey.made(journey.CLEAN, journey.INCLUDED, request.param)
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"debootstrap made no clean {request.param}, is a mirror in reach? {problem}")
    return journey.way(request.param)


def test_the_commands_of_the_readme_lead_to_a_login(ours):
    assert len(ours[0]) == 5


@pytest.mark.parametrize("ours", [SUITE], indirect=True)
def test_the_page_of_the_first_login_shows_what_was_seen(ours):
    assert journey.not_seen(ours[0]) == []


@pytest.mark.parametrize("ours", [SUITE], indirect=True)
def test_google_authenticator_takes_more_lines_answers_and_files(ours):
    try:
        peer_journey.archive()
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"its packages were not downloaded, is a mirror in reach? {problem}")
    taken, theirs = ours[2], peer_journey.way()
    assert (theirs.lines, theirs.answers, theirs.files) == (6, 6, 2)
    assert taken.lines <= 5 and taken.answers <= 1 and taken.files == 0
