"""Programs of Debian's that ask by PAM, on the private machine. What listens does so in a network
of its own, with nothing but its loopback in it."""

import ctypes
import ftplib
import imaplib
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pexpect
import pytest

from support.hosts import as_user, converse
from support.typist import Child

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PROGRAMS = "/usr/sbin:/usr/bin:/usr/lib/polkit-1:/usr/lib/dovecot:/usr/libexec/xsecurelock"


def needs(program, package):
    """Skips where a program is missing, and says which."""
    path = shutil.which(program, path=PROGRAMS)
    if path is None:
        pytest.skip(f"{program} ({package}) is not installed")
    return path


def eventually(test, what, seconds=20):
    """Waits until `test` is true; OSError is not yet."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if test():
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(what)


class Daemon:
    """A program in the foreground; its network is gone with it."""

    host, port = "127.0.0.1", None

    def __init__(self, directory, *command):
        needs("ip", "iproute2")
        self.log = open(directory / "daemon.log", "w+")
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh",
             *map(str, command)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True)  # saslauthd ends its whole group
        try:
            eventually(self._is_ready, f"{command[0]} does not come up")
        except AssertionError as trouble:
            self.stop()
            raise AssertionError(f"{trouble}: {Path(self.log.name).read_text()}") from None

    def _is_ready(self):
        assert self.process.poll() is None, "it ended"
        if os.readlink(f"/proc/{self.process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            return False
        return self.ready()

    def ready(self):
        return self.within(self._answers)

    def _answers(self):
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def within(self, work):
        """What `work` comes to in the daemon's network: a thread of its own goes there."""
        outcome = []

        def run():
            try:
                with open(f"/proc/{self.process.pid}/ns/net") as network:
                    if LIBC.setns(network.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                outcome.append((work(), None))
            except BaseException as trouble:  # pylint: disable=broad-except
                outcome.append((None, trouble))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        value, trouble = outcome[0]
        if trouble is not None:
            raise trouble
        return value

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Vsftpd(Daemon):
    service, port, package = "vsftpd", 2121, "vsftpd"

    def __init__(self, directory):
        Path("/run/vsftpd/empty").mkdir(parents=True, exist_ok=True)
        config = directory / "vsftpd.conf"
        config.write_text(
            f"listen=YES\nlisten_ipv6=NO\nlisten_address=127.0.0.1\nlisten_port={self.port}\n"
            "background=NO\nanonymous_enable=NO\nlocal_enable=YES\npam_service_name=vsftpd\n"
            "secure_chroot_dir=/run/vsftpd/empty\ndelay_failed_login=0\n")
        super().__init__(directory, needs("vsftpd", self.package), config)

    def enter(self, user, typed):
        def log_in():
            with ftplib.FTP() as client:
                client.connect("127.0.0.1", self.port, timeout=20)
                try:
                    return client.login(user, typed).startswith("230")
                except ftplib.error_perm as refusal:
                    assert str(refusal).startswith("530"), refusal
                    return False
        return self.within(log_in)


DOVECOT_2_3 = """disable_plaintext_auth = no
mail_location = maildir:~/Maildir
passdb {
  driver = pam
  args = dovecot
}
userdb {
  driver = passwd
}
"""
DOVECOT_2_4 = """dovecot_config_version = 2.4.0
dovecot_storage_version = 2.4.0
auth_allow_cleartext = yes
mail_driver = maildir
mail_path = ~/Maildir
passdb pam {
  service_name = dovecot
}
userdb passwd {
}
"""


def dovecot_version():
    said = subprocess.run(["dovecot", "--version"], capture_output=True, text=True, check=True)
    return tuple(int(number) for number in said.stdout.split(".")[:2])


class Dovecot(Daemon):
    service, port, package = "dovecot", 1143, "dovecot-imapd"

    def __init__(self, directory):
        needs("imap", self.package)
        config = directory / "dovecot.conf"
        config.write_text(
            (DOVECOT_2_4 if dovecot_version() >= (2, 4) else DOVECOT_2_3) +
            "protocols = imap\nlisten = 127.0.0.1\nssl = no\n"
            "base_dir = /run/dovecot\nlog_path = /dev/stderr\nauth_failure_delay = 0\n"
            f"service imap-login {{\n  inet_listener imap {{\n    port = {self.port}\n  }}\n"
            "  inet_listener imaps {\n    port = 0\n  }\n}\n"
            # Else it lets each refusal from an address wait longer than the one before: 2, 4, 8, 15 s.
            "service anvil {\n  unix_listener anvil-auth-penalty {\n    mode = 0\n  }\n}\n")
        super().__init__(directory, needs("dovecot", self.package), "-F", "-c", config)

    def enter(self, user, typed):
        def log_in():
            client = imaplib.IMAP4("127.0.0.1", self.port, timeout=20)
            try:
                return client.login(user, typed)[0] == "OK"
            except imaplib.IMAP4.error as refusal:
                assert "AUTHENTICATIONFAILED" in str(refusal), refusal
                return False
            finally:
                client.shutdown()
        return self.within(log_in)


class XrdpSesman(Daemon):
    """xrdp asks it whether somebody may log in: by its version 0, on a port, or since xrdp 0.10 by
    libipm's messages, on a socket."""

    service, port, package = "xrdp-sesman", 3350, "xrdp"
    host = "::1"
    SOCKET = Path("/run/xrdp/sockdir/sesman.socket")

    def __init__(self, directory):
        self.SOCKET.unlink(missing_ok=True)
        super().__init__(directory, needs("xrdp-sesman", self.package), "--nodaemon")

    def _answers(self):
        return self.SOCKET.is_socket() or super()._answers()

    def enter(self, user, typed):
        if self.SOCKET.is_socket():
            return self._enter_by_libipm(user, typed)
        body = struct.pack(">H", 4)
        for text in (user, typed):
            body += struct.pack(">H", len(text)) + text.encode()
        request = struct.pack(">II", 0, 8 + len(body)) + body

        def log_in():
            with socket.create_connection((self.host, self.port), timeout=20) as client:
                client.sendall(request)
                answer = client.recv(64)
            version, _, kind, result = struct.unpack(">IIHH", answer[:12])
            assert (version, kind) == (0, 4) and result in (0, 7), answer  # 7: PAM_AUTH_ERR
            return result == 0
        return self.within(log_in)

    def _enter_by_libipm(self, user, typed):
        """Version 2 of the messages; facility 1, number 2 asks, and number 4 is the answer."""
        body = b"".join(b"s" + text.encode() + b"\0" for text in (user, typed, ""))
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(self.SOCKET))
            client.sendall(struct.pack("<HHHHI", 2, 12 + len(body), 1, 2, 0) + body)
            answer = client.recv(64)
        version, _, facility, number, _, kind, result = struct.unpack("<HHHHIci", answer[:17])
        assert (version, facility, number, kind) == (2, 1, 4, b"i") and result in (0, 3), answer
        return result == 0


