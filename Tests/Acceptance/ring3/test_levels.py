"""Levels of enrollment, and the account and session phases of the real module.

The table of docs/decisions.md, row by row: level, the word enroll, and the first factor before it.
"""

import re
import time

import pytest

from support.pam_driver import AUTH_ERR, ECHO_OFF, ECHO_ON, FAIL, LIVE, NULL, SUCCESS, Driver
from support.sallyport import MODULE, first_code, handed_out, our_line, reason, sallyport

DENIED = "PAM_PERM_DENIED"
IGNORED = DENIED  # libpam's word for a stack in which nobody said yes
CODE, FIRST = "Verification code: ", "Code shown by the app: "
DEMAND, OFFER = "Set it up now? [y/n]: ", "Set it up now? [y/n, Enter = later]: "
LAST = "Press Enter when you have them: "
# pam_exec asks for a password, so that PAM_AUTHTOK is set, and its program says yes to any.
ANY_PASSWORD = "auth required pam_exec.so quiet expose_authtok /bin/true"
KEY = "SSH_AUTH_INFO_0=publickey ssh-ed25519 AAAA"
FIRST_FACTORS = ["password", "key", "none"]


class Stack:
    """A service with our three lines, under a policy of its own."""

    def __init__(self, services, store, directory):
        self.services, self.store, self.policy = services, store, directory / "policy.conf"

    def set(self, policy, before="password", enroll=True, demand=False, account=True):
        self.policy.write_text(f"[default]\n{policy}\n")
        self.policy.chmod(0o644)
        words = [f"conf={self.policy}", *(["enroll"] if enroll else []), "nodelay"]
        place = f"store={self.store.directory} conf={self.policy}"
        ours = [f"account required {MODULE} {place}{' demand' if demand else ''}"] if account else []
        first = [ANY_PASSWORD] if before == "password" else []
        self.services.write(
            "sshd", *first, our_line(self.store, *words), *ours, "account required pam_permit.so",
            f"session required {MODULE}", "session required pam_permit.so")
        return {"sets": KEY} if before == "key" else {}


@pytest.fixture
def stack(services, store, tmp_path):
    store.enroll("bob")  # makes the store
    return Stack(services, store, tmp_path)


def play(services, user, *answers, **more):
    with Driver(services) as driver:
        return driver.login("sshd", user, *answers, phases=("auth", "acct", "open"), rhost="192.0.2.7",
                            **more)


def asked(login):
    return [text for style, text in login.prompts if style in (ECHO_OFF, ECHO_ON)]


# level, enroll, before -> our prompt in auth, auth, our question in account, account after "n", session
ROWS = [("refuse", enroll, before, True, AUTH_ERR, None, None)
        for enroll in (True, False) for before in FIRST_FACTORS]
ROWS += [("voluntary", enroll, before, False, None, None, SUCCESS)
         for enroll in (True, False) for before in FIRST_FACTORS]
ROWS += [("required", True, before, False, None, DEMAND, DENIED) for before in ("password", "key")]
ROWS += [("required", True, "none", True, AUTH_ERR, None, None)]
ROWS += [("required", False, before, True, AUTH_ERR, None, None) for before in FIRST_FACTORS]
ROWS += [(level, True, before, False, None, OFFER, SUCCESS)
         for level in ("offer", "remind") for before in ("password", "key")]
ROWS += [(level, enroll, before, False, None, None, SUCCESS) for level in ("offer", "remind")
         for enroll, before in [(True, "none"), *((False, before) for before in FIRST_FACTORS)]]


@pytest.mark.parametrize("level, enroll, before, decoy, auth, question, account", ROWS)
def test_the_table_of_who_is_not_enrolled(
        stack, services, level, enroll, before, decoy, auth, question, account):
    more = stack.set(f"enrollment = {level}\nremind_every = 1", before, enroll)
    answers = (["pw"] if before == "password" else []) + (["123456"] if decoy else [])
    answers += ["n"] if question else []
    login = play(services, "nobody", *answers, **more)
    ours = [text for text in asked(login) if text not in ("Password: ",)]
    assert ours == ([CODE] if decoy else []) + ([question] if question else [])
    if auth is None:
        # Where ours says neither yes nor no, the password module's yes counts, or nobody's.
        auth = SUCCESS if before == "password" or (before == "key" and question) else IGNORED
    assert login.results[0] == auth
    if auth == SUCCESS:
        assert login.results[1] == account
        assert login.results[2] == (DENIED if account == DENIED else SUCCESS)
    assert login.unused == 0


