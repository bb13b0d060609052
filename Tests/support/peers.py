"""What people move over from: Debian's own modules, and the import of what they left."""

import json
from pathlib import Path

import pytest

from support.sallyport import sallyport


def peer(name):
    found = next(Path("/usr/lib").glob(f"*-linux-gnu/security/{name}"), None)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def imported(store, *arguments, typed=None, status=0):
    """Imports; {user: what the report says of him}."""
    done = sallyport("import", *arguments, "--json", "--store", store.directory, typed=typed)
    assert done.returncode == status, done.stderr
    report = json.loads(done.stdout)
    return {each["user"]: each for each in report["users"]}
