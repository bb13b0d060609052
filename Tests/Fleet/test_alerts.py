"""The alerts of a fleet for Prometheus: each is made to fire by a fault that is planted in a real fleet. What
`sallyport-verifier status --metrics` writes then goes to promtool, which says what fires by it. Which metrics, alerts
and sections of docs/alerts.md belong together is looked at by Tests/Checks/alerts.

test_the_rules_and_the_expressions_of_the_dashboard_are_ones_of_prometheus
test_each_fault_of_the_database_fires_its_alert_and_a_whole_fleet_fires_none
test_each_fault_of_verifiers_fires_its_alert
test_each_fault_in_the_rows_fires_its_alert
test_a_host_that_brings_wrong_codes_fires_its_alert
"""

import json
import re
import subprocess
import time

import pytest
from support.fleet import REFUSED, VERIFIER
from support.machines import ROOT, run, together
from support.postgres import Server, certificate
from support.service import soon
from support.stage import DIRECTORY

EXAMPLES = ROOT / "docs/examples/prometheus"
RULES = EXAMPLES / "sallyport.rules.yml"
MINUTES = 20  # of figures, one each minute
PHRASE = "correct horse battery staple\n"


@pytest.fixture
def promtool(tmp_path):
    def call(*words):
        try:
            return run("promtool", *words, cwd=tmp_path)
        except FileNotFoundError:
            pytest.skip("promtool (prometheus) is not installed")
    call("--version")
    return call


