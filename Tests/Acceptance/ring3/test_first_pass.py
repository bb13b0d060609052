"""The first_pass words beside the real pam_unix and pam_wrapper's probes."""

import os

import pytest

from support.hosts import add_account, remove_account
from support.pam_driver import AUTH_ERR, ECHO_OFF, SUCCESS, Barrier, Driver, Reply
from support.sallyport import aligned_now, our_line, reason, sallyport, unlike

PASSWORD = "wrong horse 42 "  # digits and a blank at its end: part of the password
ITEMS = f"/usr/lib/{os.uname().machine}-linux-gnu/pam_wrapper"
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


@pytest.fixture
def fred():
    """His password could be a code."""
    add_account("fred", 3005, "482913")
    yield "fred"
    remove_account("fred")


@pytest.mark.decisive
@pytest.mark.parametrize("said", [None, "SSH_AUTH_INFO_0="], ids=["OpenSSH 9.2", "OpenSSH 10"])
def test_a_password_of_digits_that_answers_every_prompt_never_locks_its_owner_out(
        said, fred, driver, store, services, sink):
    """As sshd's method `password` does, and clients that know one answer."""
    enrollment = store.enroll(fred, allow_missing=False)
    services.write("sshd", "auth required pam_unix.so nodelay", our_line(store, "nodelay"))
    for _ in range(22):
        with sink.watch() as lines:
            login = driver.login("sshd", fred, "482913", "482913", rhost="192.0.2.1", sets=said)
        assert (login.result, login.prompts) == (AUTH_ERR, UNIX + OURS)
        assert reason(lines) == "malformed" and "PasswordAuthentication" in lines[0].text
    login = driver.login("sshd", fred, "482913", enrollment.code(), rhost="192.0.2.1", sets=said)
    assert login.result == SUCCESS


def test_a_password_alone_is_no_code(driver, store, stacks):
    store.enroll()
    login = driver.login("use_first_pass", "alice", PASSWORD)
    assert (login.result, login.prompts) == (AUTH_ERR, UNIX)


@pytest.mark.decisive
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


# shows: one-field-whole
def test_after_a_refusal_the_password_part_is_handed_on_all_the_same(driver, store, stacks):
    enrollment = store.enroll()
    for user in ("alice", "daemon"):
        login = driver.login("forward", user, PASSWORD + enrollment.wrong())
        assert (login.result, login.env["PAM_AUTHTOK"]) == (AUTH_ERR, PASSWORD)


def test_a_response_without_a_code_is_handed_on_whole(driver, store, stacks):
    store.enroll()
    login = driver.login("forward-first", "alice", "no code in it")
    assert (login.result, login.env["PAM_AUTHTOK"]) == (AUTH_ERR, "no code in it")


DIGITS = "horse 482913"  # a password that ends in what could be a code
UNIX_LINE = "auth required pam_unix.so nodelay use_first_pass"
DEBIAN = ["auth [success=1 default=ignore] pam_unix.so nodelay nullok try_first_pass",
          "auth requisite pam_deny.so", "auth required pam_permit.so"]
LEVELS = ["enrollment = refuse", "enrollment = required", "enrollment = offer",
          "enrollment = remind", "enrollment = voluntary", "state = disabled"]


@pytest.fixture
def dora():
    add_account("dora", 3004, DIGITS)
    yield "dora"
    remove_account("dora")


