"""Faults of a fleet, each of which is done, lasts, and is mended: see Tests/Fleet/test_storm.py."""

import contextlib
import signal
import subprocess
import time

from support.fleet import backends
from support.machines import ROOT, run, together
from support.service import soon
from support.stage import DIRECTORY


class Faults:
    """Each is done, lasts, and is mended; `loses`: saves are lost by it."""

    def __init__(self, stage, die):
        self.stage, self.die = stage, die
        self.clock = stage.network.scratch / "clock.so"
        run("cc", "-fPIC", "-shared", "-o", self.clock, ROOT / "Tests/Acceptance/clock/clock.c")

    @property
    def one(self):
        return self.die.choice(self.stage.verifiers)

    @property
    def primary(self):
        return self.stage.pair.primary

    def lasts(self, most=5.0):
        time.sleep(self.die.uniform(0.2, most))

    # MARK: verifiers

    def a_verifier_is_killed(self):
        one = self.one
        one.kill()
        self.lasts()
        one.start()

    def a_verifier_is_restarted(self):
        one = self.one
        assert one.stop() == 0
        one.start()

    def a_verifier_is_stopped_for_a_while(self):
        one = self.one
        one.send(signal.SIGSTOP)
        self.lasts(6)
        one.send(signal.SIGCONT)

    def both_verifiers_are_killed(self):
        together(*[verifier.kill for verifier in self.stage.verifiers])
        self.lasts()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def both_verifiers_are_restarted(self):
        for verifier in self.die.sample(self.stage.verifiers, 2):
            assert verifier.stop() == 0
        together(*[verifier.start for verifier in self.stage.verifiers])

    def a_verifier_has_another_clock(self):
        one = self.one
        assert one.stop() == 0
        one.start(LD_PRELOAD=str(self.clock), AHEAD=str(self.die.choice([90, 3600])))
        self.lasts()
        assert one.stop() == 0
        one.start()

    def the_memory_of_a_verifier_is_put_back(self):
        one = self.one
        one.machine.sh(f"rm -rf /root/memory; mkdir /root/memory; cp -a {DIRECTORY}/seen.* {DIRECTORY}/incarnation "
                       "/root/memory/ 2>/dev/null || true")
        self.lasts()
        one.kill()
        one.machine.sh(f"cp -a /root/memory/. {DIRECTORY}/")
        one.start()

    # MARK: cables

    def a_verifier_is_cut_from_the_primary(self):
        one, machine = self.one, self.primary.machine
        self.stage.network.cut(one.machine, machine, how=self.die.choice(["blackhole", "unreachable", "prohibit"]))
        self.lasts(8)
        self.stage.network.mend(one.machine, machine)

    def a_verifier_is_cut_from_all(self):
        one = self.one
        self.stage.network.cut(one.machine)
        self.lasts(8)
        self.stage.network.mend(one.machine)

    def a_standby_is_cut_off(self):
        self.stage.network.cut(*self.stage.machines[:2])
        self.lasts()
        self.stage.network.mend(*self.stage.machines[:2])
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    # MARK: the database

    def the_primary_dies_and_the_standby_is_promoted(self):
        self.primary.kill()
        self.stage.pair.fail_over()
        self.stage.pair.renew()

    def the_primary_dies_and_comes_back(self):
        self.primary.kill()
        self.lasts(3)
        self.primary.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def the_primary_is_restarted(self):
        self.primary.stop()
        self.primary.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def a_standby_dies(self):
        self.stage.pair.standby.kill()
        self.lasts()
        self.stage.pair.standby.start()
        assert soon(lambda: self.primary.is_followed("sync"), 60)

    def the_primary_stands_still(self):
        server = self.primary.process
        server.send_all(signal.SIGSTOP)
        self.lasts()
        server.send_all(signal.SIGCONT)

    def its_connections_are_ended(self):
        for _ in range(self.die.randint(1, 8)):
            pids = backends(self.stage.sql)
            if pids:
                self.stage.sql(f"SELECT pg_terminate_backend(pid) FROM unnest(ARRAY[{','.join(pids)}]::int[]) AS pid")

    def a_table_is_locked(self):
        table = self.die.choice(["state", "enrollment", "worker", "event", "fleet"])
        seconds = self.die.uniform(0.5, 4)
        with contextlib.suppress(AssertionError, subprocess.CalledProcessError):
            self.stage.sql(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT")

    def tables_are_rewritten(self):
        self.stage.sql("VACUUM FULL state")
        self.stage.sql("VACUUM FULL enrollment")

    # MARK: what is lost

    def _dump(self, *more):
        self.primary.machine.run("pg_dump", "-h", "/tmp", "-U", "postgres", "-f", "/tmp/dump", *more, self.stage.database)

    def _restore(self):
        self.primary.machine.run("env", "PGOPTIONS=-c synchronous_commit=local", "pg_restore", "--clean", "-h", "/tmp", "-U", "postgres",
                                 "-d", self.stage.database, "/tmp/dump")

    def all_is_restored_beside_verifiers_that_run(self):
        self._dump("-Fc")
        self.lasts(4)
        self._restore()

    def two_tables_are_restored(self):
        self._dump("--data-only", "-t", "state", "-t", "enrollment")
        self.lasts(4)
        self.primary.machine.run(
            "env", "PGOPTIONS=-c synchronous_commit=local", "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-1", "-h", "/tmp", "-U", "postgres",
            "-d", self.stage.database, "-c", "TRUNCATE enrollment, state", "-f", "/tmp/dump")

    def all_is_restored_while_verifiers_are_stopped(self):
        self._dump("-Fc")
        self.lasts(4)
        for verifier in self.stage.verifiers:
            assert verifier.stop() == 0
        self._restore()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def all_is_restored_where_verifiers_were_killed(self):
        self._dump("-Fc")
        self.lasts(4)
        together(*[verifier.kill for verifier in self.stage.verifiers])
        self._restore()
        together(*[verifier.start for verifier in self.stage.verifiers])

    def a_standby_that_lags_is_promoted(self):
        self.stage.pair.asynchronous()
        self.stage.network.cut(*self.stage.machines[:2])
        self.lasts(3)
        self.primary.kill()
        self.stage.network.mend(*self.stage.machines[:2])
        self.stage.pair.fail_over()
        self.stage.pair.renew()

    LOSING = ["all_is_restored_beside_verifiers_that_run", "two_tables_are_restored", "a_standby_that_lags_is_promoted",
              "all_is_restored_while_verifiers_are_stopped", "all_is_restored_where_verifiers_were_killed"]

    def round(self, number):
        """All that lose nothing, and one that does, in an order by chance."""
        names = ("a_", "all_", "both_", "its_", "the_", "two_", "tables_")
        others = sorted(name for name in vars(type(self)) if name.startswith(names) and name not in self.LOSING)
        return self.die.sample([*others, self.LOSING[number % len(self.LOSING)]], len(others) + 1)
