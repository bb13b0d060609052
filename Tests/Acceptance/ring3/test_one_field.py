"""use_first_pass, try_first_pass and forward_pass in all eight combinations, as a table.

pam_set_items stands for the module that asked before, pam_get_items for the one that comes after.
"""

import itertools
import os

import pytest

from support.pam_driver import AUTH_ERR, ECHO_OFF, SUCCESS, Driver
from support.sallyport import our_line, reason

ITEMS = f"/usr/lib/{os.uname().machine}-linux-gnu/pam_wrapper"
CODE = [[ECHO_OFF, "Verification code: "]]
BOTH = [[ECHO_OFF, "Password & verification code: "]]
OLD, NEW = "horse 42 ", "staple 7"  # digits and blanks inside belong to the password

# What stands in the field before us: the password, then a code. None: nobody has asked.
FIELDS = {"nothing": None, "password": OLD, "code": "RIGHT", "both": OLD + "RIGHT",
          "wrong code": "WRONG", "password, wrong code": OLD + "WRONG"}
UNTOUCHED = object()

# For each combination and field: the prompts, the result if a right code is typed at them, and
# what the next module finds as the password.
ASKS = {field: (CODE, SUCCESS, UNTOUCHED) for field in FIELDS}
USES = {field: ([], AUTH_ERR, UNTOUCHED) for field in FIELDS} | {"code": ([], SUCCESS, UNTOUCHED)}
TRIES = ASKS | {"code": ([], SUCCESS, UNTOUCHED)}
SPLITS = {field: (BOTH, SUCCESS, NEW) for field in FIELDS}
USES_AND_SPLITS = {
    "nothing": ([], AUTH_ERR, ""), "password": ([], AUTH_ERR, OLD), "code": ([], SUCCESS, ""),
    "both": ([], SUCCESS, OLD), "wrong code": ([], AUTH_ERR, ""),
    "password, wrong code": ([], AUTH_ERR, OLD)}
TRIES_AND_SPLITS = SPLITS | {"code": ([], SUCCESS, ""), "both": ([], SUCCESS, OLD)}
TABLE = {
    # What equals the field is the same answer once more, and not verified.
    "": ASKS | {"code": (CODE, AUTH_ERR, UNTOUCHED)},
    "use_first_pass": USES,
    "try_first_pass": TRIES,
    "use_first_pass try_first_pass": TRIES,  # the later of the two counts
    "try_first_pass use_first_pass": USES,
    "forward_pass": SPLITS,
    "use_first_pass forward_pass": USES_AND_SPLITS,
    "try_first_pass forward_pass": TRIES_AND_SPLITS,
    "use_first_pass try_first_pass forward_pass": TRIES_AND_SPLITS,
    "try_first_pass use_first_pass forward_pass": USES_AND_SPLITS,
}


def play(services, store, words, field, typed):
    """One attempt; the login, and the password that it left behind."""
    before = [] if field is None else [f"auth required {ITEMS}/pam_set_items.so"]
    services.write("field", *before, our_line(store, "nodelay", *words.split()),
                   f"auth optional {ITEMS}/pam_get_items.so")
    with Driver(services, env={} if field is None else {"PAM_AUTHTOK": field}) as driver:
        login = driver.login("field", "alice", *([typed] if typed else []))
    return login, login.env.get("PAM_AUTHTOK")


def filled(field, enrollment):
    if field is None:
        return None
    return field.replace("RIGHT", enrollment.code()).replace("WRONG", enrollment.wrong())


def test_the_table_has_all_eight():
    words = ("use_first_pass", "try_first_pass", "forward_pass")
    subsets = [set(some) for count in range(4) for some in itertools.combinations(words, count)]
    assert len(subsets) == 8
    assert all(some in [set(combination.split()) for combination in TABLE] for some in subsets)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("words", TABLE)
def test_each_combination_answers_as_the_table_says(store, services, words, field):
    prompts, result, after = TABLE[words][field]
    enrollment = store.enroll()
    before = filled(FIELDS[field], enrollment)
    typed = (NEW if "forward_pass" in words else "") + enrollment.code() if prompts else None
    login, password = play(services, store, words, before, typed)
    assert (login.result, login.prompts, login.unused) == (result, prompts, 0)
    assert password == (before if after is UNTOUCHED else after)


@pytest.mark.parametrize("words", TABLE)
def test_a_wrong_code_is_refused_after_one_prompt_at_most(store, services, words, sink):
    enrollment = store.enroll()
    with sink.watch() as lines:
        login, password = play(services, store, words, OLD, NEW + enrollment.wrong()
                               if "forward_pass" in words else enrollment.wrong())
    prompts = TABLE[words]["password"][0]
    assert (login.result, login.prompts) == (AUTH_ERR, prompts)
    assert reason(lines) == ("wrong-code" if prompts else "malformed")
    if "forward_pass" in words:
        assert password == (NEW if prompts else OLD)


@pytest.mark.parametrize("words", TABLE)
def test_who_is_not_enrolled_meets_the_same_prompts(store, services, words):
    store.enroll("bob")
    for field in (None, OLD, OLD + "123456"):
        login, _ = play(services, store, words, field, NEW + "123456")
        assert login.result == AUTH_ERR
        assert login.prompts == TABLE[words]["nothing" if field is None else "password"][0]
