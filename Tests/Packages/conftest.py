"""Fixtures: the packages, and a clean Debian to try them in."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from clean import SUITE, Machine, made
from support import only

REPOSITORY = Path(__file__).parents[2]
DIST = REPOSITORY / ".build/dist"
CLEAN = REPOSITORY / ".build/packages/bookworm"
# What the packages ask for, and what the tests type with.
INCLUDED = "libssl3,libstdc++6,pamtester"


def pytest_collection_modifyitems(config, items):
    only.keep(config, items)


@pytest.fixture(scope="session")
def packages():
    """{name: path of the .deb}"""
    return {path.name.split("_")[0]: path for path in (REPOSITORY / ".build/deb").glob("*.deb")}


@dataclass
class Key:
    """A key for signing, made for this run."""
    environment: dict
    parent: Path


@pytest.fixture(scope="session")
def key():
    # A short path: the agent's socket is in it.
    with tempfile.TemporaryDirectory(dir=os.environ["SALLYPORT_SCRATCH"]) as home:
        there = os.environ | {"GNUPGHOME": home}
        for words in (["--passphrase", "", "--quick-gen-key", "tests@sallyport.invalid", "rsa3072",
                       "sign", "never"],
                      ["--armor", "--output", f"{home}/secret.asc", "--export-secret-keys"]):
            subprocess.run(["gpg", "--batch", *words], env=there, check=True, capture_output=True)
        yield Key(os.environ | {"KEY": f"{home}/secret.asc"}, Path(home))
        subprocess.run(["gpgconf", "--kill", "all"], env=there, check=True)


@pytest.fixture(scope="session")
def signed(key, tmp_path_factory):
    """The release, with its repositories signed."""
    directory = tmp_path_factory.mktemp("signed") / "dist"
    shutil.copytree(DIST, directory)
    subprocess.run([REPOSITORY / "pam/repository", directory], check=True, capture_output=True,
                   env=key.environment)
    return directory


@pytest.fixture(scope="session")
def clean():
    """The root directory of a Debian that has never seen Sallyport."""
    return clean_debian(lambda: made(CLEAN, INCLUDED))


def clean_debian(make):
    """What `make` makes, or the test is skipped and says why."""
    if os.geteuid() != 0:
        pytest.skip("a clean Debian needs root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: no clean Debian")
    try:
        return make()
    except subprocess.CalledProcessError as failed:
        last = (failed.stdout + failed.stderr).strip().splitlines()[-1:]
        pytest.skip(f"debootstrap made no clean {SUITE}, is a mirror in reach? {last}")


@pytest.fixture(scope="module")
def machine(clean, packages, tmp_path_factory):
    """A copy of it for the tests of one file, which go through one life of the packages."""
    return Machine(clean, tmp_path_factory.mktemp("machine") / "root", packages)
