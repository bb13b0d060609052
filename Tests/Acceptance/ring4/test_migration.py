"""docs/migrating.md, as an administrator types it: users of Debian's own pam_google_authenticator
and pam_oath go on in the real sshd, sudo and su with the same app and the same scratch codes."""

import os
import re
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from support.hosts import DEBIAN, PAM_D, SCRATCH, UIDS, Su, Sudo, add_account, as_user, remove_account
from support.peers import peer
from support.sallyport import COMMAND, REPOSITORY, Enrollment, handed_out, reason
from support.typist import Child

PAGE = (REPOSITORY / "docs/migrating.md").read_text()
TEN_MINUTES = PAGE[PAGE.index("## Ten minutes"):PAGE.index("## What comes along")]
SERVICES = ["sshd", "sudo", "su"]


def on_the_page(start):
    """The command of the page that begins so; exactly one does."""
    found = {line.split("#")[0].strip() for line in re.findall(r"^ +(\S.*)$", TEN_MINUTES, re.M)
             if line.strip().startswith(start)}
    assert len(found) == 1, (start, found)
    return found.pop()


def types(command, status=0):
    """root types it into a shell; what it says."""
    programs = SCRATCH / "programs-of-migration"
    programs.mkdir(exist_ok=True)
    link = programs / "sallyport"
    if not link.exists():
        link.symlink_to(COMMAND)
    path = f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL, env=os.environ | {"PATH": path})
    assert done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout


class Server:
    """Debian's stacks, with an old module's line behind the password."""

    def __init__(self, daemons, sink):
        self.hosts = {"sshd": daemons["keyboard-interactive"], "sudo": Sudo(), "su": Su()}
        self.sink = sink

    def ask_with(self, line):
        """The old module asks in every service; its line, as `grep` finds it there."""
        include = "@include common-auth\n"
        for service in SERVICES:
            old = DEBIAN[service].decode()
            assert old.count(include) == 1
            (PAM_D / service).write_text(old.replace(include, f"{include}auth required {line}\n"))
        self.line = line
        found = types(on_the_page("grep -rE"))
        assert found.count(line) == 3 and all(f"/etc/pam.d/{name}:" in found for name in SERVICES)

    def turn_over(self, *words):
        """Puts our lines into every service, with the old one still there."""
        enable = on_the_page("sallyport pam enable sshd")
        for service in SERVICES:
            # The daemon of these tests has settings of its own: by the machine's nobody could answer.
            more = ["--sshd", "none", "--force"] if service == "sshd" else []
            said = types(" ".join([enable.replace("sshd", service), *words, *more, "--yes"]))
            assert f"sallyport pam disable {service}" in said

    def drop_the_old_line(self):
        """With an editor."""
        for service in SERVICES:
            lines = (PAM_D / service).read_text().splitlines(keepends=True)
            left = [text for text in lines if self.line not in text]
            assert len(left) == len(lines) - 1
            (PAM_D / service).write_text("".join(left))

    def go_back(self):
        command = re.search(r"`(cp /etc/pam.d/sshd\.before\S+ \S+)`", TEN_MINUTES)[1]
        for service in SERVICES:
            types(command.replace("DATE", "*").replace("sshd", service))

    def lets_in(self, service, user, code):
        return self.hosts[service].enter(user, code)

    def refusal(self, service, user, code):
        """Why our module refuses it."""
        with self.sink.watch() as lines:
            assert not self.lets_in(service, user, code)
        return reason(lines)


@pytest.fixture
def server(debian, store, daemons, sink):
    yield Server(daemons, sink)
    for path in (*Path("/home").glob("*/.google_authenticator"), Path("/etc/users.oath")):
        path.unlink(missing_ok=True)


@pytest.fixture
def carol(machine):
    add_account("carol", 3003)
    yield
    remove_account("carol")