class Saslauthd(Daemon):
    service, package = "smtp", "sasl2-bin"

    def __init__(self, directory, *words):
        self.socket = directory / "sasl"
        self.socket.mkdir(exist_ok=True)
        super().__init__(directory, needs("saslauthd", self.package), "-d", "-a", "pam", "-n", "1",
                         "-m", self.socket, *words)

    def ready(self):
        return (self.socket / "mux").exists()

    def enter(self, user, typed):
        done = subprocess.run(
            ["testsaslauthd", "-f", self.socket / "mux", "-u", user, "-p", typed, "-s",
             self.service], capture_output=True, text=True, timeout=60, check=False)
        assert ("OK" in done.stdout) == (done.returncode == 0), done
        return done.returncode == 0


# Each starts a shell that prints this; nothing that was typed has it in it.
SCRIPT = "echo IN-$((6*7))"


class Doas:
    """doas by `user`: his own password and code."""

    service, package = "doas", "opendoas"

    def __init__(self, _directory, rule="permit alice"):
        needs("doas", self.package)
        Path("/etc/doas.conf").write_text(f"{rule}\n")

    def enter(self, user, code, password):
        return converse(as_user(user, "doas", "/bin/sh", "-c", SCRIPT), code, password)[0]

    def stop(self):
        Path("/etc/doas.conf").unlink()


