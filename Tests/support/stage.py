"""A fleet on a network of its own: two servers of the database, two verifiers, three hosts.

A test begins only when all of it is whole again, whatever the test before has done: see `Stage.whole`.
"""

import contextlib
import ctypes
import os
import struct
import socket

from support import fleet
from support.fleet import VERIFIER, host_rows
from support.host import Host
from support.machines import Network, together
from support.postgres import PASSWORD, Pair
from support.service import request, soon

DIRECTORY = "/etc/sallyport-verifier"
GUESTS = ("web1", True), ("web2", False), ("tests", True)


@contextlib.contextmanager
def network_of(process):
    """This thread, in the network of that process."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as here, open(f"/proc/{process}/ns/net") as there:
        assert libc.setns(there.fileno(), 0) == 0, ctypes.get_errno()
        try:
            yield
        finally:
            assert libc.setns(here.fileno(), 0) == 0, ctypes.get_errno()


class VerifierThere(fleet.Verifier):
    """A verifier on a machine, over the database that the stage has at the moment."""

    def __init__(self, stage, machine):
        self.stage, self.machine, self.name = stage, machine, machine.name
        self.process, self.program = None, VERIFIER

    def prepare(self):
        files = self.stage.network.scratch
        self.machine.write(f"{DIRECTORY}/database.crt", (files / "server.crt").read_bytes(), 0o644)
        self.machine.write(f"{DIRECTORY}/pgpass", f"*:*:*:*:{PASSWORD}\n", 0o600)
        self.machine.sh(f"chmod 700 {DIRECTORY}; install -d -m 0755 /run/sallyport-verifier; install -m 0755 {VERIFIER} "
                        "/usr/sbin/sallyport-verifier 2>/dev/null || true")

    def run(self, verb, *more, user="sallyport_verifier", **options):
        return self.machine.run(
            self.program, verb, *more, "--directory", DIRECTORY, "--database", self.stage.words(user), **options)

    def start(self, limit=60, **environment):
        self.process = self.machine.start(
            self.program, "run", "--directory", DIRECTORY, "--database", self.stage.words(), "--name",
            self.name, env=os.environ | environment)
        assert soon(lambda: self.process.poll() is not None or self.listens(), limit), "\n".join(
            ["it did not start", *self.machine.log.since(0)[-10:]])
        assert self.process.alive, f"status {self.process.poll()}"
        return self

    def connect(self, limit):
        """On its machine, past all cables."""
        with network_of(self.machine.init):
            return socket.create_connection(("127.0.0.1", 7353), limit)

    def send(self, which):
        self.process.send(which)

    def kill(self):
        if self.process and self.process.alive:
            self.process.kill()

    def stop(self):
        return self.process.stop()


class Stage:
    """All of it, started; one for a run of the tests, with a database for each test."""

    def __init__(self):
        self.network = Network()
        self.database, self._databases = None, 0

    def __enter__(self):
        self.network.__enter__()
        try:
            self.machines = self.network.add("db1", "db2", "one", "two", "web1", "web2", "web3")
            self.pair = Pair(self.network, *self.machines[:2])
            self.verifiers = [VerifierThere(self, machine) for machine in self.machines[2:4]]
            for verifier in self.verifiers:
                verifier.prepare()
            self.hosts = [Host(machine) for machine in self.machines[4:]]
        except BaseException:
            self.network.__exit__()
            raise
        return self

    def __exit__(self, *what):
        self.network.__exit__(*what)

    def words(self, user="sallyport_verifier"):
        return self.pair.words(user, self.database)

    def sql(self, statement):
        """At whichever server is the primary now."""
        return self.pair.primary.sql(statement, self.database)

    # MARK: for a test

    def begin(self, guests=GUESTS):
        """A new database with its schema, and verifiers over it that have both answered. `guests`: hosts that
        are no more than a key of this process, and whether they may enroll people."""
        self.whole()
        self.new_database(guests)

    def new_database(self, guests=GUESTS):
        """The same, over servers that are whole."""
        self._databases += 1
        self.database = f"fleet{self._databases}"
        self.pair.create(self.database)
        one, two = self.verifiers
        for verifier in self.verifiers:
            verifier.machine.sh(f"rm -f {DIRECTORY}/*key {DIRECTORY}/sallyport.conf {DIRECTORY}/revoked* "
                                f"{DIRECTORY}/incarnation {DIRECTORY}/policy {DIRECTORY}/seen.*")
            # Else the second one waits for what the first one may know.
            verifier.machine.write(f"{DIRECTORY}/revoked", fleet.NOTHING_REVOKED, 0o600)
        one.run("init", user="postgres")
        for name in "key", "identity.key", "sallyport.conf":
            two.machine.write(f"{DIRECTORY}/{name}", one.machine.read(f"{DIRECTORY}/{name}"), 0o600)
        if guests:
            self.sql(host_rows(one.machine.read(f"{DIRECTORY}/key"), guests))
        together(one.start, two.start)

    def end(self):
        for host in self.hosts:
            host.kill()
        for verifier in self.verifiers:
            verifier.kill()

    def invite(self, name):
        """The token by which a machine joins; it may enroll people."""
        addresses = [word for verifier in self.verifiers for word in ("--verifier", f"{verifier.machine.address}:7353")]
        rights = ["--enrolls", "--changes", "--takes"]
        if "--takes" not in self.verifiers[0].run("invite", "--help").stdout:  # of a former version
            rights = rights[:1]
        return self.verifiers[0].run("invite", name, *rights, *addresses).stdout.strip()

    def gather(self):
        """All hosts join, and each has seen both verifiers answer."""
        self.govern("[default]\nenrollment = required\n")
        for number, host in enumerate(self.hosts):
            host.forget()
            # The same names with other uids.
            host.prepare({"alice": 3001 + number, "bob": 4001 + number})
            done = host.join(self.invite(host.name))
            assert done.returncode == 0, done.stderr
        together(*[host.start for host in self.hosts])
        assert self.all_judge()

    def govern(self, policy):
        """The policy of the fleet, from now on; while verifiers of a former version made it, of their files."""
        for verifier in self.verifiers:
            verifier.machine.write(f"{DIRECTORY}/sallyport.conf", policy, 0o644)
        one = self.verifiers[0]
        if one.run("config", "show", check=False).returncode != 0:
            return
        serial = int(one.run("config", "history").stdout.splitlines()[-1].split()[0])
        done = one.run("config", "edit", f"{DIRECTORY}/sallyport.conf").stdout
        told = f"{serial + 1 if 'stored' in done else serial} %"
        assert soon(lambda: int(self.sql(f"SELECT count(*) FROM worker WHERE worker = 0 AND policy LIKE '{told}'")[0][0])
                    == len(self.verifiers), 30)

    def all_judge(self):
        return all(soon(lambda host=host: "All of them verify codes" in host.sallyport("fleet", "status").stdout, 60)
                   for host in self.hosts)

    def enroll(self, name, secret):
        """Somebody, by a host that is this test."""
        return self.verifiers[0].ask(
            request(name.encode(), 7, struct.pack("<QB", 0, 1), fleet.enrollment(name, secret)), host="tests")

    def dump(self):
        return self.pair.primary.machine.run(
            "pg_dump", "-h", "/tmp", "-U", "postgres", self.database, text=False).stdout

    def whole(self):
        """Every cable is there, every server runs, and the standby is synchronous."""
        self.network.mend_all()
        self.pair.make_whole()
        assert soon(self.pair.is_whole, 60)

    # MARK: the oracle

    def accepted(self):
        return [name for name, in self.sql("SELECT encode(name, 'escape') FROM event WHERE outcome = 'accepted'")]

    def twice(self):
        """What was accepted more than once."""
        return self.sql("""SELECT encode(name, 'escape'), authenticator, position FROM event
          WHERE outcome = 'accepted' GROUP BY 1, 2, 3 HAVING count(*) > 1""")
