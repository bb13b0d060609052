"""Debian's own programs with the stacks of docs/recipes.md, on a private machine."""

import subprocess

import pytest

from support import recipes
from support.hosts import PAM_D, PASSWORD
from programs import Doas, Dovecot, Login, Pkexec, Saslauthd, Vlock, Vsftpd, XrdpSesman
from support.sallyport import COMMAND, MODULE

ONE_FIELD = {Vsftpd: "### vsftpd", Dovecot: "### dovecot", XrdpSesman: "### xrdp",
             Saslauthd: "### saslauthd"}
TWO_PROMPTS = {Doas: "### doas", Pkexec: "### pkexec and polkit", Vlock: "### vlock",
               Login: "### login on the console"}


@pytest.fixture
def start(tmp_path):
    programs = []

    def started(kind, *more):
        programs.append(kind(tmp_path, *more))
        return programs[-1]
    yield started
    for program in programs:
        program.stop()


def place(kind, heading):
    """The recipe: lines for its file, or a command that writes them."""
    text = recipes.section(heading)
    if f"`/etc/pam.d/{kind.service}`" in text:
        (PAM_D / kind.service).write_text(recipes.stack(heading, kind.service))
        return
    command = recipes.block(heading, "").split()
    assert command[0] == "sallyport"
    assert command[1:] == ["pam", "enable", kind.service]
    enable(kind.service)


def enable(service):
    done = subprocess.run([COMMAND, "pam", "enable", service, "--yes"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


# shows: two-prompts
@pytest.mark.parametrize("way", ["the recipe", "pam enable"])
@pytest.mark.parametrize("kind", ONE_FIELD, ids=lambda kind: kind.service)
def test_password_and_code_in_one_field(debian, store, start, kind, way):
    enrollment = store.enroll(allow_missing=False)
    if way == "the recipe":
        place(kind, ONE_FIELD[kind])
    else:
        path = PAM_D / kind.service
        if not path.exists():  # saslauthd's services have none
            path.write_text("@include common-auth\n@include common-account\n")
        enable(kind.service)
    program = start(kind)
    code = enrollment.code()
    assert not program.enter("alice", PASSWORD)
    assert not program.enter("alice", PASSWORD + enrollment.wrong())
    assert not program.enter("alice", "wrong horse" + enrollment.backup_codes[0])
    assert program.enter("alice", PASSWORD + code)
    assert not program.enter("alice", PASSWORD + code)


@pytest.mark.parametrize("kind", TWO_PROMPTS, ids=lambda kind: kind.service)
def test_a_prompt_for_the_code_after_the_password(debian, store, start, kind):
    enrollment = store.enroll(allow_missing=False)
    place(kind, TWO_PROMPTS[kind])
    program = start(kind)
    code = enrollment.code()
    assert not program.enter("alice", enrollment.wrong(), PASSWORD)
    assert not program.enter("alice", code, "wrong horse")
    assert program.enter("alice", code, PASSWORD)
    assert not program.enter("alice", code, PASSWORD)


def test_login_without_the_auth_phase_asks_for_no_code(debian, store, start):
    store.enroll(allow_missing=False)
    place(Login, TWO_PROMPTS[Login])
    program = start(Login)
    assert not program.enter("alice", "", PASSWORD)
    program.words = ["-f"]
    assert program.enter("alice", "", "never asked")


@pytest.mark.parametrize("demand", [False, True])
def test_doas_without_a_password_asks_for_a_code_where_it_is_demanded(
        debian, store, start, demand):
    place(Doas, TWO_PROMPTS[Doas])
    if demand:
        path = PAM_D / Doas.service
        path.write_text(f"account required {MODULE} demand\n{path.read_text()}")
    enrollment = store.enroll(allow_missing=False)
    program = start(Doas, "permit nopass alice")
    assert program.enter("alice", enrollment.wrong(), "never asked") is not demand
    assert program.enter("alice", enrollment.code(), "never asked")


def test_a_cache_before_the_module_takes_a_used_code_again(debian, store, start):
    """Why the recipe has none."""
    place(Saslauthd, ONE_FIELD[Saslauthd])
    typed = PASSWORD + store.enroll(allow_missing=False).code()
    program = start(Saslauthd, "-c")
    assert program.enter("alice", typed)
    assert program.enter("alice", typed)