class Figures:
    """What the fleet has said of itself, and which alerts have to fire by each."""

    def __init__(self, read, promtool, directory):
        self.read, self.promtool, self.path, self.tests = read, promtool, directory / "tests.json", []

    def now(self):
        """The lines, and the keywords of their warnings."""
        text = self.read()
        return text, set(re.findall(r'^sallyport_fleet_warnings\{what="([a-z-]+)"\} [1-9]', text, re.MULTILINE))

    @staticmethod
    def series(text, late=0):
        """As if each minute's were these, but for when they were written: `late` seconds ago."""
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                if name == "sallyport_fleet_written_seconds":
                    assert abs(int(value) - time.time()) < 60
                    value = f"{-late}+60"
                else:
                    value += "+0"
                yield name, f"{value}x{MINUTES}"

    def note(self, what, series, alerts):
        """From these figures on, these alerts fire."""
        self.tests.append({
            "name": what, "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series],
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{MINUTES // 2}m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(alerts)]}]})

    def fires(self, *words, limit=60, after=(), plant=None):
        """Once the fault is planted, the fleet warns of this and of no more, and its alerts fire. Gives the figures."""
        if plant:
            plant()
        wanted, found = {*words, *after}, []
        assert soon(lambda: found.append(self.now()) or found[-1][1] == wanted, limit), (wanted, found[-1])
        self.note("+".join(words) or "whole", self.series(found[-1][0]), [alert(word) for word in wanted])
        return found[-1][0]

    def hold(self):
        """promtool says the same of all that was noted."""
        self.path.write_text(json.dumps(
            {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": self.tests}))
        self.promtool("test", "rules", self.path)


def alert(word):
    return "Sallyport" + word.title().replace("-", "")


def test_the_rules_and_the_expressions_of_the_dashboard_are_ones_of_prometheus(promtool, tmp_path):
    promtool("check", "rules", RULES)
    board = json.loads((EXAMPLES / "sallyport-dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert asked
    (tmp_path / "board.json").write_text(json.dumps(
        {"groups": [{"name": "board", "rules": [
            {"record": f"board_{number}", "expr": expression} for number, expression in enumerate(asked)]}]}))
    assert f"{len(asked)} rules found" in promtool("check", "rules", "board.json").stdout


@pytest.fixture
def figures(stage, promtool, tmp_path):
    """Those of a fleet whose keys have a copy."""
    one = stage.verifiers[0]

    def read():
        one.run("status", "--metrics", "/root/fleet.prom", check=False)
        return one.machine.read("/root/fleet.prom").decode()
    one.machine.write("/root/copy", one.machine.run(VERIFIER, "key", "show", input=PHRASE).stdout, 0o600)
    check_copy(one)
    return Figures(read, promtool, tmp_path)


def check_copy(verifier):
    verifier.machine.run(VERIFIER, "key", "check", "/root/copy", input=PHRASE)


@pytest.fixture
def third(stage):
    """One more standby, which saves may wait for as well."""
    server, pair = Server(stage.hosts[2].machine), stage.pair
    server.certify(stage.network.scratch)
    server.follow(pair.primary)
    pair.primary.waits_for(f"ANY 1 ({pair.standby.machine.name}, {server.machine.name})")
    yield server
    server.kill()


def test_each_fault_of_the_database_fires_its_alert_and_a_whole_fleet_fires_none(stage, third, figures):
    primary, standby = stage.pair.primary, stage.pair.standby
    [[names]] = primary.sql("SHOW synchronous_standby_names")
    whole = figures.fires()
    figures.note("late", figures.series(whole, late=301), ["SallyportUnwatched"])
    figures.note("nothing", [], ["SallyportUnwatched"])
    figures.fires("no-synchronous-standby", plant=lambda: primary.waits_for(""))
    primary.waits_for(names)
    figures.fires("one-standby", plant=third.kill)
    figures.fires("standbys-away", "saves-wait", "no-verifier", "verifier-silent", plant=standby.kill)
    together(third.start, standby.start)
    figures.fires()

    def certify(days):
        servers = [*stage.pair.servers, third]
        certificate(stage.network.scratch, *[server.machine.name for server in stage.pair.servers], days=days)
        for server in servers:
            server.certify(stage.network.scratch)
            server.sql("SELECT pg_reload_conf()")
        for verifier in stage.verifiers:
            verifier.prepare()
    figures.fires("certificate-ends", plant=lambda: certify(20))
    certify(365)
    before = figures.fires()
    stage.verifiers[0].run("distrust")
    found = []
    # A save may wait for a moment.
    assert soon(lambda: found.append(figures.now()) or found[-1][1] == {"distrusted"}), found[-1]
    after = found[-1][0]
    gone, there = (dict(figures.series(text)) for text in (before, after))
    figures.note("distrusted", [
        (name, values if name.startswith("sallyport_fleet_written") else
         f"{gone.get(name, values).split('+')[0]}+0x5 {values.split('+')[0]}+0x{MINUTES}")
        for name, values in there.items()], ["SallyportDistrusted"])
    figures.note("distrusted long ago", figures.series(after), [])
    primary.kill()
    assert soon(lambda: figures.read().endswith("\nsallyport_fleet_up 0\n"))
    figures.note("down", figures.series(figures.read()), ["SallyportFleetDown"])
    figures.hold()


def test_each_fault_of_verifiers_fires_its_alert(stage, figures):
    one, two = stage.verifiers
    library = stage.network.scratch / "clock.so"
    run("cc", "-fPIC", "-shared", "-o", library, ROOT / "Tests/Acceptance/clock/clock.c")
    ahead = {"LD_PRELOAD": str(library), "AHEAD": "60"}
    usual = ["one-standby"]

    def fake(name, ahead=0, **columns):
        """A verifier that is there for a minute, as its row has it."""
        row = {"posted": "posted", "policy": "policy"} | columns
        then = "clock_timestamp() + interval '1 minute'"
        stage.sql(
            "INSERT INTO worker (verifier, worker, n, server, posted, clock, now, version, policy) SELECT "
            f"'{name}', 0, 1, server, {row['posted']}, ((extract(epoch FROM {then}) + {ahead}) * 1000)::bigint, {then}, "
            f"version, {row['policy']} FROM worker WHERE verifier = 'one' AND worker = 0")

    def forget():
        stage.sql("DELETE FROM worker WHERE verifier NOT IN ('one', 'two')")
    figures.fires("verifier-clock", after=usual, plant=lambda: fake("three", ahead=60.5))
    figures.fires("clocks-differ", after=usual, plant=lambda: fake("four", ahead=60.5))
    forget()
    figures.fires("server-not-looked-at", after=usual, plant=lambda: fake("three", posted="'another'"))
    forget()
    figures.fires("policy-differs", after=usual, plant=lambda: fake("three", policy="'7 1'"))
    forget()
    figures.fires("one-verifier", "verifier-silent", after=usual, plant=two.kill)
    one.kill()
    conf = f"{DIRECTORY}/sallyport.conf"
    right = one.machine.read(conf)
    figures.fires("no-verifier", "policy-broken", "verifier-silent", after=usual,
                  plant=lambda: one.machine.write(conf, "enrollment: gargle\n"))
    one.machine.write(conf, right)
    together(lambda: one.start(**ahead), lambda: two.start(**ahead))
    figures.fires("database-clock", after=usual)
    figures.hold()


def test_each_fault_in_the_rows_fires_its_alert(stage, figures):
    one, usual = stage.verifiers[0], ["one-standby"]

    def fires(word, plant, mend):
        figures.fires(word, after=usual, plant=plant)
        mend()
        assert soon(lambda: figures.now()[1] == set(usual)), (word, figures.now()[1])

    def sql(statement):
        return lambda: stage.sql(statement)
    [[schema]] = stage.sql("SELECT schema FROM fleet")
    fires("schema-old", sql("UPDATE fleet SET schema = 1"), sql(f"UPDATE fleet SET schema = {schema}"))
    fires("no-safe-copy", lambda: one.machine.sh(f"rm {DIRECTORY}/key.copied"), lambda: check_copy(one))
    fires("host-unseen", sql("UPDATE host SET seen = now() - interval '31 days' WHERE name = 'web1'"),
          sql("UPDATE host SET seen = now() WHERE name = 'web1'"))
    fires("host-rests", lambda: one.run("hosts", "give-up", "web2"), lambda: one.run("hosts", "accept", "web2"))
    fires("events-bounded", sql("ALTER TABLE event ADD CONSTRAINT event_bound CHECK (at < '2100-01-01')"),
          sql("ALTER TABLE event DROP CONSTRAINT event_bound"))
    days = stage.sql("SELECT relname FROM pg_class WHERE relname ~ '^event_[0-9]{8}$' AND relkind = 'r' ORDER BY 1")
    fires("event-days-end", sql(f"DROP TABLE {', '.join(day for [day] in days[3:])}"),
          lambda: one.run("migrate", user="postgres"))

    def hold():
        """A table that somebody has locked."""
        stage.pair.primary.machine.start(
            "psql", "-Xq", "-h", "/tmp", "-U", "postgres", "-d", stage.database, "-c",
            "BEGIN; LOCK TABLE outcome; SELECT pg_sleep(100)", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    fires("left-out", hold, sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE "
                                "'BEGIN; LOCK TABLE outcome%'"))
    figures.hold()


def test_a_host_that_brings_wrong_codes_fires_its_alert(fleet, promtool, tmp_path):
    """Over a database that has no standby, by a verifier without a second one."""
    path = tmp_path / "fleet.prom"

    def read():
        run(VERIFIER, "status", "--directory", fleet.directory, "--database", fleet.words("postgres"), "--metrics", path)
        return path.read_text()
    figures, usual = Figures(read, promtool, tmp_path), ["no-synchronous-standby", "no-safe-copy", "one-verifier"]
    verifier = fleet.verifier("one", "--host-wrong-codes", "5")
    names = [f"user{number}" for number in range(6)]
    for name in names:
        verifier.enroll(name)
    figures.fires(after=usual)
    for name in names:
        assert verifier.type(name, "000000") == REFUSED
    # It is said with the next counts.
    figures.fires("host-closed", after=usual)
    figures.hold()
