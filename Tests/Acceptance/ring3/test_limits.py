"""Limits that the user who starts the host can set: no oracle, nothing half written."""

import os
import resource
import signal

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver, HostDied, NotStarted


def no_writes(action, limit=0):
    def set_up():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, action)
    return set_up


@pytest.mark.parametrize("limit", [0, 1904, 6000, 8191])
@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
def test_no_right_to_write_answers_right_and_wrong_alike(
        store, services, driver, sink, action, limit):
    enrollment = store.enroll()
    before = store.state().read_bytes()
    code = enrollment.code()
    with Driver(services, preexec=no_writes(action, limit)) as limited, sink.watch() as lines:
        logins = [limited.login("login", "alice", answer) for answer in
                  (code, enrollment.wrong(), enrollment.backup_codes[0])]
    assert [login.result for login in logins] == [TROUBLE] * 3
    assert store.state().read_bytes() == before
    assert all(str(store.state()) in line.text and "EFBIG" in line.text for line in lines)
    assert driver.login("login", "alice", code).result == SUCCESS


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
def test_no_right_to_write_answers_the_unknown_alike(store, services, sink, action):
    enrollment = store.enroll()
    with Driver(services, preexec=no_writes(action)) as limited:
        known = limited.login("login", "alice", enrollment.wrong())
        unknown = limited.login("login", "nobody-here", enrollment.wrong())
        unenrolled = limited.login("login", "daemon", enrollment.wrong())
    assert (unknown.result, unknown.prompts) == (known.result, known.prompts)
    assert (unenrolled.result, unenrolled.prompts) == (known.result, known.prompts)


# shows: limits
def test_at_the_edge_of_open_files_right_and_wrong_are_alike(store, services, driver, sink, figure):
    """Every limit from none to enough: a success only where a wrong code would be verified too."""
    enrollment = store.enroll()
    enough = None
    for limit in range(4, 40):
        def set_up():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        state = store.state().read_bytes()
        wrong = attempt(services, set_up, enrollment.wrong())
        if wrong != AUTH_ERR:
            assert store.state().read_bytes() == state
        right = attempt(services, set_up, enrollment.code())
        assert (wrong, right) in {(AUTH_ERR, SUCCESS)} or wrong == right != SUCCESS, limit
        if right == SUCCESS:
            enough = limit
            break
        store.unlock()
    assert enough is not None
    figure(f"RLIMIT_NOFILE: {enough} open files are enough for a login")
    assert driver.login("login", "alice", enrollment.backup_codes[0]).result == SUCCESS


def attempt(services, set_up, answer):
    """The result, or None where libpam itself could not start."""
    with Driver(services, preexec=set_up) as driver:
        try:
            return driver.login("login", "alice", answer).result
        except NotStarted:
            return None
        except HostDied as death:
            assert death.args == (127,), "more than the program loader failed"
            return None


# shows: environment
def test_a_umask_of_zero_changes_nothing(store, services, sink):
    enrollment = store.enroll()
    with Driver(services, preexec=lambda: os.umask(0)) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
    modes = [path.stat().st_mode & 0o777 for path in store.of().iterdir()]
    assert modes == [0o600] * len(modes)


# shows: environment
def test_a_hostile_environment_changes_nothing(store, services, sink, tmp_path):
    enrollment = store.enroll()
    env = {"OPENSSL_CONF": "/nonexistent", "TZ": ":/etc/shadow", "HOME": str(tmp_path),
           "SALLYPORT_STORE": "/nonexistent", "LC_ALL": "tr_TR.UTF-8", "MALLOC_PERTURB_": "165"}
    with Driver(services, env=env) as driver:
        assert driver.login("login", "alice", enrollment.wrong()).result == AUTH_ERR
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
