"""Logins in each language that comes with the module, in the real sshd, su and sudo."""

import os
import re
import subprocess
from pathlib import Path

import pexpect
import pytest

from own import PASSWORD_PROMPT, Own, policy, running  # noqa: F401  a fixture
from support.hosts import PASSWORD, SCRATCH, as_user
from support.sallyport import MODULE, first_code, handed_out, sallyport
from support.typist import Child

POLICY = Path("/etc/security/sallyport.conf")
SOURCES = Path(__file__).parents[3] / "pam/messages"
MESSAGES = Path("/usr/share/sallyport/messages")
LANGUAGES = sorted(path.name for path in SOURCES.iterdir())
LINES = ["auth required pam_unix.so nodelay", f"auth required {MODULE} enroll nodelay",
         f"account required {MODULE}", "account required pam_unix.so", f"session required {MODULE}",
         "session required pam_permit.so"]
SU = as_user("bob", "su", "alice", "-c", "echo IN-$((6*7))")
SUDO = as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")


def sentences(language):
    lines = (SOURCES / language).read_text().splitlines()
    return dict(line.split(" = ", 1) for line in lines if line and line[0] not in "#[")


@pytest.fixture(scope="module", autouse=True)
def catalogs(tmp_path_factory):
    """/usr/share with our catalogs on top, in this mount namespace alone."""
    top = SCRATCH / "share"
    for name in ("upper", "work"):
        (top / name).mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                           f"lowerdir=/usr/share,upperdir={top}/upper,workdir={top}/work", "/usr/share"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("no overlay can be mounted here")
    MESSAGES.mkdir(parents=True, exist_ok=True)
    for path in SOURCES.iterdir():
        (MESSAGES / path.name).write_bytes(path.read_bytes())
    yield
    subprocess.run(["umount", "/usr/share"], check=True)


@pytest.fixture(autouse=True)
def three_lines(stacks):
    for name in ("sshd", "su", "sudo"):
        Path("/etc/pam.d", name).write_text("\n".join(LINES) + "\n")
    yield
    POLICY.unlink(missing_ok=True)


def speak(*lines):
    POLICY.write_text("[default]\n" + "".join(f"{line}\n" for line in lines))
    POLICY.chmod(0o644)


def prompt(said, key, **places):
    text = said[key].replace("\\n", "\r\n")
    return re.escape(re.sub(r"\{(\w+)\}", lambda place: places.get(place[1], ""), text)) + " ?$"


def login(command, *dialogue):
    """Answers these prompts in their order; all that was shown."""
    child, shown = Child(command, dimensions=(50, 200), env=os.environ | {"LC_ALL": "C.UTF-8"}), ""
    try:
        for asked, answer, *echoed in dialogue:
            child.expect(asked)
            shown += child.before + child.after
            (child.sendline if echoed else child.answer)(answer(shown) if callable(answer) else answer)
        child.expect(pexpect.EOF)
        child.wait()
        return shown + child.before
    finally:
        child.close(force=True)


PASS = ("[Pp]assword.*: ?$", PASSWORD)


@pytest.mark.decisive
def test_a_login_by_ssh_su_and_sudo_in_each_language(store, daemons):
    codes = list(store.enroll(allow_missing=False).backup_codes)
    for language in LANGUAGES:
        # There is none of that region.
        speak(f"language = {'pt-BR' if language == 'pt' else language}")
        said = sentences(language)
        asked = prompt(said, "verification_code")
        again = prompt(said, "not_accepted")[:-3] + r"\s+" + asked
        for command in (daemons["keyboard-interactive"].command("alice"), SU, SUDO):
            code = codes.pop() if codes else (codes := store.regenerate()).pop()
            code_alone = command in (SU, SUDO)
            shown = login(command, PASS, *[(asked, code)] if code_alone else [(asked, "482913"), (again, code)])
            assert "IN-42" in shown and "Verification code:" not in shown, (language, shown)


# shows: language
@pytest.mark.decisive
def test_a_refusal_is_the_same_for_everybody_in_another_language(store, daemons):
    store.enroll(allow_missing=False)
    speak("language = fr", "[rule staff]", "match_user = alice", "language = de", "hints = no")
    said = sentences("fr")
    asked = prompt(said, "verification_code")
    again = re.escape(said["not_accepted"]) + r"\s+" + asked
    shown = {user: login(daemons["keyboard-interactive"].command(user), PASS, (asked, "482913"), (again, "482914"),
                         (again, "482915")).replace(user, "NAME") for user in ("alice", "bob", "nobody-here")}
    assert len(set(shown.values())) == 1 and "IN-42" not in shown["alice"], shown


def test_enrolling_in_a_login_in_german(store):
    store.enroll("bob", allow_missing=False)
    speak("language = de", "enrollment = required")
    said = sentences("de")
    shown = login(SU, PASS, (prompt(said, "set_up_now"), "ｊａ", True),
                  (prompt(said, "code_of_app"), first_code, True), (prompt(said, "have_them"), "", True))
    handed_out.extend(re.findall(r"(?:\w{4}-){3}\w{4}", shown))
    assert "IN-42" in shown and said["key_by_hand"] in shown and "Backup-Codes: Jeder gilt einmal." in shown, shown
    assert store.of("alice").exists()


@pytest.mark.usefixtures("running")
def test_a_user_changes_his_enrollment_in_his_language(store):
    code = store.enroll(allow_missing=False).backup_codes[0]
    policy("[rule alice]", "match_user = alice", "language = ja")
    said = sentences("ja")
    asked = prompt(said, "code_to_rename", name="phone", new="tablet")
    for typed, ending in (("482913", said["code_refused"].partition("\\n")[0]), (code, "")):
        own = Own("rename", "phone", "tablet")
        assert own.until(PASSWORD_PROMPT) == 0
        own.child.answer(PASSWORD)
        assert own.until(asked) == 0, own.text
        own.child.answer(typed)
        own.finish()
        assert ending in own.text and "%E3" not in own.text, own.text
    assert [one["name"] for one in store.status()["authenticators"]] == ["tablet"]


def test_a_catalog_with_a_mistake_leaves_english_and_doctor_says_where(store, sink):
    code = store.enroll(allow_missing=False).backup_codes[0]
    speak("language = fr")
    path = MESSAGES / "fr"
    right = path.read_text()
    path.write_text(right.replace("{names}", "{noms}", 1))
    try:
        with sink.watch() as lines:
            assert "IN-42" in login(SU, PASS, ("Verification code: ?$", code))
        assert any(f"language: {path}:" in line.text and "English is used" in line.text for line in lines), lines
        said = " ".join(sallyport("doctor", "su").stdout.split())
        assert f"{path}:" in said and "users read English" in said, said
    finally:
        path.write_text(right)
