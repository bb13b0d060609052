"""Whatever is typed at the prompt: forgiven where a person would expect it, refused else."""

import base64
import os

import pytest

from support.pam_driver import AUTH_ERR, FAIL, NO_ARRAY, NULL, SUCCESS, Driver
from support.sallyport import reason

FORGIVEN = {
    "a blank in the middle": lambda c: f"{c[:3]} {c[3:]}",
    "a hyphen in the middle": lambda c: f"{c[:3]}-{c[3:]}",
    "blanks behind": lambda c: f"{c}   ",
    "blanks before": lambda c: f"  {c}",
    "blanks everywhere": lambda c: " ".join(c),
    "digits of full width": lambda c: "".join(chr(0xFF10 + int(d)) for d in c),
    "Arabic digits": lambda c: "".join(chr(0x660 + int(d)) for d in c),
    "what follows a NUL, which no C string can carry": lambda c: c.encode() + b"\0junk",
}


# shows: digits
@pytest.mark.parametrize("spelling", FORGIVEN)
def test_a_right_code_is_recognised_with(driver, store, spelling):
    code = store.enroll().code()
    assert driver.login("login", "alice", FORGIVEN[spelling](code)).result == SUCCESS


MALFORMED = {
    "nothing": lambda c: "",
    "blanks": lambda c: "   ",
    "64 kB of digits": lambda c: "1" * 65536,
    "64 kB behind the right code": lambda c: c + "0" * 65530,
    "64 kB of blanks and the right code": lambda c: " " * 65530 + c,
    "one digit short": lambda c: c[:5],
    "one digit more": lambda c: c + "0",
    "digits of no writing": lambda c: "".join(chr(0x2460 + int(d)) for d in c),
    "broken UTF-8": lambda c: c.encode() + b"\xff\xfe",
    "every control character": lambda c: bytes(range(1, 32)),
    "a newline in the code": lambda c: f"{c[:3]}\n{c[3:]}",
    "an escape sequence": lambda c: f"\x1b[2J{c}",
    "a format string": lambda c: "%s%n%s%n",
    "a sign": lambda c: f"+{c}",
    "hexadecimal": lambda c: "0x1e240",
    "a NUL before everything": lambda c: b"\0" + c.encode(),
    "sshd's password for a forbidden root": lambda c: b"\b\n\r\x7fINCORRECT",
}


# shows: odd-response
@pytest.mark.parametrize("form", MALFORMED)
def test_malformed_is_refused_and_costs_nothing(driver, store, sink, form):
    enrollment = store.enroll()
    response = MALFORMED[form](enrollment.code())
    for _ in range(25):  # more than the bucket holds
        with sink.watch() as lines:
            login = driver.login("login", "alice", response)
        assert (login.result, reason(lines), lines[0].level) == (AUTH_ERR, "malformed", "INFO")
        assert len(lines[0].text) < 1024 and lines[0].text.isprintable()
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


# shows: odd-response
@pytest.mark.parametrize("reply", [NULL, NO_ARRAY, FAIL], ids=["NULL", "no-array", "failing"])
def test_a_broken_conversation_is_no_login(driver, store, sink, reply):
    enrollment = store.enroll()
    assert driver.login("login", "alice", reply).result == "PAM_CONV_ERR"
    assert driver.login("login", "alice", enrollment.code()).result == SUCCESS


# shows: forged-line, hostile-uri
@pytest.mark.parametrize("user", [
    "../alice", "/alice", ".alice", "-alice", "al/ice", "alice\n", "\x1b[31malice", "a" * 256, "",
], ids=lambda user: ascii(user)[:20])
def test_a_hostile_user_name_gets_a_refusal_and_a_clean_log_line(driver, store, sink, user):
    store.enroll()
    with sink.watch() as lines:
        login = driver.login("login", user or "\x01", "123456")
    assert login.result in (AUTH_ERR, "PAM_USER_UNKNOWN", "PAM_AUTHINFO_UNAVAIL")
    assert lines and all(line.text.isprintable() and len(line.text) < 2048 for line in lines)


# shows: forged-line
def test_the_remote_hosts_name_cannot_forge_a_log_line(driver, store, sink):
    enrollment = store.enroll()
    with sink.watch() as lines:
        driver.login("sshd", "alice", enrollment.wrong(),
                     rhost="h\nreason=x user=root \x1b[2J" * 40)
    assert len(lines) == 1 and lines[0].text.isprintable() and len(lines[0].text) < 2048


def test_a_second_user_on_the_same_handle_is_verified_by_his_own_enrollment(driver, store):
    alice, bob = store.enroll("alice"), store.enroll("bob")
    phases = ("auth", "user:" + b"bob".hex(), "auth")
    login = driver.login("login", "alice", alice.code(), alice.backup_codes[0], phases=phases)
    assert login.results[0] == SUCCESS and login.results[2] == AUTH_ERR
    login = driver.login("login", "alice", alice.backup_codes[1], bob.code(), phases=phases)
    assert (login.results[0], login.results[2]) == (SUCCESS, SUCCESS)


def test_no_copy_of_the_response_stays_in_memory(store, services):
    """A core's worth of the process after the login holds neither the code nor the secret."""
    enrollment = store.enroll()
    backup = enrollment.backup_codes[0]
    with Driver(services) as driver:
        assert driver.login("login", "alice", backup).result == SUCCESS
        found = find_in_memory(driver.process.pid, [
            enrollment.secret.encode(), base64.b32decode(enrollment.secret),
            backup.encode(), backup.replace("-", "").encode()])
    assert found == []


def find_in_memory(pid, needles):
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            region, access = line.split()[:2]
            if "w" not in access or "[v" in line:
                continue
            start, end = (int(part, 16) for part in region.split("-"))
            os.lseek(memory.fileno(), start, os.SEEK_SET)
            data = os.read(memory.fileno(), end - start)
            found += [(needle, line.strip()) for needle in needles if needle in data]
    return found
