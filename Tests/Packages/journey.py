"""A new administrator's way from the packages to the first login with a code: the commands that
stand in the README under "From the package to the first code", typed as they stand there.

    Tests/Packages/run --journey

types them in a shell of a clean Debian 12 (a copy of its root directory, with namespaces and a network
of its own), writes what is seen and how long it took to .build/first-login.txt, and fails if a command
does, if the login is let in without a code, or with one that was used, or if docs/first-login.md shows
what was not seen. User, password, key and codes are made for the run and gone with it. Then it does the same for google-authenticator
(peer_journey.py), on another copy, and counts what either asks of a person.
"""

import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pexpect

from clean import SUITE, copied, made
from support.codes import totp

REPOSITORY = Path(__file__).parents[2]
CLEAN = REPOSITORY / ".build/packages/journey"
PAGE = REPOSITORY / "docs/first-login.md"
TRANSCRIPT = REPOSITORY / ".build/first-login.txt"
# What the packages ask for, an sshd and a sudo as a server has them, and the authenticator app.
INCLUDED = ("libssl3,libstdc++6,sensible-utils,openssh-server,openssh-client,sudo,"
            "oathtool,iproute2,netbase")
PASSWORD = "correct horse"
READY = "root@web1:/srv# "

def commands():
    """The shell block of the README, a command each; a here-document is part of its command."""
    text = (REPOSITORY / "README.md").read_text()
    block = re.search(r"## From the package to the first code\n.*?```sh\n(.*?)```", text, re.DOTALL)
    found, ending = [], None
    for line in block[1].splitlines():
        if ending:
            found[-1] += "\n" + line
            ending = None if line == ending else ending
            continue
        found.append(line.split("  # ")[0].rstrip())
        here = re.search(r"<<'(\w+)'", line)
        ending = here[1] if here else None
    return found


def prepare(root, suite=SUITE):
    """A server with a user, as somebody has it before Sallyport."""
    copied(made(CLEAN, INCLUDED, suite), root)
    (root / "etc/hostname").write_text("web1\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost web1\n")
    (root / "root/.bashrc").write_text("PS1='root@web1:/srv# '\nbind 'set enable-bracketed-paste off'\n")
    # Its greeting would tell of the kernel that this run had.
    shutil.rmtree(root / "etc/update-motd.d", ignore_errors=True)
    (root / "etc/motd").write_text("")
    for path in (REPOSITORY / ".build/deb").glob("*.deb"):
        shutil.copy(path, root / "srv")


@dataclass
class Tally:
    """What a way asks of a person, up to the prompts of the login itself, and of the machine."""
    lines: int
    answers: int
    files: int
    seconds: float


class Shell:
    """A terminal of that machine, and somebody with an app in front of it."""

    def __init__(self, root):
        setup = ("ulimit -n 1024; hostname web1; ip link set lo up; "
                 "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; ln -sf pts/ptmx /dev/ptmx; mkdir -p /run/sshd; "
                 "useradd --create-home --shell /bin/bash alice; "
                 "echo debconf debconf/frontend select Noninteractive | debconf-set-selections; "
                 f"echo 'alice:{PASSWORD}' | chpasswd; service ssh start >/dev/null; cd /srv; "
                 "exec bash --rcfile /root/.bashrc -i")
        self.child = pexpect.spawn(
            "unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net",
                        "--uts", f"--root={root}", "--wd=/", "/bin/bash", "-c", setup],
            encoding="utf-8", timeout=100, dimensions=(60, 100),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                 "TERM": "xterm", "DEBIAN_FRONTEND": "noninteractive"})
        self.secret, self.codes, self.answers = None, [], 0
        self.child.expect_exact(READY)

    def code(self):
        """The app's next code; each is good once, so one of the next steps where it was used."""
        code = next(code for code in totp(self.secret, 4) if code not in self.codes)
        self.codes.append(code)
        return code

    def type(self, command, code=None, password=PASSWORD):
        """Types a command and answers its questions; what was on the screen, and the seconds."""
        start = time.monotonic()
        seen = ""
        # A line at a time, as a person does: the shell shows what it asks for more with.
        for line in command.splitlines():
            self.child.sendline(line)
            self.child.expect_exact(line)
            seen += self.child.before + line
        while True:
            found = self.child.expect([
                re.escape(READY), r"Code shown by the app: $", r"Verification code: ?$",
                r"[Pp]assword: ?$", r"\[y/N\]: ?$", r"\(yes/no/\[fingerprint\]\)\? $",
                r"alice@web1:~\$ $", r"Do you want to continue\? \[Y/n\] $",
                r"Enter code from app \(-1 to skip\): $", r"\(y/n\) $"])
            seen += self.child.before + (self.child.after if found else "")
            shown = re.findall(r"(?:[?&]secret=|secret key is: )([A-Z2-7]+)", seen)
            self.secret = shown[-1] if shown else self.secret
            if found == 0:
                return clean(seen), time.monotonic() - start
            if found in (2, 3):
                self.child.waitnoecho(5)
            answer = {1: self.code, 2: lambda: code or self.code(), 3: lambda: password,
                      4: lambda: "y", 5: lambda: "yes", 6: lambda: "exit", 7: lambda: "y",
                      8: self.code, 9: lambda: "y"}[found]()
            self.answers += found in (1, 4, 7, 8, 9)
            self.child.sendline(answer)
            if found == 2:
                seen += f"{answer}"

    def status(self):
        said, _ = self.type("echo status=$?")
        return int(re.findall(r"status=(\d+)", said)[-1])


