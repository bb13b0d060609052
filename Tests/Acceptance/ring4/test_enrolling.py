"""Enrolling inside the login, demand and the guards, in the real sshd, sudo, su and login."""

import re
import subprocess
from pathlib import Path

import pexpect
import pytest

from support.hosts import PASSWORD, SCRATCH, Sshd, as_user, edit
from support.sallyport import MODULE, first_code, handed_out, sallyport
from support.screen import DARK, LIGHT, Terminal, read_as_drawn
from support.typist import Child

POLICY = Path("/etc/security/sallyport.conf")
DEMAND, OFFER = r"Set it up now\? \[y/n\]: ?$", r"Set it up now\? \[y/n, .*: ?$"
FIRST, LAST = "Code shown by the app: ?$", "Press Enter when you have them: ?$"
CODE, PASS = "Verification code: ?$", "[Pp]assword.*: ?$"
IN, END = "IN-42", pexpect.EOF
PROMPTS = [PASS, CODE, DEMAND, OFFER, FIRST, LAST, IN, END]
ACCOUNT, SESSION = f"account required {MODULE}", f"session required {MODULE}"
FIRST_FACTOR = "auth required pam_unix.so nodelay"


@pytest.fixture(autouse=True)
def nothing_left(store):
    store.enroll("bob", allow_missing=False)  # makes the store
    yield
    POLICY.unlink(missing_ok=True)


def policy(text):
    POLICY.write_text(f"[default]\n{text}\n")
    POLICY.chmod(0o644)


def stack(name, *auth, account=(ACCOUNT,), session=(SESSION,)):
    ours = f"auth required {MODULE} enroll nodelay"
    lines = [*(auth or (FIRST_FACTOR,)), ours, *account, "account required pam_unix.so", *session,
             "session required pam_permit.so"]
    Path("/etc/pam.d", name).write_text("\n".join(lines) + "\n")


def login(command, answers, password=PASSWORD):
    """Answers prompts by kind; (got in, the kinds asked in order, all that was written)."""
    child = Child(command, dimensions=(50, 120))
    answers = {PASS: [password], **{kind: list(texts) for kind, texts in answers.items()}}
    asked, written = [], ""
    try:
        while True:
            kind = PROMPTS[child.expect(PROMPTS)]
            written += child.before + (child.after if isinstance(child.after, str) else "")
            if kind is END:
                child.wait()
                return IN in written, asked, written
            if kind == IN:
                continue
            asked.append(kind)
            if not answers.get(kind):
                child.sendintr()  # nobody answers: the connection is lost
                child.close(force=True)
                return False, asked, written
            answer = answers[kind].pop(0)
            answer = first_code(written) if answer == "right" else answer
            (child.answer if kind in (PASS, CODE) else child.sendline)(answer)
    finally:
        child.close(force=True)


SU = as_user("bob", "su", "alice", "-c", "echo IN-$((6*7))")
SUDO = as_user("alice", "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")
YES = {FIRST: ["right"], LAST: [""]}


def enrolled(store):
    return store.of("alice").exists()


@pytest.fixture(params=["sshd keyboard-interactive", "sshd publickey,keyboard-interactive", "sshd -T",
                        "sudo", "su"])
def command(request, daemons):
    """How alice logs in; the service's name comes first."""
    name, _, how = request.param.partition(" ")
    if name != "sshd":
        return name, {"sudo": SUDO, "su": SU}[name]
    more = ["-T"] if how == "-T" else ["-t"]
    methods = "keyboard-interactive" if how == "-T" else how
    return name, daemons[methods].command("alice", *more)


def test_required_enrolls_and_then_asks(command, store, sink):
    name, words = command
    policy("enrollment = required")
    stack(name)
    entered, asked, written = login(words, {DEMAND: ["y"], **YES})
    assert entered and asked == [PASS, DEMAND, FIRST, LAST], written
    assert written.index("Backup codes") < written.index("Press Enter")
    assert enrolled(store)
    code = re.search(r"(?:\w{4}-){3}\w{4}", written).group(0)
    handed_out.append(code)
    assert login(words, {CODE: [code]})[:2] == (True, [PASS, CODE])
    assert not login(words, {CODE: [code]})[0]


def test_under_required_there_is_no_way_around(command, store):
    name, words = command
    policy("enrollment = required")
    stack(name)
    for answers in ({DEMAND: ["n"]}, {DEMAND: [""]}, {}, {DEMAND: ["y"]},
                    {DEMAND: ["y"], FIRST: ["1", "22", "", "000000", "x"]}):
        assert not login(words, answers)[0]
    assert not enrolled(store)


