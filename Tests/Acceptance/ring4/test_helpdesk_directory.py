"""A helpdesk beside a real directory: who is in which group is certain, or nobody is helped."""

import os
from pathlib import Path

import pytest

from own import SESSION, Own, policy, running  # noqa: F401: a fixture
from support.directory import MISSING, TELLS, ask_groups, resolves
from support.hosts import edit
from test_directory import directory  # noqa: F401: a fixture

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' '.join(MISSING)}"),
    pytest.mark.skipif(not os.access(SESSION, os.X_OK), reason="sallyport-session is not built"),
    pytest.mark.usefixtures("running")]
PEOPLE = ["ana", "bea", "bob", "dora"]


@pytest.fixture
def alice(store, directory):
    """The helper, of this machine as bob; the others are of the directory, and ana is in its admins."""
    directory.online()
    directory.cache(TELLS)
    group, sudoers = Path("/etc/group"), Path("/etc/sudoers")
    before = {path: path.read_bytes() for path in (group, sudoers)}
    edit(group, lambda text: f"{text}helpers:x:4100:alice\npeople:x:4101:{','.join(PEOPLE)}\n")
    sudoers.write_text("root ALL=(ALL:ALL) ALL\n")
    for name in PEOPLE:
        store.enroll(name, allow_missing=False)
    yield store.enroll("alice", allow_missing=False)
    for path, content in before.items():
        path.write_bytes(content)


@pytest.mark.decisive
def test_a_helper_helps_who_is_certainly_in_no_group_of_it(alice, directory):
    codes = iter(alice.backup_codes)

    def told(name):
        own = Own("pass", name)
        own.finish(code=next(codes))
        return own.text

    lines = ["helpdesk = helpers", "helpdesk_for = people"]
    policy(*lines)
    assert "A pass for bob" in told("bob")
    policy(*lines, "helpdesk_never = admins")
    assert "A pass for dora" in told("dora")
    assert "may not help ana" in told("ana")
    # SSSD knows nobody of this machine, whom the directory may have in a group all the same.
    assert "cannot be found out whether the helpdesk may help bob" in told("bob")
    directory.cache(TELLS)
    assert all(resolves(name) for name in ("bea", "dora")) and resolves("admins", "group")
    ask_groups("dora")
    directory.down()
    assert "A pass for dora" in told("dora")
    assert "cannot be found out whether the helpdesk may help bea" in told("bea")
