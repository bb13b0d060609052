"""An administrator's way from two clean machines and a database to the first login of a fleet: the commands
of docs/fleet.md, typed as they stand there, with real packages, in a network of their own.

The database is a primary and its synchronous standby on two more machines of that network. Systemd is not
there: a stand-in starts what the unit of the verifier says, as the user it names, and sallyportd is started
by its script, as on a Debian without systemd.
"""

import re
import shutil
from pathlib import Path

import pexpect

from clean import copied
from support.codes import totp
from support.machines import Network
from support.postgres import PASSWORD, Pair
from support.service import soon

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs/fleet.md"
SYSTEMCTL = """#!/bin/sh
[ "$1 $2" = "enable --now" ] || exit 64
unit=/lib/systemd/system/$3.service
user=$(sed -n 's/^User=//p' "$unit")
env -u HOME setsid setpriv --reuid "$user" --regid "$user" --init-groups $(sed -n 's/^ExecStart=//p' "$unit") \\
  </dev/null >/root/verifier.log 2>&1 &
"""


def blocks(heading, language):
    """The blocks of that language in a section of the page, without what indents them."""
    section = re.search(rf"^{heading}\n(.*?)^## ", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", section, re.DOTALL | re.MULTILINE)
    return ["\n".join(line.removeprefix(indent) for line in text.splitlines()) for indent, text in found]


def commands():
    """Those for the verifier, and those for the host; one a line."""
    one, web1 = (block.splitlines() for block in blocks("## Ten commands", "sh"))
    return one, web1


class Terminal:
    """A shell on a machine of the network, in a clean Debian, and somebody in front of it."""

    def __init__(self, machine, root, setup=""):
        self.root, self.ready, self.secret, self.codes = root, f"root@{machine.name}:/srv# ", None, []
        (root / "etc/hostname").write_text(machine.name + "\n")
        (root / "etc/hosts").write_bytes(machine.read("/etc/hosts"))
        (root / "root/.bashrc").write_text(f"PS1='{self.ready}'\nbind 'set enable-bracketed-paste off'\n")
        setup = ("ulimit -n 1024; mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; "
                 f"ln -sf pts/ptmx /dev/ptmx; mkdir -p /run/sshd; {setup} cd /srv; exec bash --rcfile /root/.bashrc -i")
        self.child = pexpect.spawn(
            "nsenter", ["--target", str(machine.init), "--net", "--uts", "--", "unshare", "--mount", "--pid", "--fork",
                        "--kill-child", "--mount-proc", f"--root={root}", "--wd=/", "/bin/bash", "-c", setup],
            encoding="utf-8", timeout=100, dimensions=(60, 200),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "xterm",
                 "DEBIAN_FRONTEND": "noninteractive"})
        self.child.expect_exact(self.ready)

    def code(self):
        """The app's next code, which was not typed yet."""
        self.codes.append(next(code for code in totp(self.secret, 4) if code not in self.codes))
        return self.codes[-1]

    def type(self, command, token="", password=PASSWORD, code=None):
        """What was on the screen until the next prompt; each question is answered as it must be."""
        self.child.sendline(command)
        self.child.expect(r"\r\n")
        answers = {r"Token: $": lambda: token, r"Code shown by the app: ?$": self.code,
                   r"Verification code: ?$": lambda: code or self.code(), r"[Pp]assword: ?$": lambda: password,
                   r"\[y/n\]: ?$": lambda: "y", r"\(yes/no/\[fingerprint\]\)\? $": lambda: "yes",
                   r"when you have them: ?$": lambda: "", r"alice@web1:~\$ $": lambda: "exit"}
        seen = ""
        while True:
            found = self.child.expect([re.escape(self.ready), *answers])
            seen += self.child.before + (self.child.after if found else "")
            shown = re.findall(r"[?&]secret=([A-Z2-7]+)", seen)
            self.secret = shown[-1] if shown else self.secret
            if found == 0:
                return seen
            asked = list(answers)[found - 1]
            if asked.startswith(("Token", "Verification", "[Pp]assword")):
                self.child.waitnoecho(5)
            self.child.sendline(answers[asked]())

    def succeeds(self, command, **more):
        seen = self.type(command, **more)
        status = re.findall(r"status=(\d+)", self.type("echo status=$?"))[-1]
        assert status == "0", f"{command}: {status}\n{seen}"
        return seen

    def close(self):
        self.child.close(force=True)


class Fleet:
    """Two clean machines, `one` and `web1`, and the database that the page asks for."""

    def __init__(self, clean, scratch):
        self.clean, self.scratch, self.network = clean, scratch, Network()

    def __enter__(self):
        self.network.__enter__()
        try:
            db1, db2, one, web1 = self.network.add("db1", "db2", "one", "web1")
            self.pair = Pair(self.network, db1, db2)
            self.pair.primary.sql("DROP ROLE sallyport_verifier")
            [sql] = blocks("## Before you start", "sql")
            for statement in sql.replace("'PASSWORD'", f"'{PASSWORD}'").splitlines():
                self.pair.primary.sql(statement)
            self.one = self._verifier(one)
            self.web1 = self._host(web1)
            self.address = one.address
        except BaseException:
            self.network.__exit__()
            raise
        return self

    def __exit__(self, *what):
        for terminal in self.one, self.web1:
            terminal.close()
        self.network.__exit__(*what)

    def _root(self, name, *packages):
        root = copied(self.clean, self.scratch / name)
        for package in packages:
            [path] = (REPOSITORY / ".build/deb").glob(f"{package}_*.deb")
            shutil.copy(path, root / "srv")
        return root

    def _verifier(self, machine):
        root = self._root("one", "sallyport-verifier")
        (root / "usr/local/sbin").mkdir(exist_ok=True)
        (root / "usr/local/sbin/systemctl").write_text(SYSTEMCTL)
        (root / "usr/local/sbin/systemctl").chmod(0o755)
        files = {"pgpass": "".join(f"*:*:*:sallyport_{role}:{PASSWORD}\n" for role in ("owner", "verifier")),
                 "sallyport.conf": blocks("## Ten commands", "ini")[0] + "\n",
                 "database.crt": (self.network.scratch / "server.crt").read_text()}
        for name, text in files.items():
            (root / "srv" / name).write_text(text)
        return Terminal(machine, root, "PATH=/usr/local/sbin:$PATH;")

    def _host(self, machine):
        root = self._root("web1", "libpam-sallyport", "sallyport")
        (root / "etc/motd").write_text("")
        accounts = [("admin", "--groups sudo"), ("alice", "")]
        setup = "".join(f"useradd --create-home --shell /bin/bash {more} {name}; echo '{name}:{PASSWORD}' | chpasswd; "
                        for name, more in accounts)
        return Terminal(machine, root, setup + "service ssh start >/dev/null;")

    def set_up(self):
        """Types the page; how many commands these were."""
        one, web1 = commands()
        for command in one:
            seen = self.one.succeeds(command.replace("192.0.2.11", self.address))
            if "systemctl" in command:
                assert soon(lambda: "LISTEN" in self.one.type("ss -Hltn sport = 7353"), 60), self.one.type("cat /root/*.log")
        token = seen.split()[-1]
        for command in web1:
            self.web1.succeeds(command, token=token)
            if command.startswith("apt-get"):
                self.web1.succeeds("service sallyport start")
        return len(one) + len(web1)