def test_one_that_is_cut_off_shows_in_status_until_one_has_ended(command, store):
    name, words = command
    policy("enrollment = required")
    stack(name)
    assert not login(words, {DEMAND: ["n"]})[0]
    assert "enrolling" not in sallyport("status", "alice").stdout
    assert not login(words, {DEMAND: ["y"]})[0]
    shown = sallyport("status", "alice").stdout
    assert re.search("^  enrolling   begun .+ and not ended$", shown, re.MULTILINE), shown
    assert login(words, {DEMAND: ["y"], **YES})[0]
    assert "enrolling" not in sallyport("status", "alice").stdout


@pytest.mark.parametrize("level", ["offer", "remind\nremind_every = 1"])
def test_the_other_levels_lock_nobody_out(command, store, level):
    name, words = command
    policy(f"enrollment = {level}")
    stack(name)
    assert login(words, {OFFER: [""]})[:2] == (True, [PASS, OFFER])
    assert login(words, {OFFER: ["n"]})[0]
    assert login(words, {OFFER: ["y"], FIRST: ["1", "2", "3", "4", "5"]})[0]
    assert not enrolled(store)
    assert login(words, {OFFER: ["y"], **YES})[0] and enrolled(store)


def test_a_wrong_password_enrolls_nobody(command, store):
    name, words = command
    policy("enrollment = required")
    for first in ("required", "requisite"):
        stack(name, f"auth {first} pam_unix.so nodelay")
        entered, asked, _ = login(words, {DEMAND: ["y"], **YES}, password="guessed")
        assert not entered and DEMAND not in asked and not enrolled(store)


@pytest.mark.parametrize("first", [
    # pam_unix sufficient before ours: the right password never reaches our line, the wrong one ends
    # in our PAM_IGNORE, which is no yes.
    ("auth sufficient pam_unix.so nodelay",),
    # Debian's common-auth, and Fedora's, as substack.
    ("auth [success=1 default=ignore] pam_unix.so nodelay", "auth requisite pam_deny.so",
     "auth required pam_permit.so"),
    ("auth substack test-system-auth",),
    # Modules beside it that ask for the password, or say yes.
    ("auth required pam_unix.so nodelay", "auth optional pam_exec.so quiet expose_authtok /bin/true"),
    ("auth required pam_shells.so", "auth required pam_unix.so nodelay"),
])
def test_a_wrong_password_enrolls_nobody_on_other_stacks(daemons, store, first):
    Path("/etc/pam.d/test-system-auth").write_text(
        "auth required pam_env.so\nauth sufficient pam_unix.so nodelay\nauth required pam_deny.so\n")
    words = daemons["keyboard-interactive"].command("alice", "-t")
    policy("enrollment = required")
    stack("sshd", *first)
    entered, asked, _ = login(words, {DEMAND: ["y"], CODE: ["123456"], **YES}, password="guessed")
    assert not entered and DEMAND not in asked and not enrolled(store)


def test_a_key_with_a_wrong_password_enrolls_nobody(daemons, store):
    words = daemons["publickey,keyboard-interactive"].command("alice", "-t")
    policy("enrollment = required")
    stack("sshd")
    assert not login(words, {DEMAND: ["y"], **YES}, password="guessed")[0] and not enrolled(store)


def test_a_key_and_our_line_alone_enroll(daemons, store):
    """sshd says that the key was accepted: no password is needed."""
    words = daemons["publickey,keyboard-interactive"].command("alice", "-t")
    policy("enrollment = required")
    stack("sshd", "auth optional pam_faildelay.so delay=0")
    entered, asked, written = login(words, {DEMAND: ["y"], **YES})
    assert entered and asked == [DEMAND, FIRST, LAST], written


def test_without_a_first_factor_nobody_is_let_through(daemons, store):
    words = daemons["keyboard-interactive"].command("alice", "-t")
    policy("enrollment = required")
    stack("sshd", "auth optional pam_faildelay.so delay=0")
    # Asked again after the refusal; an empty answer ends it.
    entered, asked, _ = login(words, {CODE: ["123456", ""], DEMAND: ["y"], **YES})
    assert not entered and asked == [CODE, CODE] and not enrolled(store)


def test_without_the_account_line_the_session_is_refused(command, store, sink):
    name, words = command
    policy("enrollment = required")
    stack(name, account=())
    with sink.watch() as lines:
        entered, asked, _ = login(words, {})
    assert not entered and asked == [PASS]
    assert any("must enroll, and was not asked to" in line.text for line in lines)