class Terminal:
    """A program on a terminal that asks again after a refusal, until it is ended here."""

    again = None
    # It drops what was typed before it reads, even after its prompt: then it is typed again.
    drops = False

    def __init__(self, _directory):
        needs(self.program, self.package)

    def enter(self, user, code, password):
        child = Child(self.command(user), env={**os.environ, "TERM": "linux"})
        # By prompt; "" where that is not an answer but a key to be pressed.
        answers = {"ENTER": "", "[Pp]assword: ?$": password, "code: ?$": code, r"[$#] ?$": SCRIPT}
        ends = [self.again, "IN-42"]
        last, tries = None, 0
        try:
            while True:
                seen = child.expect([*ends, pexpect.TIMEOUT, *answers],
                                    timeout=2 if self.drops else 20)
                if seen < 2:
                    return seen == 1
                if seen > 2:
                    last, tries = list(answers)[seen - 3], 0
                tries += 1
                assert last is not None and tries < (15 if self.drops else 2), (last, child.before)
                if last == r"[$#] ?$":
                    child.sendline(SCRIPT)
                else:
                    child.answer(answers[last])
        finally:
            child.close(force=True)

    def stop(self):
        pass


class Login(Terminal):
    """login, which root started as getty does."""

    service = program = package = "login"
    again = "incorrect"
    words = ()

    def command(self, user):
        return ["login", *self.words, user]


class Vlock(Terminal):
    """vlock by `user`; after a refusal it asks root."""

    service, program, package = "vlock", "vlock-main", "vlock"
    again = "root's Password: ?$"
    drops = True

    def command(self, user):
        return as_user(user, "/bin/sh", "-c", f"vlock; {SCRIPT}")


class Pkexec:
    """pkexec by `user`, whom polkit takes for an administrator; the agent has `user`'s terminal."""

    service, package = "polkit-1", "pkexec"
    RULE = Path("/etc/polkit-1/rules.d/10-acceptance.rules")

    def __init__(self, directory):
        for program, package in (("pkexec", "pkexec"), ("pkttyagent", "polkitd"),
                                 ("polkitd", "polkitd"), ("dbus-daemon", "dbus-daemon"),
                                 ("dbus-send", "dbus-bin")):
            needs(program, package)
        self.RULE.write_text('polkit.addAdminRule(function() { return ["unix-user:alice"]; });\n')
        Path("/run/dbus").mkdir(exist_ok=True)
        self.log = open(directory / "polkit.log", "w")
        self.programs = []
        try:
            self._start("dbus-daemon", "--system", "--nofork", "--nopidfile")
            eventually(Path("/run/dbus/system_bus_socket").exists, "no bus")
            self._start(needs("polkitd", "polkitd"), "--no-debug")
            eventually(self._is_there, "no polkitd")
        except AssertionError:
            self.stop()
            raise

    def _start(self, *command):
        self.programs.append(subprocess.Popen(command, stdout=self.log, stderr=self.log))

    def _is_there(self):
        done = subprocess.run(
            ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.DBus", "/",
             "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.PolicyKit1"],
            capture_output=True, text=True, check=False)
        return "boolean true" in done.stdout

    def enter(self, user, code, password):
        # The agent closes descriptor 3 once it is there.
        script = f"""rm -f fifo; mkfifo fifo
pkttyagent --process $$ --notify-fd 3 3>fifo &
cat fifo
pkexec /bin/sh -c '{SCRIPT}'
kill $!
"""
        return converse(as_user(user, "/bin/sh", "-c", script), code, password,
                        cwd=f"/home/{user}")[0]

    def stop(self):
        for program in reversed(self.programs):
            program.terminate()
            program.wait(10)
        self.log.close()
        self.RULE.unlink()
