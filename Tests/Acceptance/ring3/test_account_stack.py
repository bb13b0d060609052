"""Enrolling waits for the account stack's yes: the real module asks it on a handle of its own."""

import re
import shutil

import pytest

from support.hosts import edit
from support.pam_driver import BUILT, FAIL, INFO_TEXT, LIVE, SUCCESS, Driver
from support.sallyport import MODULE, Store, first_code, our_line, reason
from test_levels import ANY_PASSWORD, CODE, DEMAND, DENIED, KEY, LAST, OFFER, asked, kinds, play

EXEC = "account required pam_exec.so quiet"
PERMIT = "account required pam_permit.so"


class Stack:
    """A service with our lines, and others of its account stack before and after ours."""

    def __init__(self, services, store, directory):
        self.services, self.store, self.directory = services, store, directory
        self.policy = directory / "policy.conf"
        self.place = f"store={store.directory} conf={self.policy}"
        self.ours = f"account required {MODULE} {self.place}"

    def set(self, level, *after, before=(), first=ANY_PASSWORD, ours=None):
        self.policy.write_text(f"[default]\nenrollment = {level}\nremind_every = 1\n")
        self.policy.chmod(0o644)
        self.services.write(
            "sshd", first, our_line(self.store, f"conf={self.policy}", "enroll", "nodelay"),
            *before, ours or self.ours, *(after or [PERMIT]),
            f"session required {MODULE}", "session required pam_permit.so")

    def script(self, name, text):
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path


@pytest.fixture
def stack(services, store, tmp_path):
    store.enroll("bob")  # makes the store
    return Stack(services, store, tmp_path)


@pytest.fixture
def shadow():
    """Sets what /etc/shadow says of nobody behind the password."""
    changed = []

    def set_fields(fields):
        if not changed:
            changed.append(open("/etc/shadow").read())
        edit("/etc/shadow", lambda text: re.sub("(?m)^nobody:.*", f"nobody:*:{fields}", text))
    yield set_fields
    for text in changed:
        edit("/etc/shadow", lambda _: text)


def refusal(kind, directory):
    """A line of an account stack that refuses the user nobody."""
    if kind == "access":
        rules = directory / "access.conf"
        rules.write_text("- : nobody : 192.0.2.0/24\n+ : ALL : ALL\n")
        return f"account required pam_access.so accessfile={rules}"
    return {"exec": f"{EXEC} /bin/false", "deny": "account required pam_deny.so",
            "unix": "account required pam_unix.so",
            "condition": "account requisite pam_succeed_if.so quiet user != nobody"}[kind]


# shows: enroll-allowed
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("kind", ["exec", "access", "deny", "condition", "unix"])
@pytest.mark.parametrize("level", ["required", "offer", "remind"])
def test_whom_the_account_stack_refuses_is_not_asked_to_enroll(
        stack, services, store, sink, shadow, level, kind, place):
    if kind == "unix":
        shadow("19000:0:99999:7::1:")  # expired
    line = refusal(kind, stack.directory)
    stack.set(level, *([line] if place == "after" else []),
              before=[line] if place == "before" else [])
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", "y", LIVE, "", live=first_code)
    assert login.results[0] == SUCCESS and login.results[1] != SUCCESS
    assert asked(login) == ["Password: "] and not store.of("nobody").exists()
    if kind == "condition" and place == "before":
        return  # it ends the stack before our line
    assert login.results[2] == (DENIED if level == "required" else SUCCESS)
    assert reason(line for line in lines if "pam_sallyport" in line.text) == "account-stack"


@pytest.mark.parametrize("level, question", [("required", DEMAND), ("offer", OFFER)])
@pytest.mark.parametrize("fields, result", [
    ("19000:0:99999:7:::", SUCCESS), ("0:0:99999:7:::", "PAM_NEW_AUTHTOK_REQD")])
def test_who_may_log_in_or_only_needs_a_new_password_enrolls(
        stack, services, store, shadow, level, question, fields, result):
    shadow(fields)
    stack.set(level, "account required pam_unix.so")
    login = play(services, "nobody", "pw", "y", LIVE, "", live=first_code)
    assert login.results == [SUCCESS, result, SUCCESS]
    assert asked(login)[1] == question and store.of("nobody").exists()


@pytest.mark.parametrize("level", ["required", "offer"])
def test_whom_it_refuses_adds_nothing_to_an_enrollment(stack, services, store, level):
    codes = store.enroll("nobody").backup_codes
    for line, more, types in ((f"{EXEC} /bin/false", [], ["totp"]),
                              (PERMIT, ["y", LIVE], ["totp", "hotp"])):
        stack.set(f"{level}\nfactor_hotp = mandatory", line)
        login = play(services, "nobody", "pw", codes.pop(), *more, live=first_code)
        assert kinds(store) == types and login.unused == 0
        assert (login.results[1] == SUCCESS) == (line == PERMIT)


