"""Between the module and the application: texts as they are, and what cannot be handed over."""

import pytest

from support.hosts import edit
from support.pam_driver import AUTH_ERR, ECHO_OFF, ERROR_TEXT, INFO_TEXT, LIVE, SUCCESS, Driver
from support.sallyport import first_code, our_line
from test_levels import DENIED, Stack, asked, play

PERCENT = "100%% %s%d%n: "
NO_MEMORY = "PAM_BUF_ERR"


@pytest.fixture
def stack(services, store, tmp_path):
    store.enroll("bob")  # makes the store
    return Stack(services, store, tmp_path)


def test_percent_signs_in_a_prompt_are_shown_as_they_are(services, store, sink):
    code = store.enroll().code()
    services.code("login", store, "nodelay", f"[prompt={PERCENT}]")
    with Driver(services) as driver:
        login = driver.login("login", "alice", code)
    assert (login.result, login.prompts) == (SUCCESS, [[ECHO_OFF, PERCENT]])


def test_percent_signs_in_the_log_are_written_as_they_are(driver, store, sink):
    store.enroll()
    with sink.watch() as lines:
        assert driver.login("login", "eve sent\n", "123456").result == AUTH_ERR
    text = lines[0].text
    assert " user=eve%20sent%0A " in f"{text} " and text.count("user=") == 1


def test_what_is_shown_is_no_error_message(stack, services, store):
    stack.set("enrollment = required")
    login = play(services, "nobody", "pw", "y", LIVE, "", live=first_code)
    assert login.results == [SUCCESS] * 3
    styles = {style for style, _ in login.prompts}
    assert INFO_TEXT in styles and ERROR_TEXT not in styles


@pytest.mark.parametrize("level, result", [("required", DENIED), ("offer", SUCCESS)])
def test_an_application_without_a_conversation_function_shows_nothing(
        stack, services, store, level, result):
    more = stack.set(f"enrollment = {level}", before="key")
    login = play(services, "nobody", mute=1, **more)
    assert login.results == [SUCCESS, result, result] and login.prompts == []
    assert not store.of("nobody").exists()


def test_a_login_that_libpam_cannot_note_is_none(services, store, sink):
    """The account and session phases would not know of it."""
    enrollment = store.enroll()
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code(), full=1).result == NO_MEMORY
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


def test_a_password_that_libpam_cannot_hold_is_not_passed_over(services, store, sink):
    """A module after ours would check another one, or ask again."""
    code = store.enroll().code()
    services.write("login", our_line(store, "nodelay", "forward_pass", control="requisite"),
                   "account required pam_permit.so")
    with Driver(services) as driver:
        assert driver.login("login", "alice", f"hunter2{code}", full=2).result == NO_MEMORY
        assert driver.login("login", "alice", f"hunter2{code}").result == SUCCESS


@pytest.mark.in_memory
def test_answers_to_two_thousand_texts_leave_the_memory_flat(stack, services, store, figure):
    """An application may answer a text, which wants no answer."""
    more = stack.set("enrollment = required", before="key")
    with Driver(services) as driver:
        verdicts, kilobytes = driver.summary(
            "sshd", "nobody", "n", repeat=2000, phases=("auth", "acct"), rhost="192.0.2.7",
            chatty=1, **more)
    assert verdicts == {SUCCESS: 2000}
    assert kilobytes[-1] - kilobytes[0] < 128, kilobytes
    figure(f"2,000 answers to texts: resident {kilobytes} kB")


@pytest.mark.in_memory
def test_two_thousand_questions_to_the_account_stack_leave_the_memory_flat(
        stack, services, store, figure):
    """Each has a handle of its own, and a copy of PAM's environment."""
    more = stack.set("enrollment = offer", before="key")
    more["sets"] += " " * 4000
    services.write("sshd", *(services.directory / "sshd").read_text().splitlines()[:2],
                   "account required pam_deny.so")
    with Driver(services) as driver:
        verdicts, kilobytes = driver.summary(
            "sshd", "nobody", repeat=2000, phases=("auth", "acct"), rhost="192.0.2.7", **more)
    assert verdicts == {SUCCESS: 2000}
    assert kilobytes[-1] - kilobytes[0] < 128, kilobytes
    figure(f"2,000 questions to the account stack: resident {kilobytes} kB")


def test_an_account_whose_entry_is_long_is_found(stack, services):
    """It would be nobody's login otherwise, refused as one without an account."""
    name = "x" * 5000
    edit("/etc/passwd", lambda text: f"{text}carol:x:3003:3003:{name}:/home/carol:/bin/sh\n")
    stack.set("enrollment = voluntary")
    try:
        assert play(services, "carol", "pw").results == [SUCCESS] * 3
        stack.set("enrollment = required")
        assert len(asked(play(services, "carol", "pw", "n"))) == 2
    finally:
        edit("/etc/passwd", lambda text: text.replace(name, "carol"))
        edit("/etc/passwd", lambda text: "".join(
            line for line in text.splitlines(True) if not line.startswith("carol:")))
