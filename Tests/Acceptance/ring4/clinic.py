"""A machine on which nothing is wrong, ways to break it, and doctor's own hints to fix it."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pexpect

from support.hosts import SCRATCH, UIDS, edit
from support.codes import totp
from support.pam_driver import BUILT
from support.sallyport import COMMAND, DEFAULT_STORE, MODULE, Store, sallyport
from support.typist import Child

SSHD_CONFIG = Path("/etc/ssh/sshd_config")
SUDOERS = Path("/etc/sudoers")
POLICY = Path("/etc/security/sallyport.conf")
PRELOADED = {**os.environ, "LD_PRELOAD": f"{BUILT}/clock.so"}
# As Debian has them: a wrong password ends the stack.
COMMON = ["auth [success=1 default=ignore] pam_unix.so nullok", "auth requisite pam_deny.so",
          "auth required pam_permit.so"]
ENDS = ["account required pam_unix.so", "session required pam_permit.so"]
SSHD = """UsePAM yes
KbdInteractiveAuthentication yes
PasswordAuthentication no
AuthenticationMethods publickey,keyboard-interactive
PermitRootLogin no
UseDNS no
"""


def doctor(*arguments, **more):
    """The diagnosis, the exit status in it; nothing on standard error."""
    done = sallyport("doctor", "--json", *arguments, env=PRELOADED, **more)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout) | {"status": done.returncode}


def wrong(said):
    """`id severity` of everything that is not as it should be."""
    return [f"{found['id']} {found['severity']}" for found in said["findings"]
            if found["severity"] != "ok"]


def close(*services):
    """Others of the same program, which let nobody in: what is found is of the service that is tried alone."""
    for name in services:
        Path("/etc/pam.d", name).write_text("auth requisite pam_deny.so\n")


class Clinic:
    def __init__(self):
        self.store = Store(DEFAULT_STORE)
        self.module = SCRATCH / "modules" / "pam_sallyport.so"
        self.module.parent.mkdir(exist_ok=True)
        programs = SCRATCH / "programs"
        programs.mkdir(exist_ok=True)
        if not (programs / "sallyport").exists():
            (programs / "sallyport").symlink_to(COMMAND)
        self.key = SCRATCH / "doctor-key"
        if not self.key.exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key],
                           check=True)
        self.path = f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"

    def heal(self):
        """Everything as it should be; alice and bob are enrolled and have a key."""
        shutil.copy(MODULE, self.module)
        self.module.chmod(0o644)
        for path in DEFAULT_STORE.iterdir():
            if path.is_dir() and path.name != "lost+found":
                shutil.rmtree(path)
        DEFAULT_STORE.chmod(0o700)
        os.chown(DEFAULT_STORE, 0, 0)
        self.enrolled = {name: self.store.enroll(name, allow_missing=False) for name in UIDS}
        for name in UIDS:
            directory = Path("/home", name, ".ssh")
            directory.mkdir(exist_ok=True)
            (directory / "authorized_keys").write_bytes(Path(f"{self.key}.pub").read_bytes())
        self.stack(f"auth required {self.module}")
        SSHD_CONFIG.write_text(SSHD)
        POLICY.unlink(missing_ok=True)

    def stack(self, *ours, services=("sshd", "sudo")):
        for name in services:
            Path("/etc/pam.d", name).write_text("\n".join([*COMMON, *ours, *ENDS]) + "\n")
        close("sudo-i")

    # -- fixing

    def fix(self, finding, kind):
        """Does what the first hint of that kind says."""
        text = next(fix["text"] for fix in finding["fixes"] if fix["kind"] == kind)
        if kind == "command":
            self.type(text)
        elif kind == "line":
            lines = Path(finding["file"]).read_text().split("\n")
            lines[finding["line"] - 1] = text
            Path(finding["file"]).write_text("\n".join(lines))
        elif kind == "add":
            assert finding["line"] is None
            edit(finding["file"], lambda old: f"{text}\n{old}")

    def type(self, command):
        """Types a command on a terminal and answers what it asks, as a person with an app would."""
        child = Child(["/bin/sh", "-c", command], dimensions=(60, 200),
                      env={**os.environ, "PATH": self.path})
        codes = None
        try:
            while True:
                seen = child.expect([r"\[y/N\]: ?$", "[Cc]ode[^:\r\n]*: ?$", pexpect.EOF])
                shown = re.findall(r"[?&]secret=([A-Z2-7]+)", child.before)
                if shown:
                    codes = iter(totp(shown[-1], 4))
                if seen == 2:
                    break
                codes = codes or iter(totp(self.enrolled["alice"].secret, 4))
                child.sendline("y" if seen == 0 else next(codes))
            child.wait()
            assert child.exitstatus == 0, child.before
        finally:
            child.close(force=True)


# -- breakages: each breaks one thing of a Clinic


def replace(path, old, new):
    def change(text):
        assert old in text, (path, text)
        return text.replace(old, new)
    edit(path, change)


def mode(path, bits):
    return lambda clinic: os.chmod(DEFAULT_STORE / path, bits)


def setting(old, new):
    return lambda clinic: replace(SSHD_CONFIG, old, new)


def line(*ours):
    return lambda clinic: clinic.stack(
        *[text.replace("OURS", str(clinic.module)) for text in ours], services=["sshd"])


def rule(text):
    return lambda clinic: edit(SUDOERS, lambda old: old + text + "\n")


def remove_keys(*names):
    def remove(clinic):
        for name in names:
            Path("/home", name, ".ssh/authorized_keys").unlink()
    return remove


def lock(*names):
    return lambda clinic: edit("/etc/shadow", lambda text: re.sub(
        rf"(?m)^({'|'.join(names)}):", r"\1:!", text))


def damage(clinic):
    state = clinic.store.state("alice")
    with open(state, "r+b") as file:
        file.write(b"\xff" * state.stat().st_size)


def restore(clinic):
    """As from a backup: the same bytes in a new file with the old times."""
    state = clinic.store.state("alice")
    content, old = state.read_bytes(), state.stat().st_mtime - 3600
    state.unlink()
    state.touch(0o600)
    state.write_bytes(content)
    os.utime(state, (old, old))


def run_ahead(clinic):
    """A login while the clock was a day ahead."""
    day = 86400
    code = clinic.enrolled["alice"].code(time.time() + day)
    done = sallyport("verify", "--user", "alice", typed=code,
                     env={**PRELOADED, "AHEAD": str(day)})
    assert done.returncode == 0, done.stderr


def guess(clinic):
    for _ in range(20):
        done = sallyport("verify", "--user", "alice", typed=clinic.enrolled["alice"].wrong())
        assert done.returncode == 1


def leave_over(clinic):
    directory = DEFAULT_STORE / "users" / ".tmp-00112233"
    directory.mkdir()
    os.utime(directory, (1_700_000_000, 1_700_000_000))


def open_note(clinic):
    assert sallyport("exempt", "--user", "bob").returncode == 0
    (DEFAULT_STORE / "unenrolled" / "bob").chmod(0o644)


def require_nobody(clinic):
    assert sallyport("require", "--user", "carol", "--allow-missing").returncode == 0


def move_account(clinic):
    """alice was deleted and made again."""
    edit("/etc/passwd", lambda text: text.replace("alice:x:3001:", "alice:x:3009:"))


def read_only(clinic):
    subprocess.run(["mount", "-o", "remount,ro", DEFAULT_STORE], check=True)


BREAKAGES = {  # what was done: how, the findings, the exit status, the kind of fix (None: none)
    "an enrollment is open to others":
        (mode("users/alice/enrollment", 0o644), "user-unusable error", "command"),
    "a state belongs to another": (
        lambda clinic: os.chown(clinic.store.state("alice"), 3002, 3002),
        "user-unusable error", "command"),
    "a state has a second name": (
        lambda clinic: os.link(clinic.store.state("alice"), DEFAULT_STORE / "copy"),
        "user-unusable error", None),
    "a state is damaged": (damage, "user-unusable error", "command"),
    "an account has another uid": (move_account, "user-unusable error", "command"),
    "a note is open to others": (open_note, "people-note warning", "command"),
    "a duty waits for an account": (require_nobody, "note-no-account warning", "command"),
    "the clock ran ahead": (run_ahead, "user-ahead error", "command"),
    "a state comes from a backup": (restore, "user-restored warning", "command"),
    "somebody guesses": (guess, "user-throttled warning", "command"),
    "the store shows who is enrolled": (mode(".", 0o755), "store-directories warning", "command"),
    "the store is for others to write": (mode(".", 0o777), "store-parent error", "command"),
    "the decoy is gone": (
        lambda clinic: shutil.rmtree(DEFAULT_STORE / "decoy"), "store-decoy warning", "command"),
    "a crash left something over": (leave_over, "store-leftovers warning", "command"),
    "the disk is read-only": (read_only, "store-writing error", "command"),
    "prompts are off": (
        setting("KbdInteractiveAuthentication yes", "KbdInteractiveAuthentication no"),
        "ssh-prompts error", "line"),
    "prompts are off by the old name": (
        setting("KbdInteractiveAuthentication yes", "ChallengeResponseAuthentication no"),
        "ssh-prompts error", "line"),
    "a key is enough": (
        setting("publickey,keyboard-interactive", "publickey"), "ssh-no-code error", "line"),
    "a key is enough, no line says so": (
        setting("AuthenticationMethods publickey,keyboard-interactive\n", ""),
        "ssh-no-code error", "add"),
    "sshd has no PAM": (setting("UsePAM yes", "UsePAM no"), "ssh-use-pam error", "line"),
    "nobody has a key": (remove_keys("alice", "bob"), "ssh-keys error", None),
    "bob has no key": (remove_keys("bob"), "ssh-keys warning", None),
    "nobody has a password": (lock("alice", "bob"), "ssh-passwords error", None),
    "bob has no password": (lock("bob"), "ssh-passwords warning", None),
    "names for addresses": (setting("UseDNS no", "UseDNS yes"), "ssh-use-dns warning", "line"),
    "sshd does not take its settings": (
        setting("UseDNS no", "UseDNSs no"), "ssh-config error", None),
    "alice's key is enough": (
        setting("UseDNS no", "UseDNS no\nMatch User alice\nAuthenticationMethods publickey"),
        "ssh-no-code error", "line"),
    "NOPASSWD": (rule("alice ALL=(ALL) NOPASSWD: ALL"), "sudo-nopasswd error", "line"),
    "NOPASSWD by an alias": (
        rule("Cmnd_Alias EVERYTHING = ALL\nalice ALL=(ALL) NOPASSWD: EVERYTHING"),
        "sudo-nopasswd error", "line"),
    "NOPASSWD as another user by an alias": (
        rule("Runas_Alias OP = backup, www-data\nalice ALL=(OP) NOPASSWD: ALL"),
        "sudo-nopasswd warning", "line"),
    "sudoers with a mistake": (rule("alice ALL=(ALL) NOPASSWD ALL"), "sudo-aliases unseen", None),
    "!authenticate": (rule("Defaults:alice !authenticate"), "sudo-authenticate error", "line"),
    "enroll without its account line": (
        line("auth required OURS enroll", "session required OURS"), "enroll-account error", "add"),
    "optional": (line("auth optional OURS"), "stack-uncounted error", "line"),
    "a word that is none": (line("auth required OURS nulok"), "line-word warning", "line"),
    "the module is gone": (lambda clinic: clinic.module.unlink(), "module-missing error", None),
    "the module is for others to change": (
        lambda clinic: clinic.module.chmod(0o666), "module-mode error", "command"),
    "the module is something else": (
        lambda clinic: clinic.module.write_text("#!/bin/sh\n"), "module-architecture error", None),
    "a rule on a group in which nobody is": (
        lambda clinic: POLICY.write_text("[rule a]\nmatch_group = alice, floppy\nlook_ahead = 3\n"),
        "policy-group warning", None),
    "a rule on a group that is not there": (
        lambda clinic: POLICY.write_text("[rule a]\nmatch_group = whell\nlook_ahead = 3\n"),
        "policy-group warning", None),
    "a policy with a mistake": (
        lambda clinic: POLICY.write_text("[default]\nadjacent_intervals = eleven\n"),
        "policy-broken error", None),
}