def clean(text):
    """Without what moves the cursor or colours; of a line that was written over, what is left."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07", "", text)
    lines = [line.rstrip("\r").split("\r")[-1].rstrip() for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def walk(shell, typed):
    """Types all; the transcript, {first line of a command: seconds}."""
    parts, times = [], {}
    for command in typed:
        seen, seconds = shell.type(command)
        status = shell.status()
        # doctor: 1 is a warning, such as a clock that nobody says is right.
        good = (0, 1) if " doctor" in command else (0,)
        assert status in good, f"{command}: exit status {status}\n{seen}"
        times[command.splitlines()[0]] = seconds
        parts.append(f"{READY}{seen}\n")
        if command.startswith("ssh "):
            assert "Verification code:" in seen and "alice@web1:~$" in seen, seen
    return parts, times


def tally(shell, typed, times, files):
    lines = sum(len(command.splitlines()) for command in typed)
    return Tally(lines, shell.answers, files, sum(times.values()))


def refused(shell, login):
    """The same login without a right code is not let in."""
    once = "-o NumberOfPasswordPrompts=1"
    for code in (shell.codes[-1], "000000"):
        seen, _ = shell.type(login.replace("ssh ", f"ssh {once} ", 1), code=code)
        assert "Permission denied" in seen and "alice@web1" not in seen.split("denied")[1], seen


def way(suite=SUITE):
    """The README's: the transcript, the seconds, and what it takes."""
    directory = Path(tempfile.mkdtemp(prefix="sallyport-journey."))
    try:
        prepare(directory / "root", suite)
        shell = Shell(directory / "root")
        parts, times = walk(shell, commands())
        taken = tally(shell, commands(), times, 0)
        refused(shell, commands()[-1])
        shell.child.close(force=True)
    finally:
        shutil.rmtree(directory)
    return parts, times, taken


def not_seen(parts):
    """The lines of the page that the transcript does not show, in this order; codes are any."""
    def shape(line):
        return re.sub(r"\b\d{6}\b", "CODE", line.rstrip())
    block = re.search(r"^```\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
    seen, missing, skips = "".join(parts).splitlines(), [], True
    for line in block.splitlines():
        if line == "…":
            skips = True
            continue
        places = [place for place, other in enumerate(seen) if shape(other) == shape(line)]
        if places and (skips or places[0] == 0):
            seen = seen[places[0] + 1:]
        else:
            missing.append(line)
        skips = False
    return missing


def compared(ours, theirs):
    """The table of what both take."""
    rows = [("lines typed at the shell", ours.lines, theirs.lines),
            ("answers given before the login", ours.answers, theirs.answers),
            ("files opened in an editor", ours.files, theirs.files),
            ("seconds of the machine", f"{ours.seconds:.1f}", f"{theirs.seconds:.1f}")]
    head = "| | Sallyport | google-authenticator |\n|---|--:|--:|\n"
    return head + "".join(f"| {name} | {one} | {other} |\n" for name, one, other in rows)


def main():
    import peer_journey
    parts, times, ours = way()
    theirs = peer_journey.way()
    seconds = "".join(f"{spent:6.1f} s  {command}\n" for command, spent in times.items())
    TRANSCRIPT.write_text("".join(parts) + "\n" + seconds)
    print(f"{''.join(parts)}\n{seconds}\n{compared(ours, theirs)}")
    if missing := not_seen(parts):
        return f"{PAGE.name} shows what was not seen:\n" + "\n".join(missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
