"""What a user can change in a session, by what the stack `sallyport` asks before the code."""

import os
import re
from pathlib import Path

import pytest

from own import CODE, CONF, FIRST, PASSWORD_PROMPT, SESSION, Own, names, running
from support.hosts import PASSWORD
from support.sallyport import MODULE, REPOSITORY, first_code

pytestmark = [pytest.mark.skipif(
    not os.access(SESSION, os.X_OK), reason="sallyport-session is not built"),
    pytest.mark.usefixtures("running")]
CODE_ASKED = "Verification code to make new backup codes: "
OFFER, LAST = r"Set it up now\? \[y/n, .*: ?$", "Press Enter when you have them: ?$"


# shows: self-code
@pytest.mark.parametrize("line", ["auth sufficient pam_permit.so", f"auth required {MODULE} nullok",
                                  "auth required pam_unix.so nullok nodelay"])
def test_nullok_changes_nothing_without_a_password_and_a_code(store, line):
    """Of our line for who is not enrolled; of pam_unix for who has no password."""
    enrollment = store.enroll("bob", allow_missing=False)
    Path("/etc/pam.d/sallyport").write_text(f"{line}\naccount required pam_permit.so\n")
    # Where the policy says nothing of it, nullok lets in who is not enrolled.
    CONF.write_text("[default]\nself_service = yes\n")
    own = Own("enroll")
    assert own.finish(password="") == 77 and not store.enrollment().exists()
    before = store.enrollment("bob").read_bytes()
    if "pam_unix" in line:
        shadow = Path("/etc/shadow")
        kept = shadow.read_text()
        shadow.write_text(re.sub("(?m)^bob:[^:]*:", "bob::", kept))
        own = Own("backup-codes", "--regenerate", user="bob")
        assert own.finish(password="", code=enrollment.backup_codes[0]) != 0
        shadow.write_text(kept)
        assert "the password was not accepted" in own.text
    else:
        own = Own("backup-codes", "--regenerate", user="bob")
        if "nullok" in line:  # asks who is enrolled
            assert own.until("Verification code: ?$") == 0
            own.child.answer(enrollment.backup_codes[0])
        assert own.finish(code=enrollment.wrong()) != 0 and CODE_ASKED in own.text
    assert store.enrollment("bob").read_bytes() == before


def asking_stack(*words):
    """The shipped stack, where the system's own lines ask for a code, as pam-auth-update has them."""
    shipped = Path(REPOSITORY, "pam/stacks/debian").read_text()
    for kind, line in (("auth", " ".join([MODULE, *words])), ("account", MODULE)):
        Path(f"/etc/pam.d/asking-{kind}").write_text(
            f"{kind} required pam_unix.so nodelay\n{kind} required {line}\n")
        shipped = shipped.replace(f"common-{kind}", f"asking-{kind}")
    Path("/etc/pam.d/sallyport").write_text(shipped)


# shows: self-code
def test_where_the_systems_lines_ask_for_a_code_the_change_takes_another(store):
    asking_stack("nodelay")
    enrollment = store.enroll(allow_missing=False)
    before = store.enrollment().read_bytes()
    first, second, third = enrollment.backup_codes[:3]
    for codes, is_done in (((first, first), False), ((second, third), True)):
        own = Own("rename", "phone", "tablet")
        assert own.until(PASSWORD_PROMPT) == 0
        own.child.answer(PASSWORD)
        assert own.until("Verification code: ?$") == 0
        own.child.answer(codes[0])
        assert own.until(CODE) == 0
        own.child.answer(codes[1])
        assert (own.finish() == 0) == is_done, own.text
        assert (store.enrollment().read_bytes() != before) == is_done


# shows: self-code
@pytest.mark.decisive
@pytest.mark.parametrize("wants", [True, False])
def test_who_enrolls_in_the_systems_own_lines_is_enrolled_once(store, wants):
    """The stack's account phase offers it, and the session was begun for nothing else."""
    asking_stack("nodelay", "enroll")
    store.enroll("bob", allow_missing=False)
    own = Own("enroll", "--qr", "none")
    assert own.until(PASSWORD_PROMPT) == 0
    own.child.answer(PASSWORD)
    assert own.until(OFFER) == 0
    own.child.sendline("y" if wants else "n")
    if wants:
        assert own.until(FIRST) == 0
        own.child.sendline(first_code(own.text))
        assert own.until(LAST) == 0
        own.child.sendline("")
    assert (own.finish() == 0) == (not wants), own.text
    assert names(store) == ["phone"]
    if wants:
        assert "changed meanwhile" in own.text and own.text.count("otpauth:") == 1