# shows: one-field-whole
@pytest.mark.parametrize("who", ["enrolled", "not enrolled", "exempt", "required"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("after", [[UNIX_LINE], DEBIAN], ids=["pam_unix", "Debian's common-auth"])
def test_one_field_in_both_forms_of_the_recipe(
        services, store, dora, tmp_path, after, level, who):
    """Level, enrollment and what is typed: one prompt, the right people in, nobody else."""
    policy = tmp_path / "policy.conf"
    policy.write_text(f"[default]\n{level}\n")
    ours = our_line(store, "nodelay", "forward_pass", f"conf={policy}")
    services.write("one-field", ours, *after)
    store.enroll("bob")  # makes the store
    enrollment = store.enroll(dora) if who == "enrolled" else None
    if who in ("exempt", "required"):
        verb = "exempt" if who == "exempt" else "require"
        assert sallyport(verb, "--user", dora, "--store", store.directory).returncode == 0
    code, backup = (enrollment.code(), enrollment.backup_codes[0]) if enrollment else (
        "123456", "ABCD-EFGH-JKMN-PQRS")
    strict = "refuse" in level or ("required" in level and who != "exempt") or who == "required"
    wanted = level != "state = disabled" and (who == "enrolled" or (strict and who != "exempt"))
    table = [
        (DIGITS, not wanted), (DIGITS + code, wanted and enrollment is not None),
        (DIGITS + code, False),  # used
        (DIGITS + backup, wanted and enrollment is not None), ("horse" + backup, False),
        ("horse 482914", False), (code, False), ("", False)]
    with Driver(services) as driver:
        for number, (typed, gets_in) in enumerate(table):
            login = driver.login("one-field", dora, typed)
            assert (login.result == SUCCESS, login.unused, login.unexpected) == (gets_in, 0, 0), number
            assert login.prompts == [[ECHO_OFF, "Password & verification code: "]], number


def test_a_code_alone_forwards_no_password_and_gets_nobody_in(driver, store, stacks):
    enrollment = store.enroll()
    assert driver.login("forward", "alice", enrollment.code()).result != SUCCESS


@pytest.fixture
def given(services, store):
    """A service in which an earlier module has the password that stands in PAM_AUTHTOK."""
    earlier = f"auth required {ITEMS}/pam_set_items.so"
    services.write("given", earlier, our_line(store, "nodelay", "try_first_pass"))


@pytest.mark.decisive
def test_a_password_that_looks_like_a_code_never_locks_its_owner_out(services, store, given, sink):
    enrollment, now = store.enroll(), aligned_now()
    password = enrollment.wrong(now)
    with Driver(services, env={"PAM_AUTHTOK": password}) as driver:
        for turn in range(60):
            at = now + 600 * turn
            if password in enrollment.codes(41, at - 600):
                continue
            login = driver.login("given", "alice", enrollment.code(at), at=at)
            assert (login.result, login.prompts) == (SUCCESS, OURS), turn
    assert store.status()["wrongCodes"]["other"]["left"] == 20


# shows: first-pass
@pytest.mark.first
def test_a_thousand_first_passes_killed_at_the_prompt_are_verified_twenty_times(
        services, store, given, sink):
    enrollment, now = store.enroll(), aligned_now()
    barrier = Barrier()
    with sink.watch() as lines:
        for _ in range(1000):
            host = Driver(services, barrier, env={"PAM_AUTHTOK": enrollment.wrong(now)})
            host.send("given", "alice", Reply.at_barrier(""), at=now)
            host.wait_for_prompt()
            host.process.kill()
            host.process.communicate()
    barrier.close()
    reasons = [reason([line]) for line in lines]
    assert {name: reasons.count(name) for name in set(reasons)} == {
        "wrong-code": 20, "throttled": 980}
    status = store.status()["wrongCodes"]
    assert (status["known"]["left"], status["other"]["left"]) == (20, 0)


@pytest.mark.parametrize("answer", ["wrong", "again", "replayed", "malformed"])
def test_a_first_pass_stays_charged_where_the_answer_is_refused(
        services, store, given, answer):
    enrollment, now = store.enroll(), aligned_now()
    with Driver(services, env={"PAM_AUTHTOK": enrollment.wrong(now)}) as driver:
        login = driver.login("given", "alice", enrollment.code(now), at=now)
        assert login.result == SUCCESS
        other = unlike({enrollment.wrong(now), *enrollment.codes(41, now - 600)})
        typed = {"again": enrollment.wrong(now), "wrong": other, "replayed": enrollment.code(now),
                 "malformed": "hello"}[answer]
        assert driver.login("given", "alice", typed, at=now).result == AUTH_ERR
    left = store.status()["wrongCodes"]["other"]["left"]
    assert left == (18 if answer == "wrong" else 19)
