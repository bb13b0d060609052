"""EXAMPLES of sallyport-pam(1) that ask sshd, and of sallyport-session(8): each line is typed, and works."""

import os
import shlex

import pexpect
import pytest

from own import SESSION, Own, policy, running  # noqa: F401: a fixture
from own_sshd import content, daemon  # noqa: F401: a fixture
from support.hosts import UIDS, edit
from support.manuals import DOCS, answers, examples
from support.sallyport import COMMAND
from support.typist import Child
from test_pam import base  # noqa: F401: a fixture
from test_pam_revert import nothing_pending  # noqa: F401: a fixture

SSHD = [lines for lines in [*examples(DOCS / "sallyport-pam.1"), *([line] for line in answers())]
        if any("sshd" in line and " pam " in line for line in lines)]
OWN = examples(DOCS / "sallyport-session.8")


def types(line):
    """Root types it, and says yes."""
    child = Child([COMMAND, *shlex.split(line)[1:]], timeout=60, dimensions=(60, 200))
    text = ""
    while child.expect([r"\[[yY]/[nN]\]: ?$", pexpect.EOF]) == 0:
        text += child.before + child.after
        child.answer("y")
    child.wait()
    assert child.exitstatus == 0, f"{line}\n{text}{child.before}"


@pytest.mark.usefixtures("nothing_pending")
@pytest.mark.parametrize("lines", SSHD, ids=" ".join)
def test_each_example_that_asks_sshd_works_as_it_is_written(lines, daemon, store):  # noqa: F811
    for name in UIDS:
        store.enroll(name, allow_missing=False)
    daemon.start()
    before = content()
    if " disable " in lines[0]:
        types("sallyport pam enable sshd")
    for line in lines:
        types(line)
    taken_back = lines[-1].split()[2] in ("revert", "disable")
    assert (content() == before) == taken_back


@pytest.fixture
def people():
    """alice is a helper, and bob is one of those whom helpers help."""
    before = {path: open(path).read() for path in ("/etc/group", "/etc/sudoers")}
    edit("/etc/group", lambda text: f"{text}helpers:x:4100:alice\npeople:x:4101:bob\n")
    edit("/etc/sudoers", lambda _: "root ALL=(ALL:ALL) ALL\n")
    yield
    for path, text in before.items():
        edit(path, lambda _, text=text: text)


@pytest.mark.skipif(not os.access(SESSION, os.X_OK), reason="sallyport-session is not built")
@pytest.mark.usefixtures("running", "people")
@pytest.mark.parametrize("lines", OWN, ids=" ".join)
def test_each_example_of_a_user_without_root_works_as_it_is_written(lines, store):
    policy("helpdesk = helpers", "helpdesk_for = people", "helpdesk_may = status, pass, block")
    proofs = store.enroll("alice", allow_missing=False).backup_codes
    store.enroll("bob", allow_missing=False)
    for line in lines:
        own = Own(*shlex.split(line)[1:])
        assert own.finish(code=proofs.pop()) == 0, f"{line}\n{own.text}"


def test_there_are_examples_that_ask_sshd_and_of_users_without_root():
    assert len(SSHD) >= 6 and len(OWN) >= 5
