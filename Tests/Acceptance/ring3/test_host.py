"""What the host gives to the module and finds again afterwards: an empty item, and errno."""

import pytest

from support.pam_driver import AUTH_ERR, BUILT, Driver
from support.sallyport import MODULE, first_code, our_line
from test_levels import KEY, LIVE

ERRNO = f"{BUILT}/errno.so"
LOST = "PAM_CRED_INSUFFICIENT"


@pytest.mark.parametrize("rhost", [None, ""])
def test_an_empty_remote_host_is_this_machine(driver, store, sink, rhost):
    enrollment = store.enroll()
    with sink.watch() as lines:
        assert driver.login("login", "alice", enrollment.wrong(), rhost=rhost).result == AUTH_ERR
    assert "origin=local budget=known:19," in lines[0].text


def checked(services, store, policy, *words):
    """Our three lines, each between two that compare errno; the second line's answer counts."""
    ours = our_line(store, f"conf={policy}", "nodelay", *words, control="optional")
    place = f"store={store.directory} conf={policy}"
    services.write(
        "sshd",
        f"auth required {ERRNO} set", ours, f"auth required {ERRNO} check",
        f"account required {ERRNO} set", f"account optional {MODULE} {place}",
        f"account required {ERRNO} check",
        f"session required {ERRNO} set", f"session optional {MODULE}",
        f"session required {ERRNO} check")


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.conf"
    path.write_text("[default]\nenrollment = required\n")
    return path


PHASES = ("auth", "acct", "open")


def test_errno_is_as_it_was_whatever_the_login_comes_to(services, store, policy):
    enrollment = store.enroll()
    checked(services, store, policy, "enroll")
    with Driver(services) as driver:
        def results(user, *answers, **more):
            return driver.login("sshd", user, *answers, phases=PHASES, rhost="192.0.2.7",
                                **more).results
        assert LOST not in results("alice", enrollment.code())
        assert LOST not in results("alice", enrollment.wrong())
        assert LOST not in results("nobody-here", "123456")
        assert LOST not in results("daemon", "y", LIVE, "", sets=KEY, live=first_code)
        policy.write_text("nonsense")
        assert LOST not in results("alice", enrollment.wrong())
        store.state().chmod(0o644)
        assert LOST not in results("alice", enrollment.wrong())


def test_the_module_that_compares_errno_sees_a_change(services):
    services.write("sshd", f"auth required {ERRNO} check", "account required pam_permit.so")
    with Driver(services) as driver:
        assert driver.login("sshd", "alice").result == LOST