@pytest.mark.parametrize("level, enroll, before", [row[:3] for row in ROWS])
def test_the_enrolled_are_asked_whatever_the_level(stack, services, store, level, enroll, before):
    enrollment = store.enroll("alice")
    more = stack.set(f"enrollment = {level}\nremind_every = 1", before, enroll)
    answers = ["pw"] if before == "password" else []
    wrong = play(services, "alice", *answers, enrollment.wrong(), **more)
    assert wrong.results[0] == AUTH_ERR
    right = play(services, "alice", *answers, enrollment.code(), **more)
    assert right.results == [SUCCESS, SUCCESS, SUCCESS] and CODE in asked(right)


@pytest.mark.parametrize("level, question", [("required", DEMAND), ("offer", OFFER)])
@pytest.mark.parametrize("before", ["password", "key"])
def test_enrolling_in_the_login(stack, services, store, sink, level, question, before):
    more = stack.set(f"enrollment = {level}", before)
    password = ["pw"] if before == "password" else []
    typed = []

    def live(text):
        typed.append(first_code(text))
        return typed[-1]

    with sink.watch() as lines:
        login = play(services, "nobody", *password, "y", "000", LIVE, "", live=live, **more)
    assert login.results == [SUCCESS] * 3
    assert asked(login)[len(password):] == [question, FIRST, FIRST, LAST]
    changed = [line for line in lines if "enrollment changed in the login: " in line.text]
    assert [line.level for line in changed] == ["NOTICE"]
    assert ": action=enrolled user=nobody authenticator=\"phone\" backup-codes=10" in changed[0].text
    # Backup codes were shown before the last prompt, and one of them works, once.
    texts = [text for _, text in login.prompts]
    shown = next(text for text in texts if "Backup codes" in text)
    assert texts.index(shown) < texts.index(LAST)
    codes = re.findall(r"(?:\w{4}-){3}\w{4}", shown)
    handed_out.extend(codes)
    assert len(codes) == 10
    assert play(services, "nobody", *password, codes[3], **more).results == [SUCCESS] * 3
    assert play(services, "nobody", *password, codes[3], **more).results[0] == AUTH_ERR
    # The confirming code is used up.
    with sink.watch() as lines:
        assert play(services, "nobody", *password, typed[0], **more).results[0] == AUTH_ERR
    assert reason(lines) in ("replayed", "wrong-code")


@pytest.mark.parametrize("answers, count", [
    (["y", FAIL], 0), ([FAIL], 0), ([NULL], 0), ([""], 0), (["y", NULL], 0),
    (["y", "1", "2", "3", "4", ""], 0), (["what", "is", "this"], 0)])
@pytest.mark.parametrize("level", ["required", "offer"])
def test_whatever_ends_the_conversation_no_session_under_required_and_no_lockout_under_offer(
        stack, services, store, level, answers, count):
    more = stack.set(f"enrollment = {level}")
    login = play(services, "nobody", "pw", *answers, **more)
    assert login.results[0] == SUCCESS
    expected = DENIED if level == "required" else SUCCESS
    assert login.results[1:] == [expected, expected]
    assert not store.of("nobody").exists()


def test_a_connection_lost_at_the_last_prompt_leaves_an_enrollment(stack, services, store):
    more = stack.set("enrollment = required")
    play(services, "nobody", "pw", "y", LIVE, FAIL, live=first_code, **more)
    assert store.of("nobody").exists()


def test_without_an_account_line_there_is_no_session(stack, services, sink):
    more = stack.set("enrollment = required", account=False)
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", **more)
    assert login.results == [SUCCESS, SUCCESS, DENIED]
    assert "SALLYPORT_MARK" not in login.env
    assert any("account required pam_sallyport.so" in line.text for line in lines)


def test_a_mark_is_for_its_user_alone(stack, services, store, sink):
    store.enroll("alice")
    more = stack.set("enrollment = required")
    with Driver(services) as driver:
        login = driver.login("sshd", "nobody", "pw", rhost="192.0.2.7",
                             phases=("auth", "user:" + b"alice".hex(), "acct", "open"), **more)
    assert login.results == [SUCCESS, SUCCESS, DENIED, DENIED]


# shows: enroll-race
def test_two_sessions_that_are_due_at_once(stack, services, store):
    """The second one to type its code is told to log in again."""
    more = stack.set("enrollment = required")
    others = []

    def late(text):
        others.append(play(services, "nobody", "pw", "y", LIVE, "", live=first_code, **more))
        return first_code(text)

    login = play(services, "nobody", "pw", "y", LIVE, live=late, **more)
    assert others[0].results == [SUCCESS] * 3
    assert login.results == [SUCCESS, DENIED, DENIED]
    assert any("Log in again" in text for _, text in login.prompts)


