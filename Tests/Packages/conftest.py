"""Fixtures: the packages, and a clean Debian 12 to try them in."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clean import Machine, made

REPOSITORY = Path(__file__).parents[2]
CLEAN = REPOSITORY / ".build/packages/bookworm"
# What the packages ask for, and what the tests type with.
INCLUDED = "libssl3,libstdc++6,sensible-utils,pamtester"


@pytest.fixture(scope="session")
def packages():
    """{name: path of the .deb}"""
    return {path.name.split("_")[0]: path for path in (REPOSITORY / ".build/deb").glob("*.deb")}


@pytest.fixture(scope="session")
def clean():
    """The root directory of a Debian 12 that has never seen Sallyport."""
    if os.geteuid() != 0:
        pytest.skip("a clean Debian 12 needs root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: no clean Debian 12")
    try:
        return made(CLEAN, INCLUDED)
    except subprocess.CalledProcessError as failed:
        last = (failed.stdout + failed.stderr).strip().splitlines()[-1:]
        pytest.skip(f"debootstrap made no clean Debian 12, is a mirror in reach? {last}")


@pytest.fixture(scope="module")
def machine(clean, packages, tmp_path_factory):
    """A copy of it for the tests of one file, which go through one life of the packages."""
    return Machine(clean, tmp_path_factory.mktemp("machine") / "root", packages)