def test_it_is_asked_about_the_same_login_and_only_when_somebody_enrolls(stack, services, store):
    notes = stack.directory / "notes"
    script = stack.script(
        "note", f'echo "$PAM_USER,$PAM_SERVICE,$PAM_TYPE,$PAM_RHOST,$PAM_RUSER,$PAM_TTY,'
                f'$SSH_AUTH_INFO_0" >> {notes}')
    stack.set("required", f"{EXEC} {script}", first="auth optional pam_faildelay.so delay=0")
    expected = "nobody,sshd,account,192.0.2.7,carol,tty7,publickey ssh-ed25519 AAAA"
    more = {"ruser": "carol", "tty": "tty7", "sets": KEY}
    login = play(services, "nobody", "y", LIVE, "", live=first_code, **more)
    assert login.results == [SUCCESS] * 3
    assert notes.read_text().splitlines() == [expected] * 2
    codes = re.findall(r"(?:\w{4}-){3}\w{4}", "".join(text for _, text in login.prompts))
    assert play(services, "nobody", codes[0], **more).results == [SUCCESS] * 3
    assert notes.read_text().splitlines() == [expected] * 3
    assert login.env["SSH_AUTH_INFO_0"] == KEY.partition("=")[2]


def test_it_is_asked_in_silence_and_about_the_same_display(stack, services):
    """In the stack itself, which is not asked in silence, the first of the two denies."""
    silent, display = f"{BUILT}/asked.so silent", f"{BUILT}/asked.so display :7"
    stack.set("offer", f"account required {silent}", f"account required {display}",
              first=f"{ANY_PASSWORD}\nauth optional {display}")
    login = play(services, "nobody", "pw", "n")
    assert asked(login) == ["Password: ", OFFER] and login.results[1] == DENIED


@pytest.mark.decisive
def test_what_it_shows_there_is_shown_once(stack, services):
    text = stack.directory / "text"
    text.write_text("Welcome to you\n")
    stack.set("offer", f"account optional pam_echo.so file={text}", PERMIT)
    login = play(services, "nobody", "pw", "n")
    assert login.results == [SUCCESS] * 3
    assert [shown for style, shown in login.prompts if style == INFO_TEXT and "Welcome" in shown] == \
        ["Welcome to you"]


def test_a_module_that_would_ask_something_there_is_answered_by_nobody(
        stack, services, store, sink, tmp_path):
    """Another copy of the module, which cannot know that it is asked by this one."""
    copy, other = tmp_path / "pam_copy.so", Store(tmp_path / "other")
    shutil.copy(MODULE, copy)
    code = other.enroll("nobody").code()
    stack.set("offer", f"account required {copy} demand store={other.directory}", PERMIT)
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", code)
    assert asked(login) == ["Password: ", CODE] and login.results == [SUCCESS] * 3
    assert "account-stack" in [reason([line]) for line in lines]
    assert not store.of("nobody").exists()
    assert any("pam_copy" in line.text and "conversation failed" in line.text for line in sink.lines)


@pytest.mark.parametrize("words", ["", " demand"])
def test_our_own_lines_have_nothing_to_say_there(stack, services, store, words):
    """Twice in the stack, also with demand: asked once, and no question begets another."""
    notes = stack.directory / "notes"
    script = stack.script("note", f"echo x >> {notes}")
    ours = stack.ours + words
    stack.services.write("again", ours, f"{EXEC} {script}")
    again = services.directory / "again"  # libpam 1.5 looks for other names in /etc/pam.d
    stack.set("required", f"account include {again}", f"account substack {again}", ours, PERMIT,
              ours=ours)
    login = play(services, "nobody", "pw", "y", LIVE, "", FAIL, live=first_code)
    assert asked(login)[:4] == ["Password: ", DEMAND, "Code shown by the app: ", LAST]
    assert store.of("nobody").exists()
    # Twice in the question, twice after it; with demand the second line asks the enrolled again.
    assert notes.read_text().count("x") == 4
    assert login.results[1] == (DENIED if words else SUCCESS)


# shows: enroll-allowed
@pytest.mark.parametrize("forged", ["SALLYPORT_PROBE=1", "SALLYPORT_MARK=required", "PAM_TYPE=account"])
def test_no_variable_makes_our_line_silent(stack, services, store, forged):
    code = store.enroll("alice").code()
    stack.set("refuse", ours=stack.ours + " demand")
    with Driver(services) as driver:
        login = driver.login("sshd", "alice", code, phases=("acct",), sets=forged)
    assert asked(login) == [CODE] and login.results == [SUCCESS]


# shows: enroll-allowed
@pytest.mark.parametrize("undo", ["rm sshd", "rm sshd other", "echo nonsense > sshd"])
@pytest.mark.parametrize("level", ["required", "offer"])
def test_where_it_cannot_be_asked_nobody_enrolls(stack, services, store, sink, level, undo):
    """The service's file is lost between the start of the login and the question."""
    script = stack.script("lose", f"cd {services.directory} && {undo}")
    stack.set(level, first=f"auth required pam_exec.so quiet expose_authtok {script}")
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", "y", LIVE, "", live=first_code)
    assert asked(login) == ["Password: "] and not store.of("nobody").exists()
    assert login.results == [SUCCESS] + [DENIED if level == "required" else SUCCESS] * 2
    assert "account-stack" in [reason([line]) for line in lines]
