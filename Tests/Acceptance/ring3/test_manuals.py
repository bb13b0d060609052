"""EXAMPLES of the manuals, and the answers of sallyport(1) to questions: each line is typed, and works."""

import os
import re
import shutil
import time
from pathlib import Path

import pexpect
import pytest

from support.codes import totp
from support.hosts import add_account, edit, remove_account
from support.manuals import PAGES, answers, examples
from support.pam_driver import LIVE, SUCCESS
from support.sallyport import (
    COMMAND, DEFAULT_STORE, MODULE, REPOSITORY, Store, first_code, our_line, sallyport)
from support.typist import Child

TOKEN, SECRET = "2600112700003", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
# What is not typed here: the manual, how its lines begin, and why.
ELSEWHERE = [
    ("sallyport-fleet.1", "sallyport fleet ", "asks a verifier: Tests/Fleet"),
    ("sallyport-fleet.1", "sallyport-verifier ", "asks PostgreSQL: Tests/Fleet"),
    ("sallyport-verifier.8", "sallyport-verifier ", "asks PostgreSQL: Tests/Fleet"),
    ("sallyport-verifier.8", "sudo -u postgres ", "asks PostgreSQL: Tests/Fleet"),
    ("sallyport-verifier.8", "systemctl ", "there is no systemd here"),
    ("sallyport-verifier.8", "* * * * * ", "a line of cron, which a shell does not read"),
    ("sallyportd.8", "systemctl ", "there is no systemd here"),
    ("sallyport-session.8", "sallyport ", "users ask root's service: ring4/test_manuals.py"),
    ("sallyport-pam.1", "sallyport pam enable sshd", "asks an sshd that runs: ring4/test_manuals.py"),
    ("sallyport-pam.1", "sallyport pam confirm", "comes after it"),
    ("sallyport-pam.1", "sallyport pam revert", "comes after it"),
    ("sallyport.1", "sallyport pam enable sshd", "asks an sshd that runs: ring4/test_manuals.py"),
    ("sallyport.1", "sallyport pam disable sshd", "comes after it"),
]
# The first that a pattern finds in what a line prints is answered.
QUESTION, PROOF, SHOWN, READ, PHRASE = (
    r"\[[yY]/[nN]\]: ?$", r"(?:Verification|backup) code: ?$", r"(?:shown by|next code)[^\r\n]*: ?$",
    r"Secret in \S+: ?$", r"Passphrase: ?$")
# doctor tells of what it finds on this machine by its status.
STATUS = {"sallyport doctor": (0, 1, 2)}

ALL = [(page.name, lines) for page in PAGES for lines in examples(page)]
ALL += [("sallyport.1", [line]) for line in answers()]


def reason(page, line):
    """Why a line is not typed here; None if it is."""
    return next((why for name, begin, why in ELSEWHERE if name == page and line.startswith(begin)), None)


def is_policy(lines):
    return lines[0].startswith("[")


TYPED = [(page, kept) for page, lines in ALL if not is_policy(lines)
         if (kept := [line for line in lines if reason(page, line) is None])]
POLICIES = [lines for _, lines in ALL if is_policy(lines)]
NOT_TYPED = sorted({line for page, lines in ALL if not is_policy(lines) for line in lines
                    if reason(page, line) and line.startswith("sallyport ")})


@pytest.fixture
def store():
    shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
    yield Store(DEFAULT_STORE)
    shutil.rmtree(DEFAULT_STORE, ignore_errors=True)


