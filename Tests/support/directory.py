"""A directory of people on the private machine: real slapd on 127.0.0.1, and real sssd before it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.hosts import SCRATCH

SSSD = Path("/var/lib/sss")
PIPE = SSSD / "pipes" / "nss"
PEOPLE = {"ana": 5001, "bea": 5002, "cleo": 5003, "dora": 5004, "zoe": 5005, "john doe": 5006}
GROUPS = {"folk": (5000, []), "admins": (5100, ["ana", "cleo"]), "crew": (5101, ["dora", "ana"]),
          "Domain Users": (5102, ["john doe"])}
# What sssd.conf needs so that SSSD tells when it asked for all groups of somebody.
TELLS = "user_attributes = +initgrExpireTimestamp"
MISSING = [name for name, path in {
    "slapd": "/usr/sbin/slapd", "sssd-ldap": "/usr/sbin/sssd",
    "libnss-sss": next(map(str, Path("/usr/lib").glob("*/libnss_sss.so.2")), "")}.items()
    if not Path(path).is_file()]
LDAP_CLIENT = dict(os.environ, LDAPNOINIT="1")


def entries():
    """dc=example,dc=test as LDIF: everybody has the primary group folk."""
    suffix = "dc=example,dc=test"
    lines = [f"dn: {suffix}\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n"]
    for unit in ("people", "groups"):
        lines.append(f"dn: ou={unit},{suffix}\nobjectClass: organizationalUnit\nou: {unit}\n")
    for name, uid in PEOPLE.items():
        lines.append(
            f"dn: uid={name},ou=people,{suffix}\nobjectClass: account\nobjectClass: posixAccount\n"
            f"uid: {name}\ncn: {name}\nuidNumber: {uid}\ngidNumber: 5000\n"
            f"homeDirectory: /home/{name}\nloginShell: /bin/sh\n")
    for name, (number, members) in GROUPS.items():
        lines.append(
            f"dn: cn={name},ou=groups,{suffix}\nobjectClass: posixGroup\ncn: {name}\ngidNumber: {number}\n"
            + "".join(f"memberUid: {member}\n" for member in members))
    return "\n".join(lines)


def wait(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def resolves(name, database="passwd"):
    return subprocess.run(["getent", database, name], capture_output=True, check=False).returncode == 0


def ask_groups(name):
    """As sshd does for a session; names of groups are not looked up, as `id` does. By a program of its
    own, since the library of sssd remembers the cache of one that is gone."""
    done = subprocess.run(
        ["/usr/bin/python3", "-c", f"import os; print(*os.getgrouplist('{name}', 5000))"],
        capture_output=True, text=True, check=True)
    return sorted(map(int, done.stdout.split()))


class Directory:
    """slapd with everybody, and sssd with an empty cache each time that it is started."""

    def __init__(self):
        self.place = SCRATCH / "directory"
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "data").mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.place / "slapd.conf").write_text(
            "".join(f"include /etc/ldap/schema/{name}.schema\n" for name in ("core", "cosine", "nis"))
            + f"modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {self.place}/slapd.pid\n"
            f"database mdb\nmaxsize 10485760\nsuffix dc=example,dc=test\ndirectory {self.place}/data\n")
        subprocess.run(
            ["/usr/sbin/slapadd", "-q", "-f", self.place / "slapd.conf"], input=entries(), text=True,
            check=True, capture_output=True, env=LDAP_CLIENT)
        self.slapd = self.sssd = None
        self.sources = Path("/etc/nsswitch.conf").read_text()
        Path("/etc/nsswitch.conf").write_text(
            re.sub("(?m)^(passwd|group):.*", r"\1: files sss", self.sources))

    def up(self):
        log = open(self.place / "slapd.log", "a")
        self.slapd = subprocess.Popen(
            ["/usr/sbin/slapd", "-d", "0", "-f", self.place / "slapd.conf", "-h",
             f"ldap://127.0.0.1:{self.port}"], stdout=log, stderr=log, env=LDAP_CLIENT)
        wait(self.answers, "slapd listens")

    def online(self):
        if self.slapd is None:
            self.up()

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            assert self.slapd.poll() is None, (self.place / "slapd.log").read_text()
            return False

    def down(self):
        self.slapd = self.stop(self.slapd)

    def processes(self, whose):
        """Of slapd or sssd; stopped, it takes connections and never answers."""
        process = self.slapd if whose == "slapd" else self.sssd
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return [process.pid, *map(int, children)]

    def signal(self, whose, number):
        for process in self.processes(whose):
            os.kill(process, number)

    def cache(self, *settings, ignore_group_members=False, full_names=False):
        """sssd with an empty cache. `settings`: of its name service. `full_names`: all names have the
        domain."""
        self.end_sssd()
        shutil.rmtree(SSSD, ignore_errors=True)
        for name in ("db", "mc", "pipes/private", "pubconf", "secrets", "gpo_cache", "deskprofile"):
            (SSSD / name).mkdir(parents=True)
        (SSSD / "pipes" / "private").chmod(0o700)
        Path("/var/log/sssd").mkdir(exist_ok=True)
        config = Path("/etc/sssd/sssd.conf")
        config.parent.mkdir(exist_ok=True)
        config.write_text("\n".join([
            "[sssd]", "services = nss", "domains = example", "[nss]", *settings, "[domain/example]",
            "id_provider = ldap", "auth_provider = none", "access_provider = permit",
            f"ldap_uri = ldap://127.0.0.1:{self.port}", "ldap_search_base = dc=example,dc=test",
            f"ignore_group_members = {ignore_group_members}",
            f"use_fully_qualified_names = {full_names}", "ldap_id_use_start_tls = false",
            "offline_timeout = 1", "offline_timeout_random_offset = 0", ""]))
        config.chmod(0o600)
        log = open(self.place / "sssd.log", "a")
        self.sssd = subprocess.Popen(["/usr/sbin/sssd", "-i", "--logger=stderr"], stdout=log, stderr=log)
        wait(self.serves, "sssd serves")

    def serves(self):
        assert self.sssd.poll() is None, (self.place / "sssd.log").read_text()
        with socket.socket(socket.AF_UNIX) as line:
            return (SSSD / "db" / "cache_example.ldb").exists() and line.connect_ex(str(PIPE)) == 0

    def end_sssd(self):
        self.sssd = self.stop(self.sssd)

    @staticmethod
    def stop(process):
        if process is not None:
            process.terminate()
            process.wait(timeout=30)

    def close(self):
        self.end_sssd()
        self.down()
        Path("/etc/nsswitch.conf").write_text(self.sources)
        shutil.rmtree(SSSD, ignore_errors=True)
