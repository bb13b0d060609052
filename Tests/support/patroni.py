"""Two servers of PostgreSQL that Patroni keeps, with etcd on a machine of its own."""

import contextlib
import json
import shutil
import signal
import subprocess

from support.postgres import DATA, MAY, PASSWORD, SETTINGS, Pair, Server
from support.service import soon

PROGRAMS = ["patroni", "patronictl", "etcd"]
FILE = "/etc/patroni.yml"


def missing():
    return [name for name in PROGRAMS if not shutil.which(name)]


class Kept(Server):
    """One of them. `start`, `kill` and `stop` are of Patroni with its PostgreSQL."""

    def configure(self, etcd):
        parameters = [line.split(" = ", 1) for line in SETTINGS.strip().splitlines()]
        ours = {"unix_socket_directories", "hot_standby"}  # Patroni's own, or said elsewhere
        settings = {name: value.strip("'") for name, value in parameters if name not in ours}
        who = {"username": "postgres", "password": PASSWORD}
        text = {
            "scope": "fleet", "name": self.machine.name,
            "restapi": {"listen": f"{self.machine.address}:8008", "connect_address": f"{self.machine.address}:8008"},
            "etcd3": {"host": f"{etcd.address}:2379"},
            "bootstrap": {
                # The shortest that it allows: a dead leader is replaced after `ttl`.
                "dcs": {"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "maximum_lag_on_failover": 0, "synchronous_mode": True,
                        "synchronous_mode_strict": False, "postgresql": {"use_pg_rewind": True}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"]},
            "postgresql": {
                "listen": "*:5432", "connect_address": f"{self.machine.address}:5432", "data_dir": DATA,
                "bin_dir": str(self.bin), "use_unix_socket": True,
                "pgpass": "/var/lib/postgresql/pgpass", "parameters": settings | {"unix_socket_directories": "/tmp"},
                "pg_hba": [*MAY.strip().splitlines(), "local replication postgres trust",
                           "host replication postgres localhost scram-sha-256",
                           "hostssl replication postgres 10.77.0.0/16 scram-sha-256"],
                "authentication": {"superuser": who, "replication": who, "rewind": who}},
            "watchdog": {"mode": "off"}}
        # YAML has JSON within.
        self.machine.write(FILE, json.dumps(text), 0o644)

    def start(self):
        log = self.machine.path("/var/log/patroni.log").open("ab")
        self.process = self.machine.start(*self.as_postgres("patroni", FILE), stdout=log, stderr=log, cwd="/")
        log.close()

    def kill(self):
        """All of the user on that machine, which has nothing else of it."""
        self.machine.run("pkill", "-KILL", "-u", "postgres", check=False)
        self.process.wait()

    def stop(self):
        if self.process and self.process.alive:
            self.process.send(signal.SIGTERM)
            self.process.wait(60)

    def is_primary(self):
        with contextlib.suppress(AssertionError, subprocess.SubprocessError):
            return self.sql("SELECT pg_is_in_recovery()", limit=5) == [["f"]]
        return False


class KeptPair(Pair):
    """The primary is whichever Patroni says."""

    def __init__(self, network, one, two, etcd):
        self.network, self.etcd = network, etcd
        self.servers = [Kept(one), Kept(two)]

    def __enter__(self):
        self._etcd = self.etcd.start(
            "etcd", "--data-dir", "/tmp/etcd", "--listen-client-urls", "http://0.0.0.0:2379", "--advertise-client-urls",
            f"http://{self.etcd.address}:2379", "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync",
            "--log-level", "fatal", stderr=subprocess.DEVNULL)
        for server in self.servers:
            server.machine.sh(f"rm -rf {DATA}")
            server.certify(self.network.scratch)
            server.configure(self.etcd)
            server.start()
        assert soon(self.is_whole, 120), self.log()
        self.primary.sql(f"CREATE ROLE sallyport_verifier LOGIN PASSWORD '{PASSWORD}'")
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()
            server.machine.sh(f"rm -rf {DATA}")
        self._etcd.kill()

    @property
    def primary(self):
        [found] = [server for server in self.servers if server.is_primary()] or [None]
        return found

    @property
    def standby(self):
        primary = self.primary
        return next(server for server in self.servers if server is not primary)

    def is_whole(self):
        """One leads, and each of its commits waits for the other."""
        with contextlib.suppress(AssertionError, ValueError, AttributeError, subprocess.SubprocessError):
            return self.primary.is_followed("sync")
        return False

    def control(self, *words, **more):
        return self.servers[0].machine.run("patronictl", "-c", FILE, *words, **more)

    def switch_over(self):
        primary, standby = self.primary, self.standby
        self.control("switchover", "--force", "--master", primary.machine.name, "--candidate", standby.machine.name)

    def log(self):
        return "".join(server.machine.read("/var/log/patroni.log").decode()[-3000:] for server in self.servers)