def test_a_store_that_cannot_be_written_denies_under_required_only(stack, services, store):
    for level, expected in (("required", DENIED), ("offer", SUCCESS)):
        more = stack.set(f"enrollment = {level}")

        def break_it(text):
            (store.directory / "users").rename(store.directory / "away")
            return first_code(text)

        login = play(services, "nobody", "pw", "y", LIVE, live=break_it, **more)
        (store.directory / "away").rename(store.directory / "users")
        assert login.results[1:] == [expected, expected]
        assert not store.of("nobody").exists()


# -- demand

def test_demand_asks_whom_the_auth_phase_did_not_ask(stack, services, store, sink):
    enrollment = store.enroll("alice")
    stack.set("enrollment = refuse", demand=True)
    with Driver(services) as driver:
        def account(*answers, user="alice"):
            return driver.login("sshd", user, *answers, phases=("acct",), rhost="192.0.2.7")
        assert account(enrollment.wrong()).results == [DENIED]
        assert account(FAIL).results == [DENIED]
        code = enrollment.code()
        assert account(code).results == [SUCCESS]
        assert account(code).results == [DENIED]
        with sink.watch() as lines:
            assert account(user="nobody").results == [DENIED]
        assert reason(lines) == "not-enrolled"
        # Asked in the auth phase is asked.
        login = driver.login("sshd", "alice", "pw", enrollment.backup_codes[0],
                             phases=("auth", "acct", "open"), rhost="192.0.2.7")
        assert login.results == [SUCCESS] * 3
        for level in ("offer", "remind", "voluntary"):
            stack.set(f"enrollment = {level}", demand=True)
            assert account(user="nobody").results == [SUCCESS]
        stack.set("enrollment = required", demand=True)
        assert account(user="nobody").results == [DENIED]


# -- levels of one user, dates

def test_require_and_exempt_stand_above_the_level_and_below_a_refusing_rule(
        stack, services, store):
    def level(verb, *more):
        done = sallyport(verb, "--user", "nobody", "--store", store.directory, *more)
        assert done.returncode == 0, done.stderr

    level("exempt")
    for policy in ("refuse", "required", "offer"):
        more = stack.set(f"enrollment = {policy}")
        assert play(services, "nobody", "pw", **more).results == [SUCCESS] * 3
    more = stack.set("\n[rule r]\nmatch_user = nobody\nenrollment = refuse")
    assert play(services, "nobody", "pw", "1", **more).results[0] == AUTH_ERR
    level("require")
    more = stack.set("enrollment = voluntary")
    assert play(services, "nobody", "pw", "n", **more).results == [SUCCESS, DENIED, DENIED]
    level("require", "--by", "2999-01-01")
    login = play(services, "nobody", "pw", "n", **more)
    assert login.results == [SUCCESS] * 3 and OFFER in asked(login)


def test_required_from_a_date(stack, services):
    for date, question, answer in (("2999-01-01", OFFER, SUCCESS), ("2000-01-01", DEMAND, DENIED)):
        more = stack.set(f"enrollment = required\nrequired_from = {date}")
        login = play(services, "nobody", "pw", "n", **more)
        assert question in asked(login) and login.results[1] == answer


def test_every_third_login_is_reminded(stack, services):
    more = stack.set("enrollment = remind")
    for number in range(1, 7):
        login = play(services, "nobody", "pw", *(["n"] if number % 3 == 0 else []), **more)
        assert login.results == [SUCCESS] * 3
        assert (OFFER in asked(login)) == (number % 3 == 0)


# -- factors

def kinds(store, user="nobody"):
    return [entry["type"] for entry in store.status(user)["authenticators"]]


@pytest.mark.parametrize("policy, expected, codes", [
    ("", ["totp"], 10),
    ("factor_order = hotp, totp, backup_code", ["hotp"], 10),
    ("factor_totp = off", ["hotp"], 10),
    ("factor_hotp = mandatory", ["hotp"], 10),
    ("factor_hotp = mandatory\nfactor_totp = mandatory", ["totp", "hotp"], 10),
    ("minimum_factors = 3", ["totp", "hotp"], 10),
    ("minimum_factors = 3\nfactor_order = backup_code, hotp, totp", ["hotp", "totp"], 10),
    ("factor_backup_code = off", ["totp"], 0),
])
def test_the_login_sets_up_what_the_policy_wants(stack, services, store, policy, expected, codes):
    more = stack.set(f"enrollment = required\n{policy}")
    answers = ["y", *[LIVE] * len(expected), *([""] if codes else [])]
    login = play(services, "nobody", "pw", *answers, live=first_code, **more)
    assert login.results == [SUCCESS] * 3 and login.unused == 0
    assert kinds(store) == expected
    assert store.status("nobody")["backupCodes"]["left"] == codes


@pytest.mark.parametrize("level, answer, results", [
    ("required", "n", [SUCCESS, DENIED, DENIED]), ("offer", "n", [SUCCESS] * 3),
    ("required", "y", [SUCCESS] * 3), ("offer", "y", [SUCCESS] * 3)])
