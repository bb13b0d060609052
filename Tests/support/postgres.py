"""PostgreSQL on machines of a network: a primary and its standbys, over TLS."""

import os
import signal
import subprocess

from support.fleet import programs
from support.machines import run
from support.service import soon

DATA, PASSWORD = "/var/lib/postgresql/data", "between verifiers and the database"
# The machine does not lose its power in these tests, and waits for nobody's disk.
SETTINGS = """
listen_addresses = '*'
unix_socket_directories = '/tmp'
ssl = on
ssl_cert_file = '/etc/postgresql/server.crt'
ssl_key_file = '/etc/postgresql/server.key'
fsync = off
max_connections = 100
hot_standby = on
wal_keep_size = '256MB'
wal_receiver_timeout = '5s'
wal_retrieve_retry_interval = '200ms'
log_min_messages = fatal
"""
MAY = """
local all postgres trust
hostssl replication replicator 10.77.0.0/16 scram-sha-256
hostssl all sallyport_verifier 10.77.0.0/16 scram-sha-256
hostssl all sallyport_owner 10.77.0.0/16 scram-sha-256
hostssl all postgres 10.77.0.0/16 scram-sha-256
"""


class Server:
    """A PostgreSQL on a machine, with its log in memory."""

    def __init__(self, machine):
        self.machine = machine
        self.process, self.bin = None, programs()

    def as_postgres(self, *command):
        return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--",
                *map(str, command)]

    def certify(self, directory):
        """One certificate for all servers, which has their names and is its own root."""
        for name, mode in (("server.crt", 0o644), ("server.key", 0o600)):
            self.machine.write(f"/etc/postgresql/{name}", (directory / name).read_bytes(), mode)
        self.machine.sh("chown -R postgres: /etc/postgresql; install -d -o postgres -g postgres -m 0700 "
                        "/var/lib/postgresql; touch /var/log/postgresql.log; chown postgres: /var/log/postgresql.log")

    def make(self):
        """A new one, with the roles that everybody needs."""
        self.machine.run(*self.as_postgres(
            self.bin / "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=postgres",
            "-D", DATA), cwd="/")
        with self.machine.path(f"{DATA}/postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        self.machine.path(f"{DATA}/pg_hba.conf").write_text(MAY)
        self.start()
        self.sql(f"CREATE ROLE replicator LOGIN REPLICATION PASSWORD '{PASSWORD}';"
                 f"CREATE ROLE sallyport_verifier LOGIN PASSWORD '{PASSWORD}';"
                 "GRANT pg_read_all_stats TO sallyport_verifier;"
                 f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")

    def follow(self, primary):
        """A standby of that one, made again from it."""
        self.stop()
        self._copy(primary, DATA, "-R")
        self.start()

    def base_backup(self, of):
        """Where a copy of that one is now, on this machine."""
        self._copy(of, f"{DATA}-backup")
        return f"{DATA}-backup"

    def restore(self, backup):
        """It goes on from there, as a primary that waits for nobody."""
        self.stop()
        self.machine.sh(f"rm -rf {DATA}; mv {backup} {DATA}")
        self.start()
        self.waits_for("")

    def rewind(self, to):
        """It loses what that one has not, and is its standby."""
        to.sql("CHECKPOINT")
        self.machine.run(*self.as_postgres(
            self.bin / "pg_rewind", "--target-pgdata", DATA, "--source-server", to.source("postgres") + " dbname=postgres",
            "--no-sync"), cwd="/")
        self.machine.sh(f"install -o postgres -g postgres /dev/null {DATA}/standby.signal")
        words = f"{to.source('replicator')} application_name={self.machine.name}".replace("'", "''")
        # The last line of a setting counts.
        with self.machine.path(f"{DATA}/postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{words}'\n")
        self.start()

    def source(self, user):
        """How other servers reach it."""
        return (f"host={self.machine.name} user={user} password='{PASSWORD}' sslmode=verify-full "
                "sslrootcert=/etc/postgresql/server.crt")

    def _copy(self, primary, directory, *more):
        self.machine.sh(f"rm -rf {directory}; install -d -o postgres -g postgres -m 0700 {directory}")
        words = f"{primary.source('replicator')} application_name={self.machine.name}"
        self.machine.run(*self.as_postgres(
            self.bin / "pg_basebackup", "-D", directory, "-d", words, *more, "-c", "fast", "-X", "stream", "--no-sync"),
            cwd="/")

    def start(self, **environment):
        log = self.machine.path("/var/log/postgresql.log").open("ab")
        self.process = self.machine.start(
            *self.as_postgres(self.bin / "postgres", "-D", DATA), stdout=log, stderr=log, cwd="/",
            env=os.environ | environment)
        log.close()
        assert soon(lambda: not self.process.alive or self.answers(), 60)
        assert self.process.alive, self.machine.read("/var/log/postgresql.log").decode()

    def answers(self):
        try:
            return self.sql("SELECT 1") == [["1"]]
        except (AssertionError, subprocess.TimeoutExpired):
            return False

    def kill(self):
        """All of its processes at once, as a power cut does it."""
        if self.process and self.process.alive:
            self.process.kill()

    def stop(self):
        if self.process and self.process.alive:
            self.process.send(signal.SIGINT)
            self.process.wait(60)

    def sql(self, statement, database="postgres", limit=30):
        """The rows, as text; by the socket on the machine, past all cables."""
        done = self.machine.run(
            "env", "PGOPTIONS=-c synchronous_commit=local", "psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", "/tmp",
            "-U", "postgres", "-d", database, "-c", statement, timeout=limit)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def waits_for(self, names):
        """From now on a commit waits for these standbys, or for nobody (''). A reloaded setting counts
        only once its checkpointer has heard of it; a new connection, forked by the postmaster, shows
        it before. The postmaster has told all by then, and one that listened makes a checkpoint."""
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.sql("SELECT pg_reload_conf()")
        assert soon(lambda: self.sql("SHOW synchronous_standby_names") == [[names]])
        self.sql("CHECKPOINT")

    def is_followed(self, how="sync"):
        """Whether a standby follows it so."""
        return [how] in self.sql("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")

    def promote(self):
        """It becomes the primary, and waits for nobody."""
        self.waits_for("")
        assert self.sql("SELECT pg_promote(true, 30)") == [["t"]]


def certificate(directory, *names, days=365):
    """What servers of these names show, good for so long."""
    names = ",".join(f"DNS:{name}" for name in names)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
        days, "-subj", "/CN=db", "-addext", f"subjectAltName={names}", "-keyout", directory / "server.key", "-out",
        directory / "server.crt")


class Pair:
    """Two servers, one of them primary, the other its standby."""

    def __init__(self, network, one, two):
        certificate(network.scratch, one.name, two.name)
        self.servers = [Server(one), Server(two)]
        self.primary, self.standby = self.servers
        for server in self.servers:
            server.certify(network.scratch)
        self.primary.make()
        self.renew()

    def renew(self):
        """The standby follows again, and each commit waits for it."""
        self.standby.follow(self.primary)
        self.synchronous()

    def synchronous(self):
        self.primary.waits_for(self.standby.machine.name)
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def asynchronous(self):
        self.primary.waits_for("")
        assert soon(lambda: self.primary.is_followed("async"), 60)

    def fail_over(self):
        """The standby is promoted; the roles are changed."""
        self.standby.promote()
        self.swap()

    def swap(self):
        self.primary, self.standby = self.standby, self.primary

    def create(self, database):
        """On both: of a server that does not know the database yet libpq asks no further one."""
        self.primary.sql(f"CREATE DATABASE {database}")
        there = f"SELECT 1 FROM pg_database WHERE datname = '{database}'"
        assert soon(lambda: self.standby.sql(there), 60), "the standby does not follow"

    def is_whole(self):
        return all(server.process.alive for server in self.servers) and self.primary.is_followed("sync")

    def make_whole(self):
        """As at the beginning, whatever happened: the primary is whichever it is."""
        for server in self.servers:
            if server.process.alive:
                server.process.send_all(signal.SIGCONT)
        if not self.primary.process.alive:
            self.primary.start()
        self.primary.waits_for(self.standby.machine.name)
        if not self.standby.process.alive or not soon(lambda: self.primary.is_followed("sync"), 10):
            self.renew()

    def words(self, user="sallyport_verifier", database="sallyport"):
        """As a verifier has it: whichever of the two is the primary."""
        hosts = ",".join(server.machine.name for server in self.servers)
        return (f"host={hosts} dbname={database} user={user} target_session_attrs=read-write sslmode=verify-full "
                f"sslrootcert=/etc/sallyport-verifier/database.crt passfile=/etc/sallyport-verifier/pgpass "
                "connect_timeout=2")