def test_without_the_word_enroll_required_is_a_refusal(command, store):
    name, words = command
    policy("enrollment = required")
    stack(name)
    path = Path("/etc/pam.d", name)
    path.write_text(path.read_text().replace(" enroll", ""))
    # sshd asks again after a refusal; an empty answer ends it.
    entered, asked, _ = login(words, {CODE: ["123456", ""]})
    assert not entered and asked == [PASS, CODE] + [CODE] * (name == "sshd")


def test_the_mark_is_not_in_the_users_environment(daemons, store):
    policy("enrollment = required")
    stack("sshd")
    words = daemons["keyboard-interactive"].command("alice", "-t")
    words[-1] = "env; echo IN-$((6*7))"
    entered, _, written = login(words, {DEMAND: ["y"], **YES})
    assert entered and "SALLYPORT" not in written


# A process, a pipe, a program, or a library that is loaded.
STARTS = re.compile(r"^(clone3?|v?fork|pipe2?|execve(at)?|wait4|waitid|prctl|kill)\(|"
                    r"^mmap\(.*PROT_EXEC|^open(at)?\(.*\.so\b")


def while_enrolling(report):
    """What each process that asked did between its demand and the backup codes, as lists of calls;
    and the calls of STARTS in all of the report."""
    begun, done, starts = {}, [], set()
    for line in report.read_text(errors="replace").splitlines():
        process, call = line.split(maxsplit=1)
        if found := STARTS.search(call):
            starts.add(found[0].split("(")[0])
        if process in begun:
            begun[process].append(call)
        if "Set it up now" in call:
            begun[process] = []
        elif "Backup codes" in call and process in begun:
            done.append(begun.pop(process))
    return done, starts


# shows: qr-code
@pytest.mark.parametrize("kind", ["sshd", "sudo", "su"])
def test_enrolling_starts_no_process_and_loads_nothing(daemons, tmp_path, kind):
    """The QR code is drawn by the process that asks, with nothing that it has not got already."""
    policy("enrollment = required")
    stack(kind)
    report = tmp_path / "strace"
    strace = ["strace", "-f", "-s", "300", "-o", str(report)]
    if kind == "sshd":
        daemon = daemons["keyboard-interactive"]
        with subprocess.Popen([*strace, "-p", str(daemon.process.pid)], stderr=subprocess.PIPE,
                              text=True) as tracer:
            assert "attached" in tracer.stderr.readline()
            entered, _, written = login(daemon.command("alice", "-t"), {DEMAND: ["y"], **YES})
            tracer.terminate()
    else:
        words = {"sudo": SUDO, "su": SU}[kind]
        entered, _, written = login([*strace, *words], {DEMAND: ["y"], **YES})
    assert entered and "\u2580" in written, written
    calls, starts = while_enrolling(report)
    # Before and after it the same report has them: the modules, and the shell.
    assert {"openat", "mmap", "execve"} <= starts
    assert calls and all("otpauth://" in "".join(of_one) for of_one in calls)
    assert [call for of_one in calls for call in of_one if STARTS.search(call)] == []


@pytest.mark.parametrize("theme, typed", [(DARK, []), (LIGHT, ["i"])], ids=["dark", "light"])
@pytest.mark.parametrize("kind, locale", [
    ("sshd", "C"), ("sshd", "C.UTF-8"), ("sudo", "C.UTF-8"), ("sudo", "C"), ("su", "C.UTF-8"), ("su", "C")])
def test_the_qr_code_is_read_from_the_screen(daemons, store, tmp_path, kind, theme, typed, locale):
    """On 80 columns and 24 lines, as drawn; on a light ground after it was inverted. An ssh client
    without UTF-8 has it drawn in ASCII, which takes more lines."""
    policy("enrollment = required")
    stack(kind)
    words = {"sudo": SUDO, "su": SU}.get(kind) or daemons["keyboard-interactive"].command(
        "alice", "-t")
    in_ascii = (kind, locale) == ("sshd", "C")
    typed = ["a"] * in_ascii + typed
    terminal = Terminal(words, rows=48 if in_ascii else 24, env={"LC_ALL": locale})
    try:
        terminal.expect(PASS)
        terminal.child.answer(PASSWORD)
        terminal.expect(DEMAND)
        terminal.child.sendline("y")
        terminal.expect(FIRST)
        for line in typed:
            terminal.child.sendline(line)
            terminal.expect(FIRST)
        read = read_as_drawn(terminal.screen, theme, tmp_path / "code.pgm")
        assert read is not None and read.startswith("otpauth://totp/"), "\n".join(terminal.rows())
        terminal.child.sendline(first_code(read))
        terminal.expect(LAST)
        terminal.child.sendline("")
        terminal.expect(IN)
    finally:
        terminal.child.close(force=True)
    assert enrolled(store)


