"""What a person feels: a whole login through sshd and through sudo, on a pseudo-terminal."""

import os
import pty
import re
import time
from pathlib import Path
from statistics import median

from support.hosts import PASSWORD, Sshd, add_account, as_user, edit, service
from modules import code
from report import OURS, THEIRS, paired

USER = "alice"
CODE_PROMPT = re.compile(r"(Verification code|One-time password).*: ?$")
PASSWORD_PROMPT = re.compile(r"[Pp]assword.*: ?$")


def prepare():
    add_account(USER, 3001)
    edit(Path("/etc/sudoers"), lambda text: text +
         f"Defaults lecture=never, timestamp_timeout=0, passwd_tries=1\n{USER} ALL=(ALL) ALL\n")


def converse(command, answer):
    """Seconds from start to end of a program whose prompts are answered at once."""
    begun = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    seen = written = ""
    while True:
        try:
            piece = os.read(terminal, 4096).decode("latin-1")
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen, written = seen + piece, written + piece
        if CODE_PROMPT.search(seen):
            seen = ""
            os.write(terminal, f"{answer}\n".encode())
        elif PASSWORD_PROMPT.search(seen):
            seen = ""
            os.write(terminal, f"{PASSWORD}\n".encode())
    os.close(terminal)
    os.waitpid(child, 0)
    taken = time.monotonic() - begun
    assert "IN-42" in written, written
    return taken * 1e3


def logins(modules, host, command, rounds):
    """{name: milliseconds}, in turn; each login has an enrollment of its own."""
    taken = {module.name: [] for module in modules}
    for _ in range(rounds):
        for module in modules:
            service(host, "required pam_unix.so nodelay", module.line())
            now = int(time.time())
            module.enroll([USER], now)
            taken[module.name].append(converse(command, code(now)))
    return taken


def rows(report, host, taken, target, less):
    report.row(f"{host}, milliseconds", {name: median(values) for name, values in taken.items()},
               ratio=paired(taken[OURS], taken[THEIRS]))
    control = taken["pam_permit"]
    report.row("  more than pam_permit, ms" if less else "  to pam_permit's", {
        name: median(a - b if less else a / b for a, b in zip(values, control))
        for name, values in taken.items() if name != "pam_permit"}, target, ratio=False)


def measure(report, modules, short):
    report.section("3. What the user feels (password, then code)")
    rounds = 12 if short else 60
    daemon = Sshd("keyboard-interactive")
    try:
        rows(report, "ssh to sshd", logins(modules, "sshd", daemon.command(USER), rounds),
             "ours: <= 1.03", less=False)
    finally:
        daemon.stop()
    command = as_user(USER, "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")
    rows(report, "sudo", logins(modules, "sudo", command, rounds), "ours: <= 3.0", less=True)
