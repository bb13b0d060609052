"""The texts of a login: how many backup codes are left, and what happened since the owner's last one."""

import re
import socket
import time
from pathlib import Path

import pexpect
import pytest

from own import running  # noqa: F401  a fixture
from support.hosts import PASSWORD, PROMPTS, as_user
from support.sallyport import MODULE
from support.typist import Child

LEFT = "9 backup codes left. Lost your phone? "
ADMINISTRATOR = f"sudo sallyport add alice, or ask the administrator of {socket.gethostname()}"
LINES = ["auth required pam_unix.so nodelay", f"auth required {MODULE} nodelay",
         f"account required {MODULE}", "account required pam_unix.so", f"session required {MODULE}",
         "session required pam_permit.so"]
SU = as_user("bob", "su", "alice", "-c", "echo IN-$((6*7))")


@pytest.fixture(autouse=True)
def three_lines(stacks):
    for name in ("sshd", "su", "sudo"):
        Path("/etc/pam.d", name).write_text("\n".join(LINES) + "\n")


def written(command, code, typed=None):
    """All that a login shows; `typed`: the lines for a shell."""
    child, text = Child(command), ""
    try:
        while (seen := child.expect([*PROMPTS[:2], r"\$ $", pexpect.EOF])) < 3:
            text += child.before + child.after
            if seen < 2:
                child.answer(PASSWORD if seen == 0 else code)
            elif typed:
                child.sendline(typed)
        text += child.before
        child.wait()
        return text
    finally:
        child.close(force=True)


@pytest.mark.decisive
@pytest.mark.parametrize("methods", ["keyboard-interactive", "publickey,keyboard-interactive"])
def test_sshd_tells_it_once_where_a_shell_begins(methods, daemons, store):
    code = store.enroll(allow_missing=False).backup_codes[0]
    command = daemons[methods].command("alice", "-t", "-o", "LogLevel=INFO")[:-1]
    shown = written(command, code, "env; echo IN-$((6*7)); exit")
    assert "IN-42" in shown and shown.count("backup codes left") == 1, shown
    assert LEFT + ADMINISTRATOR in shown and "SALLYPORT" not in shown, shown


@pytest.mark.decisive
@pytest.mark.parametrize("methods", ["keyboard-interactive", "publickey,keyboard-interactive"])
def test_sshd_tells_it_not_where_a_command_runs(methods, daemons, store):
    """As with its message of the day."""
    code = store.enroll(allow_missing=False).backup_codes[0]
    command = daemons[methods].command("alice", "-o", "LogLevel=INFO")
    command[-1] = "env; " + command[-1]
    shown = written(command, code)
    assert "IN-42" in shown and "left" not in shown and "SALLYPORT" not in shown, shown


@pytest.mark.decisive
def test_su_tells_it_once_and_sudo_which_wants_no_texts_not(store):
    codes = store.enroll(allow_missing=False).backup_codes
    shown = written(SU, codes[0])
    assert "IN-42" in shown and shown.count("backup codes left") == 1, shown
    assert LEFT + ADMINISTRATOR in shown
    shown = written(as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))"), codes[1])
    assert "IN-42" in shown and "left" not in shown, shown


@pytest.mark.usefixtures("running")
def test_where_self_service_is_on_it_names_what_needs_no_root(store, daemons):
    codes = store.enroll(allow_missing=False).backup_codes
    shown = written(SU, codes[0])
    assert LEFT + "sallyport add\r\n" in shown and "administrator" not in shown, shown
    command = daemons["keyboard-interactive"].command("alice", "-t")[:-1]
    shown = written(command, codes[1], "echo IN-$((6*7)); exit")
    assert "8 backup codes left. Lost your phone? sallyport add\r\n" in shown, shown


# shows: owner-notice
@pytest.mark.decisive
def test_the_owner_is_told_what_happened_until_she_has_seen_it(store, daemons):
    phone = store.enroll(allow_missing=False)
    file = store.enrollment()
    ten_days_ago = f"created = {int(time.time()) - 864_000}"
    file.write_text(re.sub(r"(?m)^created = [0-9]+", ten_days_ago, file.read_text()))
    codes, others = iter(phone.codes(4)), iter(store.add("pixel").codes(2))
    told = r'"pixel" was added to your enrollment [0-9] minutes? ago\.'
    ssh = daemons["keyboard-interactive"].command("alice", "-t", "-o", "NumberOfPasswordPrompts=1")[:-1]
    assert "IN-42" not in written(ssh, phone.wrong(), "exit")
    # sudo wants no texts, and uses nothing up.
    sudo = as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")
    assert "Since" not in written(sudo, next(codes))
    for code, wrong in ((next(others), "[12] wrong codes? from elsewhere; "), (next(others), ""), (next(codes), "")):
        shown = written(ssh, code, "echo IN-$((6*7)); exit")
        assert len(re.findall(f"Since your last login: {wrong}{told}", shown)) == 1, shown
    shown = written(ssh, next(codes), "echo IN-$((6*7)); exit")
    assert "IN-42" in shown and "Since" not in shown, shown


def test_sshd_tells_of_all_that_happened_however_long_it_is(store, daemons):
    phone = store.enroll(allow_missing=False)
    file = store.enrollment()
    ten_days_ago = f"created = {int(time.time()) - 864_000}"
    file.write_text(re.sub(r"(?m)^created = [0-9]+", ten_days_ago, file.read_text()))
    names = [f"{letter}" * 60 for letter in "abcdefg"]
    for name in names:
        store.add(name)
    ssh = daemons["keyboard-interactive"].command("alice", "-t", "-o", "NumberOfPasswordPrompts=1")[:-1]
    shown = written(ssh, phone.code(), "echo IN-$((6*7)); exit")
    assert [name for name in names if name not in shown] == [], shown
