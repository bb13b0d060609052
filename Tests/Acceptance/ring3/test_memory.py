"""What is in the memory of a login: at the moment of its flush, and after its answer."""

import base64
import hashlib
import random

import pytest

from support.traces import PART, Traces, keyed_states, sha1_block
from support.pam_driver import AUTH_ERR, SUCCESS, Barrier, Driver, Reply
from support.sallyport import our_line

pytestmark = pytest.mark.decisive

PASSWORD = "correct horse battery"
CHANCE = random.Random(20261122)
LONG = "".join(CHANCE.choice("ghjkmnpqrstvwxyz") for _ in range(300))


def spread(code):
    """The code among blanks and hyphens, which do not count."""
    filling = ["".join(CHANCE.choice(" -") for _ in range(30)) for _ in code]
    return "".join(digit + some for digit, some in zip(code, filling, strict=True))


# What is typed (eight digits, so that none are there by luck), and the verdict.
ATTEMPTS = {
    "a right code": (lambda of: of.code(), SUCCESS),
    "a wrong code": (lambda of: of.wrong(), AUTH_ERR),
    "a backup code": (lambda of: of.backup_codes[0], SUCCESS),
    "a wrong backup code": (lambda of: "ZZZZ-YYYY-XXXX-WWWW", AUTH_ERR),
    "a malformed response": (lambda of: f"0{of.code()}-not-a-code", AUTH_ERR),
    "password and code": (lambda of: f"{PASSWORD}{of.code()}", SUCCESS),
    # free overwrites the first 16 bytes of what it takes back: of these there is more.
    "a long right response": (lambda of: spread(of.code()), SUCCESS),
    "a long backup code": (lambda of: spread(of.backup_codes[0].replace("-", "")), SUCCESS),
    "a long malformed response": (lambda of: LONG, AUTH_ERR),
    "a long password and code": (lambda of: f"{LONG}{of.code()}", SUCCESS),
}
ONE_FIELD = ["password and code", "a long password and code"]
SEPARATE = [what for what in ATTEMPTS if what not in ONE_FIELD]


def traces(enrollment, response):
    secret = base64.b32decode(enrollment.secret)
    values = {"secret": secret, "secret in base32": enrollment.secret.encode(),
              "response": response.encode(), **keyed_states(secret)}
    for number, code in enumerate(enrollment.backup_codes):
        values[f"backup code {number}"] = code.encode()
        values[f"backup code {number} without hyphens"] = code.replace("-", "").encode()
    # Any twelve bytes of a long one: there are few ways to write blanks and hyphens.
    return Traces(12 if len(response) > 100 else PART, **{
        name: value for name, value in values.items() if len(value) >= 12 or len(response) <= 100})


@pytest.fixture
def login(request, store, services, sink):
    """Plays one attempt; what was found at its flush and after its answer."""
    services.write("login", our_line(store, "nodelay", *getattr(request, "param", ())),
                   "account required pam_permit.so")

    def play(what, user="alice"):
        enrollment = store.enroll(digits=8)
        typed, expected = ATTEMPTS[what]
        response = typed(enrollment)
        looked_for = traces(enrollment, response)
        barrier = Barrier()
        with Driver(services, barrier) as driver:
            driver.send("login", user, response, flush=1)
            driver.wait_for("flush")
            at_flush = looked_for.found(driver.process.pid)
            barrier.release(1)
            verdict = driver.verdict()
            after = looked_for.found(driver.process.pid)
        barrier.close()
        assert verdict.result == (expected if user == "alice" else AUTH_ERR)
        return at_flush, after
    return play


def test_the_block_function_of_this_test_is_sha1s():
    padded = b"abc\x80".ljust(63, b"\0") + bytes([24])
    digest = b"".join(word.to_bytes(4, "big") for word in sha1_block(padded))
    assert digest == hashlib.sha1(b"abc").digest()


# shows: wiped, in-memory
@pytest.mark.parametrize("what", SEPARATE)
def test_after_the_answer_nothing_of_response_secret_or_backup_codes_is_in_memory(login, what):
    _, after = login(what)
    assert after == {}


# shows: wiped, in-memory
@pytest.mark.parametrize("what", ONE_FIELD)
@pytest.mark.parametrize("login", [("forward_pass",)], indirect=True)
def test_after_the_answer_nothing_of_password_and_code_in_one_field_is_in_memory(login, what):
    _, after = login(what)
    if what == "a long password and code":
        # libpam 1.7 reads the password after us, before it clears it, and leaves 32 bytes at a time
        # in registers, which the driver keeps in its own memory.
        after = {name: where for name, where in after.items() if "/driver, " not in where}
    assert after == {}


# shows: wiped
@pytest.mark.parametrize("what", ["a right code", "a backup code"])
def test_for_somebody_who_is_not_enrolled_nothing_stays_either(login, what):
    _, after = login(what, user="nobody-here")
    assert after == {}


# shows: in-memory
def test_while_the_prompt_waits_memory_holds_the_secret_alone(store, services, sink):
    enrollment = store.enroll(digits=8)
    looked_for = traces(enrollment, enrollment.code())
    barrier = Barrier()
    with Driver(services, barrier) as driver:
        driver.send("login", "alice", Reply.at_barrier(enrollment.code()))
        driver.wait_for_prompt()
        assert set(looked_for.found(driver.process.pid)) == {"secret"}
        barrier.release(1)
        assert driver.verdict().result == SUCCESS
    barrier.close()


# shows: in-memory
@pytest.mark.parametrize("what", SEPARATE[:4])
def test_at_the_flush_memory_holds_the_secret_and_the_response_once_more(login, what, figure):
    """What the threat model says of a core dump taken in that moment. Without what is found here,
    the tests above would have nothing to miss."""
    at_flush, _ = login(what)
    assert {"secret", "response"} <= set(at_flush)
    assert set(at_flush) <= {"secret", "response", "backup code 0", "backup code 0 without hyphens"}
    figure(f"in memory at the flush of {what}: {', '.join(sorted(at_flush))}")
