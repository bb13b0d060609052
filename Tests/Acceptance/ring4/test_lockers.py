"""Screen lockers that run as their user, with the stacks of docs/recipes.md and the service."""

import pytest

from lockers import I3lock, OneAnswer, XSecureLock
from support import recipes
from support.hosts import PAM_D, PASSWORD
from support.service import Service
from test_service import _no_sockets_before, policy, running  # pylint: disable=unused-import

SECTION = "### Screen lockers"


@pytest.fixture
def start(tmp_path):
    lockers = []

    def started(kind):
        path = PAM_D / kind.service if hasattr(kind, "service") else PAM_D / kind
        path.write_text(recipes.stack(SECTION, path.name))
        lockers.append(kind(tmp_path) if hasattr(kind, "service") else OneAnswer(kind))
        return lockers[-1]
    yield started
    for locker in lockers:
        locker.stop()


@pytest.mark.parametrize("kind", [I3lock, "i3lock", "swaylock", "slock"], ids=[
    "the real i3lock", "one answer to i3lock", "one answer to swaylock", "one answer to slock"])
def test_a_locker_with_one_field_opens_by_password_and_code(
        debian, store, running, start, sink, kind):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    locker = start(kind)
    assert not locker.enter(PASSWORD)
    assert not locker.enter(enrollment.backup_codes[2])
    assert not locker.enter(PASSWORD + enrollment.wrong())
    assert not locker.enter("wrong horse" + enrollment.backup_codes[0])
    assert locker.enter(PASSWORD + code)
    assert not locker.enter(PASSWORD + code)
    assert locker.enter(PASSWORD + enrollment.backup_codes[1])


@pytest.mark.decisive
def test_a_locker_that_asks_twice_opens_by_password_then_code(
        debian, store, running, start, sink):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    locker = start(XSecureLock)
    opened, prompts = locker.enter("wrong horse")
    assert not opened and set(prompts) == {"Password: "}
    assert not locker.enter(PASSWORD, enrollment.wrong())[0]
    assert locker.enter(PASSWORD, code) == (True, ["Password: ", "Verification code: "])
    assert not locker.enter(PASSWORD, code)[0]


@pytest.mark.parametrize("kind", [I3lock, "i3lock"], ids=["the real i3lock", "one answer"])
def test_a_locked_screen_waits_for_the_service_and_then_opens(
        debian, store, start, sink, kind):
    """The code that was typed while there was no service is not used up."""
    code = store.enroll(allow_missing=False).code()
    locker = start(kind)
    with sink.watch() as lines:
        assert not locker.enter(PASSWORD + code)
    assert "the service is not running" in lines[0].text
    with Service():
        assert locker.enter(PASSWORD + code)


def test_who_need_not_enroll_unlocks_by_the_password_alone(
        debian, store, running, start, sink, policy):
    store.enroll("bob", allow_missing=False)
    assert not start("swaylock").enter(PASSWORD)
    policy(recipes.block(SECTION, "unless sallyport.conf(5)"))
    assert start("swaylock").enter(PASSWORD)
    assert not start("swaylock").enter("wrong horse")
    assert start(XSecureLock).enter(PASSWORD) == (True, ["Password: "])
