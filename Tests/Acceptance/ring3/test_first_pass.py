"""The first_pass words beside the real pam_unix and pam_wrapper's probes."""

import pytest

from hosts import add_account, remove_account
from pam_driver import AUTH_ERR, ECHO_OFF, SUCCESS, Driver
from sallyport import our_line

PASSWORD = "wrong horse 42 "  # digits and a blank at its end: part of the password
ITEMS = "/usr/lib/x86_64-linux-gnu/pam_wrapper"
OURS = [[ECHO_OFF, "Verification code: "]]
UNIX = [[ECHO_OFF, "Password: "]]


@pytest.fixture(scope="module", autouse=True)
def account():
    """alice in the private machine's own /etc."""
    add_account("alice", 3001, PASSWORD)
    yield
    remove_account("alice")


@pytest.fixture
def stacks(services, store):
    unix = "auth required pam_unix.so nodelay"
    probe = f"auth optional {ITEMS}/pam_get_items.so"
    for word in ("use_first_pass", "try_first_pass"):
        services.write(word, unix, our_line(store, "nodelay", word), probe)
        services.write(f"{word}-alone", our_line(store, "nodelay", word), probe)
    ours = our_line(store, "nodelay", "forward_pass")
    services.write("forward", ours, f"{unix} use_first_pass", probe)
    services.write("forward-first", ours, probe)


@pytest.mark.parametrize("word", ["use_first_pass", "try_first_pass"])
@pytest.mark.parametrize("password, forward", [("", []), (PASSWORD, ["forward_pass"])],
                         ids=["code alone", "with a password before it"])
def test_the_code_is_taken_from_the_field_of_an_earlier_module(
        store, stacks, services, word, password, forward):
    """pam_set_items stands for a module that asked first."""
    enrollment = store.enroll()
    earlier = f"auth required {ITEMS}/pam_set_items.so"
    services.write("given", earlier, our_line(store, "nodelay", word, *forward))
    code = enrollment.code()
    with Driver(services, env={"PAM_AUTHTOK": password + code}) as driver:
        login = driver.login("given", "alice")
        assert (login.result, login.prompts) == (SUCCESS, [])
        replayed = driver.login("given", "alice", "")
        assert replayed.result == AUTH_ERR


def test_a_password_alone_is_no_code(driver, store, stacks):
    store.enroll()
    login = driver.login("use_first_pass", "alice", PASSWORD)
    assert (login.result, login.prompts) == (AUTH_ERR, UNIX)


def test_use_first_pass_never_prompts(driver, store, stacks):
    store.enroll()
    login = driver.login("use_first_pass-alone", "alice")
    assert (login.result, login.prompts) == (AUTH_ERR, [])


def test_try_first_pass_prompts_when_there_is_no_code_in_the_field(driver, store, stacks):
    enrollment = store.enroll()
    login = driver.login("try_first_pass-alone", "alice", enrollment.code())
    assert (login.result, login.prompts) == (SUCCESS, OURS)
    login = driver.login("try_first_pass", "alice", PASSWORD, enrollment.backup_codes[0])
    assert (login.result, login.prompts) == (SUCCESS, UNIX + OURS)


@pytest.mark.parametrize("blank", ["", " "])
def test_forward_pass_splits_a_password_and_a_code_in_one_field(driver, store, stacks, blank):
    enrollment = store.enroll()
    login = driver.login("forward", "alice", PASSWORD + enrollment.code() + blank)
    assert (login.result, len(login.prompts)) == (SUCCESS, 1)
    assert login.env["PAM_AUTHTOK"] == PASSWORD


def test_forward_pass_takes_a_backup_code_with_its_hyphens(driver, store, stacks):
    code = store.enroll().backup_codes[0]
    assert driver.login("forward", "alice", PASSWORD + code).result == SUCCESS
    assert driver.login("forward", "alice", PASSWORD + code).result == AUTH_ERR


def test_forward_pass_refuses_when_either_part_is_wrong(driver, store, stacks):
    enrollment = store.enroll()
    assert driver.login("forward", "alice", PASSWORD + enrollment.wrong()).result == AUTH_ERR
    assert driver.login("forward", "alice", "guessed" + enrollment.code()).result == AUTH_ERR
    assert driver.login("forward", "alice", PASSWORD).result == AUTH_ERR
    assert driver.login("forward", "alice", enrollment.backup_codes[0]).result == AUTH_ERR


def test_after_a_refusal_the_password_part_is_handed_on_all_the_same(driver, store, stacks):
    enrollment = store.enroll()
    for user in ("alice", "daemon"):
        login = driver.login("forward", user, PASSWORD + enrollment.wrong())
        assert (login.result, login.env["PAM_AUTHTOK"]) == (AUTH_ERR, PASSWORD)


def test_a_response_without_a_code_is_handed_on_whole(driver, store, stacks):
    store.enroll()
    login = driver.login("forward-first", "alice", "no code in it")
    assert (login.result, login.env["PAM_AUTHTOK"]) == (AUTH_ERR, "no code in it")


def test_a_code_alone_forwards_no_password_and_gets_nobody_in(driver, store, stacks):
    enrollment = store.enroll()
    assert driver.login("forward", "alice", enrollment.code()).result != SUCCESS
