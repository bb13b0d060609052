"""Alice has lost her phone and her backup codes, and who is at hand is a helper, not root."""

import json
import os
import re
from pathlib import Path

import pytest

from own import SESSION, Own, policy, running  # noqa: F401: a fixture
from support.hosts import edit
from support.sallyport import first_code, sallyport
from test_enrolling import CODE, DEMAND, FIRST, LAST, PASS, YES, login, stack
from test_pass_enroll import next_code

pytestmark = [pytest.mark.skipif(
    not os.access(SESSION, os.X_OK), reason="sallyport-session is not built"),
    pytest.mark.usefixtures("running")]


@pytest.fixture
def bob(store):
    """The helper, who is enrolled himself."""
    group, sudoers = Path("/etc/group"), Path("/etc/sudoers")
    before = {path: path.read_bytes() for path in (group, sudoers)}
    edit("/etc/group", lambda text: f"{text}helpers:x:4100:bob\npeople:x:4101:alice\n")
    # Nobody is helped who may become root, and alice may.
    sudoers.write_text("root ALL=(ALL:ALL) ALL\n")
    policy("helpdesk = helpers", "helpdesk_for = people", "helpdesk_may = pass-enroll, block")
    yield store.enroll("bob", allow_missing=False)
    for path, content in before.items():
        path.write_bytes(content)


def helped(*words, code):
    """What a helper's command says."""
    own = Own(*words, user="bob")
    assert own.finish(code=code) == 0, own.text
    return own.text


def told_acts():
    """Who did what, and how it ended."""
    acts = json.loads(sallyport("log", "alice", "--acts", "--json").stdout)["acts"]
    return [(act["act"], act["by"], act["stage"]) for act in acts]


@pytest.mark.decisive
def test_a_helper_gives_her_a_pass_and_she_enrolls_a_new_phone_by_ssh(store, daemons, bob):
    old = store.enroll("alice", allow_missing=False)
    stack("sshd")
    words = daemons["keyboard-interactive"].command("alice", "-t")
    text = helped("pass", "alice", "--enroll", code=bob.code())
    [code] = re.findall(r"\bP[0-9A-Z]{3}(?:-[0-9A-Z]{4})+(?:-[0-9A-Z]+)?\b", text)
    entered, asked, written = login(words, {CODE: [code], DEMAND: ["y"], **YES})
    assert entered and asked == [PASS, CODE, DEMAND, FIRST, LAST], written
    shown = written[:written.index("Backup codes")]
    for typed in (old.code(), old.backup_codes[0], code):
        assert not login(words, {CODE: [typed]})[0]
    entered, asked, written = login(words, {CODE: [next_code(shown, {first_code(shown)})]})
    assert entered and asked == [PASS, CODE], written
    assert told_acts() == [("enroll", "root", "done"), ("pass", "bob", "done")]
    assert "by a pass" in sallyport("status", "alice").stdout


@pytest.mark.decisive
def test_a_helper_shuts_her_out_whose_laptop_is_stolen_and_lets_her_in_again(store, daemons, bob):
    alice = store.enroll("alice", allow_missing=False)
    stack("sshd")
    words = daemons["publickey,keyboard-interactive"].command("alice", "-t")
    codes = iter(alice.backup_codes)
    assert login(words, {CODE: [next(codes)]})[0]
    assert "alice is blocked" in helped("block", "alice", code=bob.backup_codes[0])
    assert not login(words, {CODE: [next(codes)]})[0]
    assert "not blocked any more" in helped("block", "alice", "--undo", code=bob.backup_codes[1])
    assert login(words, {CODE: [next(codes)]})[0]
    assert told_acts()[1:] == [("block", "bob", "done"), ("unblock", "bob", "done")]