class Keyboard:
    """Root's on this machine, with the files and what the people in the examples have at hand."""

    def __init__(self, store, directory):
        self.store, self.directory = store, directory
        self.proofs, self.alice, self.after = [], None, 0
        vectors = REPOSITORY / "Tests/Vectors"
        google = f'{SECRET}\n" RATE_LIMIT 3 30\n" DISALLOW_REUSE\n" TOTP_AUTH\n'
        for path, text in {
                directory / "secret.base32": f"{SECRET}\n",
                directory / "tokens.csv": f"serial number,secret key,time interval\n{TOKEN},{SECRET},30\n",
                directory / "aegis.json": (vectors / "exports/aegis.json").read_text(),
                directory / "tokens.xml": (vectors / "tokens/passphrase.pskc.xml").read_text(),
                directory / "new.conf": "[default]\nenrollment = required\n",
                directory / "edit": "#!/bin/sh\nprintf '[default]\\nverification = fleet\\n' >\"$1\"\n",
                Path("/etc/users.oath"): f"HOTP/T30/6 alice - {'31' * 19 + '32'}\n",
                Path("/home/alice/.google_authenticator"): google}.items():
            path.write_text(text)
            path.chmod(0o700 if path.name == "edit" else 0o600)
        os.chown("/home/alice/.google_authenticator", 3001, 3001)
        programs = directory / "programs"
        programs.mkdir()
        (programs / "sallyport").symlink_to(COMMAND)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(directory), "USER": "alice",
            "TERM": "xterm", "LC_ALL": "C.UTF-8", "EDITOR": str(directory / "edit")}

    def prepare(self, lines):
        """What an example begins with."""
        text = "\n".join(lines)
        if text.startswith("sallyport adopt alice"):
            # Enrolled under the other name, or with the other uid.
            name, uid = ("alicia", 3001) if "--from alicia" in text else ("alice", 3005)
            remove_account(name)
            add_account(name, uid)
            self.store.enroll(name, allow_missing=False)
            remove_account(name)
            if name == "alice":
                add_account("alice", 3001)
        elif not re.search(r'enroll "\$USER|\benroll alice(?! --force)|import (google|pam-oath|uri)', text):
            self.alice = self.store.enroll("alice", allow_missing=False)
            self.proofs = self.alice.backup_codes
            self.environment["code"] = self.alice.code()
        if "status bob" in text or "unlock bob" in text:
            self.store.enroll("bob", allow_missing=False)
        if TOKEN in text and "import csv" not in text:
            self.type("sallyport import csv tokens.csv")
            if not text.startswith("sallyport token assign"):
                self.type(f"sallyport token assign {TOKEN} alice")
                self.after = int(time.time()) // 30 + 20  # what it shows next was never seen
        if text.startswith("sallyport remove alice phone"):
            self.store.add("new phone")

    def code(self, line, text):
        """What a phone or a token shows: one after the other, each once."""
        if "resync" not in line and "token" not in line:
            return first_code(text)
        step = max(self.after, int(time.time()) // 30)
        self.after = step + 1
        return totp(self.alice.secret if "resync alice" in line else SECRET, 1, step * 30)[0]

    def type(self, line):
        """Types a line, and answers what is asked; all that was printed."""
        child = Child(["/bin/sh", "-c", line], timeout=60, cwd=str(self.directory), env=self.environment,
                      dimensions=(60, 200))
        text = ""
        while (seen := child.expect([QUESTION, PROOF, SHOWN, READ, PHRASE, pexpect.EOF])) < 5:
            text += child.before + child.after
            child.answer([lambda: "y", lambda: self.proofs.pop(), lambda: self.code(line, text),
                          lambda: SECRET, lambda: "qwerty"][seen]())
        text += child.before
        child.wait()
        good = next((good for begin, good in STATUS.items() if line.startswith(begin)), (0,))
        assert child.exitstatus in good, f"{line}\n{child.exitstatus}\n{text}"
        return text


@pytest.fixture
def keyboard(store, installed, alice, tmp_path):
    before = {path: path.read_bytes() if path.exists() else None for path in map(Path, [
        "/etc/group", "/etc/sudoers", "/etc/security/sallyport.conf", "/etc/users.oath"])}
    add_account("bob", 3002)
    edit("/etc/sudoers", lambda text: text + "alice ALL=(ALL) ALL\n")
    edit("/etc/group", lambda text: re.sub("(?m)^(staff:.*)$", r"\1bob", text))
    yield Keyboard(store, tmp_path)
    remove_account("bob")
    for path, content in before.items():
        path.write_bytes(content) if content is not None else path.unlink(missing_ok=True)


def enroll_by(given, services, driver):
    """alice's next login, with the pass that she was given."""
    line = f"account required {MODULE}"
    services.write("sshd", "auth required pam_exec.so quiet expose_authtok /bin/true",
                   our_line(None, "enroll", "nodelay"), line, "account required pam_permit.so")
    code = re.search(r"\bP[0-9A-Z]{3}(?:-[0-9A-Z]+)+", given)[0]
    assert driver.login("sshd", "alice", "x", code, "y", LIVE, "", phases=("auth", "acct"),
                        rhost="192.0.2.7", live=first_code).results == [SUCCESS, SUCCESS]


@pytest.mark.parametrize("lines", [lines for _, lines in TYPED],
                         ids=[f"{page} {lines[0][:60]}" for page, lines in TYPED])
def test_each_example_works_as_it_is_written(keyboard, services, driver, lines):
    keyboard.prepare(lines)
    text = ""
    for line in lines:
        if line.startswith("sallyport restore"):
            enroll_by(text, services, driver)
        text = keyboard.type(line)


@pytest.mark.parametrize("lines", POLICIES, ids=lambda lines: lines[0])
def test_each_policy_in_an_example_is_valid(tmp_path, lines):
    path = tmp_path / "sallyport.conf"
    path.write_text("\n".join(lines) + "\n")
    done = sallyport("config", "check", path, "--user", "nobody")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", NOT_TYPED)
def test_what_is_typed_elsewhere_has_the_words_it_is_called_with(line):
    words = line.split(" | ")[0].split()[1:]
    verb = words[:2] if words[0] in ("fleet", "pam") else words[:1]
    helped = sallyport(*verb, "--help")
    assert helped.returncode == 0, helped.stderr
    for word in words:
        if word.startswith("--"):
            assert word in helped.stdout


def test_the_table_of_what_is_not_typed_has_no_line_too_many():
    for page, begin, _ in ELSEWHERE:
        assert any(name == page and line.startswith(begin) for name, lines in ALL for line in lines), begin
    assert len(TYPED) > 40 and len(POLICIES) >= 2
    without = {page.name for page in PAGES} - {name for name, _ in ALL}
    assert without == {"pam_sallyport.8"}, "it has stacks, and no commands to type"
