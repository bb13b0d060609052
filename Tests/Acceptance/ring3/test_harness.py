"""The instruments themselves, with modules of Linux-PAM: what they show must be there."""

import syslog

from support.pam_driver import AUTH_ERR, ECHO_OFF, FAIL, NO_ARRAY, NULL, SUCCESS, Crowd


# shows: store-closed
def test_the_driver_tells_yes_from_no(driver, services):
    services.write("yes", "auth required pam_permit.so")
    services.write("no", "auth required pam_deny.so")
    assert driver.login("yes", "alice").result == SUCCESS
    assert driver.login("no", "alice").result == AUTH_ERR


def test_the_driver_shows_prompts_and_counts_answers(driver, services):
    services.write("unix", "auth required pam_unix.so nodelay")
    login = driver.login("unix", "nobody-here", "x", "y")
    assert login.prompts == [[ECHO_OFF, "Password: "]]
    assert (login.unused, login.unexpected) == (1, 0)
    assert driver.login("unix", "nobody-here").unexpected == 1


def test_the_driver_breaks_a_conversation_in_three_ways(driver, services):
    services.write("unix", "auth required pam_unix.so nodelay")
    for reply in (NULL, NO_ARRAY, FAIL):
        assert driver.login("unix", "daemon", reply).result != SUCCESS


def test_the_barrier_holds_every_driver_until_all_were_prompted(services):
    services.write("ask", "auth optional pam_unix.so nodelay", "auth required pam_permit.so")
    with Crowd(services, 4) as crowd:
        results = crowd.race([(("ask", "daemon", "x"), {})] * 4)
    assert [login.result for login in results] == [SUCCESS] * 4


def test_the_sink_hears_what_is_logged(sink):
    start = len(sink.lines)
    syslog.openlog("probe", 0, syslog.LOG_AUTHPRIV)
    syslog.syslog(syslog.LOG_NOTICE, "pam_sallyport(probe:auth): heard")
    sink.flush()
    assert [(line.level, line.ours) for line in sink.lines[start:]] == [("NOTICE", True)]