def test_an_incomplete_enrollment_is_asked_for_what_it_has_and_then_completed(
        stack, services, store, sink, level, answer, results):
    enrollment = store.enroll("nobody")
    more = stack.set(f"enrollment = {level}\nfactor_hotp = mandatory")
    rest = [LIVE] if answer == "y" else []
    with sink.watch() as lines:
        login = play(services, "nobody", "pw", enrollment.code(), answer, *rest, live=first_code, **more)
    changed = [(line.level, line.text.partition("login: ")[2]) for line in lines
               if "enrollment changed" in line.text]
    assert changed == ([("NOTICE", 'action=added user=nobody authenticator="counter" backup-codes=0'
                         " origin=192.0.2.7")] if answer == "y" else [])
    assert login.results == results
    assert kinds(store) == (["totp", "hotp"] if answer == "y" else ["totp"])
    # What there was stays good, backup codes included.
    assert store.status("nobody")["backupCodes"]["left"] == 10


def test_without_the_word_enroll_an_incomplete_enrollment_does(stack, services, store):
    enrollment = store.enroll("nobody")
    more = stack.set("enrollment = required\nfactor_hotp = mandatory", enroll=False)
    assert play(services, "nobody", "pw", enrollment.code(), **more).results == [SUCCESS] * 3


# -- remembered origins, hints, texts

def test_an_origin_is_remembered_for_its_service_and_its_time(alice, stack, services, store, sink):
    enrollment = store.enroll("alice")
    more = stack.set("remember = 1 h", "key")
    assert play(services, "alice", enrollment.code(), **more).results == [SUCCESS] * 3
    with sink.watch() as lines:
        again = play(services, "alice", **more)
    assert again.results == [SUCCESS] * 3 and asked(again) == []
    assert any("this origin is remembered" in line.text for line in lines)
    with Driver(services) as driver:
        for rhost in ("192.0.2.8", "example.org", None):
            other = driver.login("sshd", "alice", "1", rhost=rhost, **more)
            assert other.result == AUTH_ERR
        late = driver.login("sshd", "alice", "1", rhost="192.0.2.7", at=int(time.time()) + 3700, **more)
        assert late.result == AUTH_ERR
    # A shorter time holds at once; so does forgetting.
    more = stack.set("remember = 0", "key")
    assert play(services, "alice", "1", **more).results[0] == AUTH_ERR
    more = stack.set("remember = 1 h", "key")
    assert asked(play(services, "alice", **more)) == []
    assert sallyport("forget", "--user", "alice", "--store", store.directory).returncode == 0
    assert play(services, "alice", "1", **more).results[0] == AUTH_ERR


def test_a_grant_from_the_future_is_forgotten(stack, services, store):
    enrollment = store.enroll("alice")
    more = stack.set("remember = 1 h", "key")
    ahead = int(time.time()) + 600
    code = enrollment.code(at=ahead)
    assert play(services, "alice", code, at=ahead, **more).results == [SUCCESS] * 3
    assert asked(play(services, "alice", "1", **more)) == [CODE]
    assert asked(play(services, "alice", "1", at=ahead, **more)) == [CODE]


def test_a_remembered_origin_that_guesses_is_asked(stack, services, store):
    enrollment = store.enroll("alice")
    more = stack.set("remember = 1 h", "key")
    assert play(services, "alice", enrollment.code(), **more).results == [SUCCESS] * 3
    never = stack.set("remember = 0", "key")
    for _ in range(20):
        assert play(services, "alice", enrollment.wrong(), **never).results[0] == AUTH_ERR
    more = stack.set("remember = 1 h", "key")
    assert asked(play(services, "alice", "1", **more)) == [CODE]


def test_hints_name_the_authenticators_of_the_enrolled_only(stack, services, store):
    store.enroll("alice")
    store.add("yubikey", "alice", type="hotp")
    more = stack.set("hints = yes", "key")
    assert asked(play(services, "alice", "1", **more)) == ["Verification code (phone, yubikey): "]
    assert asked(play(services, "nobody", "1", **more)) == [CODE]


def test_few_backup_codes_are_told_after_the_login_and_not_in_silence(stack, services, store):
    codes = store.enroll("alice").backup_codes
    more = stack.set("", "key")
    login = play(services, "alice", codes[0], **more)
    texts = [text for _, text in login.prompts]
    assert len(texts) == 2 and texts[0] == CODE and texts[1].startswith("9 backup codes left")
    assert not any(name.startswith("SALLYPORT") for name in login.env)
    silent = play(services, "alice", codes[1], silent=1, **more)
    assert [text for _, text in silent.prompts] == [CODE]
