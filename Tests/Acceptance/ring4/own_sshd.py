"""The machine's own sshd, on the settings that Debian ships."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from support.hosts import (PAM_D, PATIENT, SCRATCH, UIDS, Sshd, add_account, converse, edit,
                           remove_account)
from support.sallyport import COMMAND, sallyport

CONFIG = Path("/etc/ssh/sshd_config")
DROP_INS = Path("/etc/ssh/sshd_config.d")
OURS = DROP_INS / "00-sallyport.conf"
PACKAGED = Path("/usr/share/openssh/sshd_config").read_text()
METHODS = ["password+code", "key+code", "key+password+code"]


# sshd starts once a client comes, with the directory that its unit makes; again where it ended.
SOCKET = """
import os, select, signal, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
sshd, start = None, "mkdir -p /run/sshd; exec /usr/sbin/sshd "
def stop(*_):
    if sshd:
        os.kill(sshd.pid, signal.SIGTERM)
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
print("listening", flush=True)
while True:
    select.select([listener], [], [])
    if sys.argv[2] == "yes":
        client = listener.accept()[0]
        subprocess.Popen(["sh", "-c", start + "-i"], stdin=client, stdout=client)
    else:
        os.dup2(listener.fileno(), 3)
        given = "export LISTEN_FDS=1 LISTEN_PID=$$; "
        sshd = subprocess.Popen(["sh", "-c", given + start + "-D -e"], pass_fds=[3])
        sshd.wait()
"""


class Daemon(Sshd):
    """The machine's sshd, as its unit starts it, on a port of its own."""

    def __init__(self, *options):
        shutil.rmtree(DROP_INS)
        DROP_INS.mkdir()
        CONFIG.write_text(PACKAGED)
        self.directory = SCRATCH / "own-sshd"
        self.directory.mkdir(exist_ok=True)
        for key in ("host", "alice"):
            if not (self.directory / key).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                                self.directory / key], check=True)
        for name, uid in {**UIDS, "git": 3009}.items():
            keys = Path("/home", name, ".ssh")
            keys.mkdir(parents=True, exist_ok=True)
            (keys / "authorized_keys").write_text((self.directory / "alice.pub").read_text())
            for path in (keys.parent, keys, keys / "authorized_keys"):
                os.chown(path, uid, uid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (DROP_INS / "90-here.conf").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.directory}/host\n"
            "MaxStartups 100\nUseDNS no\n")
        self.log = open(self.directory / "log", "w")
        self.options = options
        self.process = None

    def start(self):
        Path("/run/sshd").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", *PATIENT, *self.options], stderr=self.log)
        self._wait()
        return self

    def reload(self):
        """As at the next start of the machine: sshd reads what is on the disk."""
        Path("/run/sshd.pid").unlink(missing_ok=True)
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while not Path("/run/sshd.pid").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        self._wait()

    def wait_for_a_client(self, each="no"):
        """Listens in its place, as systemd by ssh.socket with Accept=yes or no."""
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", SOCKET, str(self.port), each], stdout=subprocess.PIPE,
            stderr=self.log)
        assert self.process.stdout.readline() == b"listening\n"

    def stop(self):
        if self.process:
            super().stop()

    def by_key(self, user="alice"):
        """Whether a key alone is enough."""
        done = subprocess.run(
            self.command(user, "-o", "BatchMode=yes", "-o", "PreferredAuthentications=publickey"),
            capture_output=True, text=True, timeout=30)
        return "IN-42" in done.stdout

    def prompted(self, user, code, password):
        """Prompts, and no key."""
        command = self.command(user, "-o", "PreferredAuthentications=keyboard-interactive,password")
        return converse(command, code, password)[0]

    def offers(self):
        """The methods with which a client may go on; it waits for an sshd that restarts."""
        command = self.command("nobody", "-o", "BatchMode=yes",
                               "-o", "PreferredAuthentications=none")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            if found := re.search(r"Permission denied \((.*)\)", done.stderr):
                return found[1]
            time.sleep(0.02)
        raise AssertionError(done.stderr)


@pytest.fixture
def daemon(debian, store):
    add_account("git", 3009)
    edit("/etc/shadow", lambda text: re.sub("(?m)^git:[^:]*", "git:!", text))
    daemon = Daemon()
    yield daemon
    daemon.stop()
    remove_account("git")
    shutil.rmtree(DROP_INS)
    DROP_INS.mkdir()
    CONFIG.write_text(PACKAGED)
    Path("/run/sshd.pid").unlink(missing_ok=True)


def enable(*words):
    return sallyport("pam", "enable", "sshd", "--yes", *words)


def content():
    """Everything that turning on may change."""
    return {str(path): path.read_bytes() for path in [*PAM_D.iterdir(), *DROP_INS.iterdir(), CONFIG]}


# Between any two steps stands one of these calls, and nothing changes from fsync to the next of
# them; of the last there are two for each program run.
CALLS = {"link": 1, "rename": 1, "unlink": 1, "kill": 1, "pipe2": 48}


def signalled(sent, call, count, *arguments):
    """Runs the command, with a signal at its `count`th `call`; its status."""
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
              "-e", f"inject={call}:signal={sent}:when={count}"]
    done = subprocess.run([*strace, COMMAND, *arguments], capture_output=True, timeout=60)
    return done.returncode


def killed(call, count, *arguments):
    return signalled("SIGKILL", call, count, *arguments) in (-9, 137)


def visible():
    """The files that somebody reads, without what a kill leaves of others."""
    return {name: text for name, text in content().items()
            if "before-sallyport" not in name and not Path(name).name.startswith(".")}
