"""The story of somebody who lost her phone and her backup codes, typed by four people on a clean Debian: root,
alice, harry of the helpdesk, who is not root, and the one who found the old phone and knows her password.

They type in a terminal of that machine, and log in over ssh. Systemd is installed there for its journal, which
is started by itself; before others where it can be, since it looks at a program only while that runs.
"""

import re

import pexpect

from clean import SUITE, copied, extended
from journey import CLEAN, INCLUDED, PASSWORD, READY, REPOSITORY, clean
from support.codes import totp

POLICY = """[default]
helpdesk = helpers
helpdesk_for = staff
helpdesk_may = status, unlock, pass, pass-enroll
"""
PEOPLE = f"""
useradd --create-home --shell /bin/bash --user-group --groups helpers harry
useradd --create-home --shell /bin/bash --user-group --groups staff alice
printf '%s\\n' 'alice:{PASSWORD}' 'harry:{PASSWORD}' | chpasswd
"""
JOURNAL = """
mount -t tmpfs none /sys && mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/systemd/journal /var/log/journal
touch /run/systemd/journal/flushed
(chrt --fifo 10 /lib/systemd/systemd-journald || /lib/systemd/systemd-journald) &
until [ -S /run/systemd/journal/dev-log ]; do sleep 0.05; done
ln -s /run/systemd/journal/dev-log /dev/log
"""
TERMINAL = """
hostname web1; ip link set lo up; mkdir -p /run/sshd
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; ln -sf pts/ptmx /dev/ptmx
"""
PASS = r"\bP[0-9A-Z]{3}(?:-[0-9A-Z]{4})+-[0-9A-Z]\b"


def prepare(root, suite=SUITE):
    """A server with its people, as it is before Sallyport."""
    copied(extended(CLEAN, INCLUDED, "story", "systemd", suite), root)
    (root / "etc/hostname").write_text("web1\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost web1\n")
    (root / "etc/motd").write_text("")
    (root / "root/.bashrc").write_text(f"PS1='{READY}'\nbind 'set enable-bracketed-paste off'\n")
    for path in (REPOSITORY / ".build/deb").glob("*.deb"):
        (root / "srv" / path.name).write_bytes(path.read_bytes())
    return root


class Phone:
    """An app with one key. Each code is good once, so it shows each once."""

    def __init__(self):
        self.secret, self.shown = None, []

    def scan(self, screen):
        self.secret = re.findall(r"[?&]secret=([A-Z2-7]+)", screen)[-1]

    def code(self):
        self.shown.append(next(code for code in totp(self.secret, 5) if code not in self.shown))
        return self.shown[-1]


class Machine:
    """A terminal of the machine, root's until somebody logs in."""

    prompts = {
        "ready": re.escape(READY), "in": r"\w+@web1:~\$ $", "password": r"[Pp]assword: ?$",
        "code": r"Verification code[^:\n]*: ?$", "first": r"Code shown by the app: ?$",
        "enroll": r"Set it up now\? \[y/n\]: ?$", "codes": r"when you have them: ?$",
        "host": r"\(yes/no/\[fingerprint\]\)\? ?$",
    }

    def __init__(self, root):
        setup = f"ulimit -n 1024; exec 2>>/root/setup.log; {TERMINAL}{JOURNAL}groupadd helpers; {PEOPLE}"
        setup += "service ssh start >&2; cd /srv; exec 2>&1 bash --rcfile /root/.bashrc -i"
        self.child = pexpect.spawn(
            "unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts",
                        f"--root={root}", "--wd=/", "/bin/bash", "-c", setup],
            encoding="utf-8", timeout=60, dimensions=(60, 160),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                 "TERM": "xterm", "DEBIAN_FRONTEND": "noninteractive"})
        self.child.expect_exact(READY)

    def type(self, command, phone=None, code=None, until=("ready", "in")):
        """Types it and answers its questions, as somebody with that phone or that code; what was seen."""
        self.child.sendline(command)
        self.child.expect(r"\r\n")
        seen, kinds = "", list(self.prompts)
        while True:
            kind = kinds[self.child.expect([self.prompts[kind] for kind in kinds])]
            seen += self.child.before + self.child.after
            if kind in until:
                return clean(seen)
            if kind == "first":
                phone.scan(seen)
            if kind in ("password", "code"):
                self.child.waitnoecho(5)
            self.child.sendline({"password": lambda: PASSWORD, "code": lambda: code or phone.code(),
                                 "first": phone and phone.code, "enroll": lambda: "y",
                                 "codes": lambda: "", "host": lambda: "yes"}[kind]())

    def login(self, user, phone=None, code=None):
        """Over ssh; whether that person got in, and what was seen."""
        seen = self.type(f"ssh -o NumberOfPasswordPrompts=1 {user}@localhost", phone, code)
        return seen.endswith(f"{user}@web1:~$"), seen

    def close(self):
        self.child.close(force=True)


class Story:
    """Each step is one person's, in the order of the day."""

    def __init__(self, machine):
        self.machine = machine
        self.harrys, self.old, self.new = Phone(), Phone(), Phone()

    def root_sets_it_up(self):
        machine = self.machine
        machine.type("apt-get install --yes ./libpam-sallyport_*.deb ./sallyport_*.deb >/root/apt.log 2>&1")
        machine.type(f"printf '%s' '{POLICY}' >/etc/security/sallyport.conf")
        assert "OK" in machine.type("sallyport config check && echo OK")
        machine.type("sallyport enroll harry", self.harrys)
        machine.type("sallyport enroll alice", self.old)
        machine.type("sallyport pam enable sshd --yes")
        machine.type("/etc/init.d/sallyport start")

    def harry_gives_a_pass(self):
        entered, seen = self.machine.login("harry", self.harrys)
        assert entered, seen
        seen = self.machine.type("sallyport pass alice --enroll", self.harrys)
        given = re.findall(PASS, seen)
        assert len(given) == 1, seen
        assert "uid=0" not in self.machine.type("id; sudo -n true; exit")
        return given[0]

    def alice_enrolls_with_it(self, given):
        entered, seen = self.machine.login("alice", self.new, given)
        assert entered, seen
        assert seen.count("Verification code") == 1 and "Press Enter" in seen
        self.machine.type("exit")

    def the_finder_tries(self):
        entered, seen = self.machine.login("alice", self.old)
        assert not entered and "Permission denied" in seen, seen

    def alice_logs_in(self):
        """What she is told."""
        entered, seen = self.machine.login("alice", self.new)
        assert entered, seen
        self.machine.type("exit")
        return " ".join(seen.split())

    def log(self):
        """What log tells of alice, without the times."""
        self.machine.type("journalctl --sync")
        lines = self.machine.type("sallyport log alice").splitlines()[:-1]
        return [re.sub(r"(today|yesterday) \d\d:\d\d(  )?", "", line) for line in lines]
