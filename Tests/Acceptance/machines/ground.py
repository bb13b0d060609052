"""The private machine becomes one machine after the other: files, enrollments, keys, sshd."""

import contextlib
import ctypes
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import files
from dimensions import NAMED
from support.hosts import DEBIAN, PAM_D, PATIENT, SCRATCH, edit
from support.pam_driver import BUILT
from support.sallyport import DEFAULT_STORE, MODULE, Store, sallyport
from support.service import soon

SSHD_CONFIG, SUDOERS = Path("/etc/ssh/sshd_config"), Path("/etc/sudoers")
CONF = Path("/etc/security/sallyport.conf")
TABLES = [Path("/etc", name) for name in ("passwd", "shadow", "group")]
HERE = Path("/run/machine")  # what everybody may read
# Says who runs it; nothing that was typed has what it prints.
PROOF = HERE / "proof"
PROOF_TEXT = '#!/bin/sh\necho "IN-$((6*7)) $(id -un)"\n'
PROFILE = f"{PROOF}\nexit 0\n"  # of a login shell, which then has no prompt to wait for
DOAS = Path("/etc/doas.conf")
OTHER_CONF = Path("/etc/security/other.conf")  # for `conf=`
CLONE_NEWNET = 0x40000000
ENROLLING = {
    "a phone": {}, "damaged": {}, "a counter": {"type": "hotp", "backup_codes": 0},
}


def ran(verb, user, *more):
    done = sallyport(verb, "--user", user, *more)
    assert done.returncode == 0, done.stderr


class There:
    """Another machine on a cable to this one, from which people come over ssh. All of it are
    networks of this process, which end with it."""

    server, address = "192.0.2.1", "192.0.2.7"

    @contextlib.contextmanager
    def connected(self):
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(CLONE_NEWNET) == 0, ctypes.get_errno()
        self._ip("link", "set", "lo", "up")
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo up; exec sleep 100000"], stdout=subprocess.PIPE)
        try:
            assert self.process.stdout.readline() == b"up\n"
            self._ip("link", "add", "cable", "type", "veth", "peer", "name", "eth0", "netns",
                     self.process.pid)
            self._up(self.server, "cable")
            self._up(self.address, "eth0", *self.enter())
            yield
        finally:
            self.process.kill()
            self.process.wait(20)

    def enter(self):
        return ["nsenter", "--target", str(self.process.pid), "--net"]

    def _up(self, address, cable, *there):
        self._ip("address", "add", f"{address}/24", "dev", cable, there=there)
        self._ip("link", "set", cable, "up", there=there)

    @staticmethod
    def _ip(*words, there=()):
        subprocess.run([*there, "ip", *map(str, words)], check=True)


THERE = There()


@contextlib.contextmanager
def quick_refusals():
    """Refusals are told at once, as in ring 4: the pauses would be most of the time."""
    preload = Path("/etc/ld.so.preload")
    pauses = shutil.copy(f"{BUILT}/pauses.so", HERE.parent)
    edit("/etc/login.defs",
         lambda text: re.sub("(?m)^FAIL_DELAY.*", "", text) + "FAIL_DELAY 0\n")
    preload.write_text(f"{pauses}\n")
    yield
    preload.unlink()


@contextlib.contextmanager
def with_the_module():
    """The module where libpam looks: a copy of that directory, on this private machine only."""
    directory = next(Path("/usr/lib").glob("*/security/pam_unix.so")).parent
    copy = SCRATCH / "machines-security"
    shutil.copytree(directory, copy, symlinks=True)
    shutil.copy(MODULE, copy / "pam_sallyport.so")
    subprocess.run(["mount", "--bind", copy, directory], check=True)
    yield
    # A host that is about to end may have a module there open still.
    subprocess.run(["umount", "--lazy", directory], check=True)


