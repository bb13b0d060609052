"""Ten set-ups that are broken in the ways people break them: doctor finds each, at its place and with
the line that fixes it, which is then written as it stands there. sshd's settings are those of the
real `sshd -T`."""

import re
import shutil
from pathlib import Path

import pytest

from clinic import SSHD, SSHD_CONFIG, doctor, line, remove_keys, rule, setting, wrong
from test_doctor import clinic, disk, healthy  # noqa: F401: fixtures

DROP_INS = Path("/etc/ssh/sshd_config.d")
SUDO = "/etc/pam.d/sudo"
METHODS = "AuthenticationMethods publickey,keyboard-interactive"


def drop_in_comes_too_late(clinic):  # noqa: F811
    """sshd takes the first value."""
    SSHD_CONFIG.write_text("Include /etc/ssh/sshd_config.d/*.conf\n"
                           + SSHD.replace("KbdInteractiveAuthentication yes\n", ""))
    (DROP_INS / "00-aaa.conf").write_text("KbdInteractiveAuthentication no\n")
    (DROP_INS / "00-sallyport.conf").write_text("KbdInteractiveAuthentication yes\n")


def sufficient_before_us(clinic):  # noqa: F811
    clinic.stack("auth sufficient pam_unix.so", "auth required pam_sallyport.so",
                 services=["sudo"])


TEN = {  # what was done: how, the finding, the file, the kind of its fix, the fix
    "KbdInteractiveAuthentication is off": (
        setting("KbdInteractiveAuthentication yes", "KbdInteractiveAuthentication no"),
        "ssh-prompts error", str(SSHD_CONFIG), "line", "KbdInteractiveAuthentication yes"),
    "UsePAM is off": (
        setting("UsePAM yes", "UsePAM no"),
        "ssh-use-pam error", str(SSHD_CONFIG), "line", "UsePAM yes"),
    "a key is enough": (
        setting(METHODS, "AuthenticationMethods publickey"),
        "ssh-no-code error", str(SSHD_CONFIG), "line", METHODS),
    "the drop-in comes too late": (
        drop_in_comes_too_late,
        "ssh-prompts error", f"{DROP_INS}/00-aaa.conf", "line", "KbdInteractiveAuthentication yes"),
    "a Match block leaves a user out": (
        setting("UseDNS no", "UseDNS no\nMatch User alice\nAuthenticationMethods publickey"),
        "ssh-no-code error", str(SSHD_CONFIG), "line", METHODS),
    "the account line is missing": (
        line("auth required OURS enroll", "session required OURS"),
        "enroll-account error", "/etc/pam.d/sshd", "add", "account required OURS"),
    "the session line is missing": (
        line("account required OURS", "auth required OURS enroll"),
        "enroll-session warning", "/etc/pam.d/sshd", "add", "session required OURS"),
    "a sufficient line comes before ours": (
        sufficient_before_us, "stack-skipped error", SUDO, "command",
        "sallyport pam enable sudo --no-enroll"),
    "NOPASSWD": (
        rule("alice ALL=(ALL) NOPASSWD: ALL"),
        "sudo-nopasswd error", "/etc/sudoers", "line", "alice ALL=(ALL) ALL"),
    "a key is asked for and nobody has one": (
        remove_keys("alice", "bob"), "ssh-keys error", str(SSHD_CONFIG), "advice",
        "put a public key of alice into /home/alice/.ssh/authorized_keys"),
}


@pytest.fixture
def patient(healthy, installed):  # noqa: F811
    yield healthy
    for name in ("00-aaa.conf", "00-sallyport.conf"):
        (DROP_INS / name).unlink(missing_ok=True)
    for path in Path("/etc/pam.d").glob("*.before-sallyport-*"):
        path.unlink()


def follow(clinic, finding, kind):  # noqa: F811
    """Does what the hint says; the advice is to put a key into a file."""
    if kind != "advice":
        return clinic.fix(finding, kind)
    path = re.search(r"into (/\S+)$", finding["fixes"][0]["text"])[1]
    shutil.copy(f"{clinic.key}.pub", path)


def found(said, expected):
    names = expected.split()
    return [one for one in said["findings"] if [one["id"], one["severity"]] == names]


# shows: common-faults
@pytest.mark.parametrize("name", TEN)
def test_each_is_found_with_the_line_that_fixes_it(name, patient):
    breaks, expected, place, kind, text = TEN[name]
    assert wrong(doctor()) == []
    breaks(patient)
    said = doctor()
    assert said["status"] != 0 and found(said, expected), wrong(said)
    first = found(said, expected)[0]
    hint = next(fix["text"] for fix in first["fixes"] if fix["kind"] == kind)
    assert (first["file"], hint) == (place, text.replace("OURS", str(patient.module)))
    follow(patient, first, kind)
    left = doctor()
    if kind == "advice":  # bob has no key either.
        follow(patient, found(left, "ssh-keys warning")[0], kind)
        left = doctor()
    assert wrong(left) == [], "nothing else is wrong any more"