def content(file):
    """All of a file but the time it was read."""
    status = file.stat()
    return (file.read_bytes(), status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def sets_up(user, *answers):
    """`user` runs google-authenticator, scans and answers; his app and scratch codes."""
    command = as_user(user, "google-authenticator", "--qr-mode=NONE")
    child = Child(command, dimensions=(60, 200))
    app, said = None, ""
    asked = [r"\(y/n\) ?$", r"Enter code from app[^\n]*: ?$", pexpect.EOF]
    try:
        answers = iter(answers)
        while (seen := child.expect(asked)) != 2:
            said += child.before
            if app is None and (shown := re.search(r"secret key is: ([A-Z2-7]+)", said)):
                kind = "totp" if seen == 1 else "hotp"
                app = Enrollment(user, shown[1], kind, "sha1", 6, 30, 1, "")
            child.sendline(app.code() if seen == 1 else next(answers))
        child.wait()
        assert child.exitstatus == 0 and next(answers, None) is None, said
    finally:
        child.close(force=True)
    scratch = re.findall(r"^  (\d{8})\r?$", said, re.M)
    assert len(scratch) == 5
    handed_out.append(app.secret)
    return app, scratch


def test_a_user_of_google_authenticator_moves_over(server, store):
    peer("pam_google_authenticator.so")
    server.ask_with("pam_google_authenticator.so")
    # By time; write the file; once each; 17 codes, for a slow machine's sake; at most 3 in 30 s.
    app, scratch = sets_up("alice", "y", "y", "y", "y", "y")
    file = Path("/home/alice/.google_authenticator")
    first, last, third, fourth = app.codes(4, time.time())
    assert server.lets_in("sshd", "alice", first)
    assert server.lets_in("su", "alice", scratch[0])
    assert "DISALLOW_REUSE " in file.read_text() and scratch[0] not in file.read_text()

    before = content(file)
    dry_run = on_the_page("sallyport import google-authenticator --all-homes")
    types(dry_run, status=75)  # the other source of accounts here lists nobody
    assert dry_run.endswith("--dry-run") and not store.directory.exists()
    run = dry_run.removesuffix(" --dry-run")
    types(run, status=75)
    assert content(file) == before
    # The server goes on meanwhile.
    assert server.lets_in("sudo", "alice", last)
    before = content(file)
    server.turn_over()
    server.drop_the_old_line()
    assert "brought up to date" in types(run, status=75)
    assert content(file) == before

    assert server.refusal("sshd", "alice", last) == "replayed"
    assert server.refusal("su", "alice", first) == "replayed"
    assert server.lets_in("sshd", "alice", third)
    assert server.refusal("sudo", "alice", third) == "replayed"
    assert server.lets_in("sudo", "alice", fourth)
    assert server.refusal("sshd", "alice", scratch[0]) == "wrong-code"
    assert server.lets_in("sshd", "alice", scratch[1])
    assert server.refusal("su", "alice", scratch[1]) == "replayed"
    assert server.lets_in("su", "alice", scratch[2])
    assert store.status("alice")["backupCodes"]["scratchLeft"] == 2
    assert content(file) == before
    types(on_the_page("rm -f /home"))
    assert not file.exists() and server.lets_in("sudo", "alice", scratch[3])


def test_a_counter_goes_on_and_who_had_nothing_still_needs_nothing(server, store):
    peer("pam_google_authenticator.so")
    server.ask_with("pam_google_authenticator.so nullok")
    # By counter; write the file; no wider window; no limit.
    app, scratch = sets_up("alice", "n", "y", "n", "n")
    for service, code in (("sshd", app.code(counter=1)), ("sudo", app.code(counter=3)),
                          ("su", scratch[4])):
        assert server.lets_in(service, "alice", code)
    assert server.lets_in("sshd", "bob", None)
    file = Path("/home/alice/.google_authenticator")
    assert "HOTP_COUNTER 4\n" in file.read_text()
    before = content(file)
    types(on_the_page("sallyport import google-authenticator --all-homes")
          .removesuffix(" --dry-run"), status=75)
    server.turn_over("--nullok")
    server.drop_the_old_line()
    assert server.refusal("sshd", "alice", app.code(counter=3)) == "replayed"
    assert server.refusal("su", "alice", scratch[4]) == "wrong-code"
    assert server.lets_in("sshd", "alice", app.code(counter=4))
    assert server.lets_in("sudo", "alice", app.code(counter=5))
    assert server.lets_in("su", "alice", scratch[0])
    assert server.lets_in("sshd", "bob", None)
    assert content(file) == before


def in_hex(text):
    return text.encode().hex()


def app_of(user, text, kind, digits=6, period=30):
    done = subprocess.run(["base32"], input=text, capture_output=True, text=True, check=True)
    return Enrollment(user, done.stdout.strip().rstrip("="), kind, "sha1", digits, period, 0, "")


KEYS = {name: f"{name}{'.' * (20 - len(name))}" for name in (*UIDS, "carol", "gone")}


def test_the_users_of_a_users_file_move_over(server, store, carol):
    peer("pam_oath.so")
    file = Path("/etc/users.oath")
    file.touch(0o600)
    file.write_text(
        f"# who has a token\n\nHOTP/T30 alice - {in_hex(KEYS['alice'])}\n"
        f"HOTP bob - {in_hex(KEYS['bob'])}\nHOTP/T60/8\tcarol\t-\t{in_hex(KEYS['carol'])}\n"
        f"HOTP gone - {in_hex(KEYS['gone'])} 17\n")
    server.ask_with("pam_oath.so usersfile=/etc/users.oath window=20")
    alice, bob = app_of("alice", KEYS["alice"], "totp"), app_of("bob", KEYS["bob"], "hotp")
    carol = app_of("carol", KEYS["carol"], "totp", 8, 60)
    codes, hers = alice.codes(4, time.time()), carol.codes(2, time.time())
    assert server.lets_in("su", "alice", codes[0])
    assert server.lets_in("sshd", "bob", bob.code(counter=0))
    assert server.lets_in("sshd", "bob", bob.code(counter=2))
    assert server.lets_in("sshd", "carol", hers[0])
    assert all(code in file.read_text() for code in (codes[0], bob.code(counter=2), hers[0]))

    before = content(file)
    dry_run = on_the_page("sallyport import pam-oath /etc/users.oath")
    run = dry_run.removesuffix(" --dry-run")
    for command in (dry_run, run):  # gone has no account: 65, and is named
        assert "gone" in types(command, status=65)
    assert content(file) == before
    server.turn_over()
    # Both ask; one code answers both.
    assert server.lets_in("sshd", "alice", codes[1])
    before = content(file)
    server.drop_the_old_line()
    types(run, status=65)
    assert content(file) == before

    assert server.refusal("sshd", "alice", codes[1]) == "replayed"
    assert server.lets_in("sshd", "alice", codes[2])
    assert server.refusal("su", "alice", codes[2]) == "replayed"
    assert server.refusal("sshd", "bob", bob.code(counter=2)) == "replayed"
    for counter in (3, 5):
        assert server.lets_in("sshd", "bob", bob.code(counter=counter))
    assert server.refusal("sshd", "bob", bob.code(counter=4)) == "wrong-code"
    assert server.refusal("sshd", "carol", hers[0]) == "replayed"
    assert server.lets_in("sshd", "carol", hers[1])
    assert {path.name for path in store.of("x").parent.iterdir()} == {"alice", "bob", "carol"}

    server.go_back()
    assert server.lets_in("sshd", "alice", codes[3])
    assert server.lets_in("sshd", "bob", bob.code(counter=6))
    assert content(file) != before, "the old module is back"