class Ground:
    """What the private machine was before, and what stays while its machines change."""

    def __init__(self):
        self.kept = {path: path.read_bytes() for path in (*TABLES, SSHD_CONFIG, SUDOERS)}
        self.debian = {name: text.decode() for name, text in DEBIAN.items()}
        HERE.mkdir(mode=0o755, exist_ok=True)
        for path in (PROOF, Path(NAMED)):
            path.write_text(PROOF_TEXT)
            path.chmod(0o755)
        self.key, self.host_key = SCRATCH / "machines-key", SCRATCH / "machines-host"
        for path in (self.key, self.host_key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        self.keys = HERE / "keys"  # sshd's AuthorizedKeysCommand
        self.store, self.copy = Store(DEFAULT_STORE), SCRATCH / "machines-store"

    def text(self, path):
        return self.kept[path].decode()

    def become(self, machine):
        """All files of a machine; {name: Enrollment} of those who have one."""
        CONF.unlink(missing_ok=True)
        for path, text in zip(TABLES, files.accounts(machine, *map(self.text, TABLES))):
            path.write_text(text)
        self._homes(machine)
        enrollments = self._enrolled(machine)
        SUDOERS.write_text(files.sudoers(machine))
        write(DOAS, files.doas(machine))
        SSHD_CONFIG.write_text(files.sshd_config(machine, self.keys))
        self._stacks(machine)
        OTHER_CONF.write_text(files.OTHER_POLICY)
        write(CONF, files.policy(machine))
        self._keep_store()
        return enrollments

    def renew_store(self):
        """The store as the machine was built: no cell spends another's codes or budget."""
        shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
        shutil.copytree(self.copy, DEFAULT_STORE)

    def _keep_store(self):
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(DEFAULT_STORE, self.copy)

    def _homes(self, machine):
        public = Path(f"{self.key}.pub").read_text()
        with_key = [person.name for person in machine.people if person["key"] == "a key"]
        self.keys.write_text(f"#!/bin/sh\ncase $1 in {'|'.join([*with_key, '-'])}) "
                             f"echo '{public.strip()}' ;; esac\n")
        self.keys.chmod(0o755)
        for person in machine.people:
            home = Path(files.home_of(person.name))
            ssh = home / ".ssh"
            shutil.rmtree(ssh, ignore_errors=True)
            ssh.mkdir(parents=True, mode=0o700)
            (home / ".profile").write_text(PROFILE)
            if person["key"] == "a key":
                (ssh / "authorized_keys").write_text(public)
            for path in (home, ssh, *ssh.iterdir(), home / ".profile"):
                os.chown(path, person.uid, person.uid)
        for name, uid in (files.WEB, files.CALLER):
            home = Path(files.home_of(name))
            home.mkdir(exist_ok=True)
            os.chown(home, uid, uid)

    def _stacks(self, machine):
        for path in PAM_D.iterdir():
            path.unlink()
        for name, text in files.services(machine, self.debian).items():
            (PAM_D / name).write_text(text)

    def _enrolled(self, machine):
        shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
        self.store.enroll(files.CALLER[0], allow_missing=False)  # makes the store
        ran("unenroll", files.CALLER[0], "--force")
        enrollments = {}
        for person in machine.people:
            how = person["enrolled"]
            if how in ENROLLING:
                made = self.store.enroll(person.name, allow_missing=False, **ENROLLING[how])
                if person.is_enrolled:
                    enrollments[person.name] = made
            elif how != "no":
                ran({"exempt": "exempt", "must enroll": "require"}[how], person.name)
            if how == "damaged":
                self.store.state(person.name).chmod(0o644)
        return enrollments

    def restore(self):
        for path, content in self.kept.items():
            path.write_bytes(content)
        for path in PAM_D.iterdir():
            path.unlink()
        for name, content in DEBIAN.items():
            (PAM_D / name).write_bytes(content)
        for path in (CONF, OTHER_CONF, DOAS):
            path.unlink(missing_ok=True)


def write(path, text):
    """None: there is no such file."""
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)


class Daemon:
    """A real sshd over /etc/ssh/sshd_config, as doctor reads it, on a port of its own."""

    def __init__(self, ground):
        self.ground, self.directory = ground, SCRATCH / "machines-sshd"
        self.directory.mkdir(exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.options = [f"Port={self.port}", "ListenAddress=127.0.0.1",
                        f"ListenAddress={THERE.server}",
                        f"HostKey={ground.host_key}", "PidFile=none"]
        self.log = open(self.directory / "log", "w")
        self.process = subprocess.Popen(self.command("-D", "-e"), stderr=self.log)
        assert soon(self._answers), (self.directory / "log").read_text()

    def command(self, *words):
        return ["/usr/sbin/sshd", *PATIENT, *words, *(f"-o{option}" for option in self.options)]

    def _answers(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def settings(self, name, address, server):
        """What holds for an account that comes from that address to this one: {keyword: value}."""
        where = f"user={name},host={address},addr={address},laddr={server},lport={self.port}"
        done = subprocess.run(self.command("-T", "-C", where), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    def lists(self, name, place):
        """The sets of methods that let this account in, as sshd has them; each is a way."""
        settings = self.settings(name, place.address, place.server)
        if settings["authenticationmethods"] != "any":
            return settings["authenticationmethods"].split()
        by = {"publickey": "pubkeyauthentication", "password": "passwordauthentication",
              "keyboard-interactive": "kbdinteractiveauthentication"}
        return [method for method, keyword in by.items() if settings[keyword] == "yes"]

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()
