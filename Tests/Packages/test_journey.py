"""The README's commands, as they stand there, lead from the packages to a login with a code."""

import os
import shutil
import subprocess

import pytest

import journey


def test_the_commands_of_the_readme_lead_to_a_login(tmp_path):
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a clean Debian 12 needs root and debootstrap")
    try:
        journey.prepare(tmp_path / "root")
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"debootstrap made no clean Debian 12, is a mirror in reach? {problem}")
    shell = journey.Shell(tmp_path / "root")
    try:
        parts, _, login = journey.walk(shell)
        assert len(parts) == 5
        journey.refused(shell, login)
    finally:
        shell.child.close(force=True)