def test_ssh_without_utf8_shows_no_code_and_the_key_enrolls(daemons, store):
    """The client writes each byte of a block character as an octal number."""
    policy("enrollment = required")
    stack("sshd")
    words = ["env", "LC_ALL=C", *daemons["keyboard-interactive"].command("alice", "-t")]
    entered, _, written = login(words, {DEMAND: ["y"], **YES})
    assert r"\342\226\200" in written and "\u2580" not in written
    assert entered and enrolled(store)


def test_scp_shows_the_backup_codes(daemons, store, tmp_path):
    policy("enrollment = required")
    stack("sshd")
    file = tmp_path / "file"
    file.write_text("x")
    words = daemons["keyboard-interactive"].command("alice")
    port = words[words.index("-p") + 1]
    options = [word for word in words[1:-2] if word not in ("-p", port)]
    command = ["scp", "-O", *options, "-P", port, str(file), "alice@127.0.0.1:/home/alice/copied"]
    _, asked, written = login(command, {DEMAND: ["y"], **YES})
    assert asked == [PASS, DEMAND, FIRST, LAST] and "Backup codes" in written
    assert Path("/home/alice/copied").read_text() == "x"


def test_login_at_a_console(store):
    """Whose shell only says that he is in."""
    shell = SCRATCH / "shell"
    shell.write_text("#!/bin/sh\necho IN-42\n")
    shell.chmod(0o755)
    before = Path("/etc/passwd").read_text()
    edit("/etc/passwd", lambda text: re.sub("(?m)^(alice:.*:)/bin/sh$", rf"\1{shell}", text))
    try:
        policy("enrollment = required")
        stack("login")
        assert not login(["login", "alice"], {DEMAND: ["n"]})[0] and not enrolled(store)
        entered, asked, written = login(["login", "alice"], {DEMAND: ["y"], **YES})
        assert entered and asked == [PASS, DEMAND, FIRST, LAST] and enrolled(store), written
        code = re.search(r"(?:\w{4}-){3}\w{4}", written).group(0)
        handed_out.append(code)
        assert login(["login", "alice"], {CODE: [code]})[:2] == (True, [PASS, CODE])
    finally:
        Path("/etc/passwd").write_text(before)


# -- demand

def test_demand_refuses_a_key_alone(store, sink):
    policy("enrollment = refuse")
    enrollment = store.enroll("alice", allow_missing=False)
    stack("sshd", account=(f"{ACCOUNT} demand",))
    daemon = Sshd("publickey")
    try:
        with sink.watch() as lines:
            assert not login(daemon.command("alice", "-t"), {CODE: [enrollment.code()]})[0]
        assert any("reason=no-prompt" in line.text for line in lines)
        stack("sshd")
        assert login(daemon.command("alice", "-t"), {})[0]
    finally:
        daemon.stop()


def test_demand_asks_in_sudo_despite_nopasswd_and_a_ticket(store):
    policy("enrollment = refuse")
    enrollment = store.enroll("alice", allow_missing=False)
    stack("sudo", account=(f"{ACCOUNT} demand",))
    plain = as_user("alice", "sudo", "/bin/sh", "-c", "echo IN-$((6*7))")
    sudoers = Path("/etc/sudoers")
    before = sudoers.read_text()
    try:
        edit(sudoers, lambda text: text + "alice ALL=(ALL) NOPASSWD: ALL\n")
        assert login(plain, {CODE: [enrollment.wrong()]})[:2] == (False, [CODE])
        assert login(plain, {CODE: [enrollment.code()]})[:2] == (True, [CODE])
        edit(sudoers, lambda _: before + "Defaults timestamp_timeout=5,!tty_tickets\n")
        codes = enrollment.backup_codes
        script = "sudo -k; sudo true && sudo /bin/sh -c 'echo IN-$((6*7))'"
        words = as_user("alice", "sh", "-c", script)
        assert login(words, {CODE: codes[:2]})[:2] == (True, [PASS, CODE, CODE])
    finally:
        sudoers.write_text(before)
