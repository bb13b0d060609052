"""One PostgreSQL for nearly all tests, which Tests/Fleet/run has started; a database for each test."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support import only
from support.dealing import pytest_xdist_make_scheduler  # noqa: F401
from support.fleet import VERIFIER, Cluster, Verifier, host_rows
from support.stage import Stage
from support.whole import WHOLE

LONGEST_TEST = 3600 if WHOLE else 180  # seconds


def pytest_collection_modifyitems(config, items):
    only.keep(config, items)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    def stop(*_):
        raise TimeoutError(f"not done after {LONGEST_TEST} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_TEST)
    yield
    signal.alarm(0)


class Fleet:
    """A database with its schema, key, and verifiers over it."""

    def __init__(self, cluster, database, directory):
        self.cluster, self.database, self.directory = cluster, database, directory
        self.made = []
        cluster.sql(f"CREATE DATABASE {database}")
        self.init = subprocess.run(
            [VERIFIER, "init", "--database", self.words("postgres"), "--directory", directory], capture_output=True,
            text=True, timeout=60)
        self.sql(host_rows((directory / "key").read_bytes(), [("web1", True), ("web2", False)]))

    def words(self, user="sallyport_verifier"):
        return f"{self.cluster.words} dbname={self.database} user={user}"

    def sql(self, statement):
        return self.cluster.sql(statement, self.database)

    def verifier(self, name, *more):
        self.made.append(Verifier(self.words(), self.directory, name, *more).start())
        return self.made[-1]

    def accepted(self):
        """Who was, by the table of events."""
        return [name for name, in self.sql("SELECT encode(name, 'escape') FROM event WHERE outcome = 'accepted'")]

    def twice(self):
        """What was accepted more than once."""
        return self.sql("""SELECT encode(name, 'escape'), authenticator, position FROM event
          WHERE outcome = 'accepted' GROUP BY 1, 2, 3 HAVING count(*) > 1""")


def pytest_configure(config):
    config.addinivalue_line("markers", "decisive: see Tests/Verdict/again")


@pytest.fixture(scope="session")
def cluster():
    return Cluster(Path(os.environ["SALLYPORT_FLEET"]))


def fleet_over(cluster, directory, request):
    directory.chmod(0o700)
    made = Fleet(cluster, f"test_{abs(hash(request.node.name))}", directory)
    yield made
    for verifier in made.made:
        verifier.kill()


@pytest.fixture
def fleet(cluster, tmp_path, request):
    yield from fleet_over(cluster, tmp_path, request)


@pytest.fixture
def own_fleet(tmp_path, request):
    """Over a PostgreSQL of its own: what is done to that one happens to no other test."""
    with Cluster() as cluster:
        yield from fleet_over(cluster, tmp_path, request)


@pytest.fixture
def figure(record_property):
    """Notes a measured figure for the end of the run."""
    return lambda text: record_property("figure", text)


def pytest_terminal_summary(terminalreporter):
    figures = [text for report in terminalreporter.getreports("passed")
               for kind, text in report.user_properties if kind == "figure"]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def theatre():
    with Stage() as made:
        yield made


@pytest.fixture
def stage(theatre):
    """Machines of their own, everything whole, a new database."""
    theatre.begin()
    yield theatre
    theatre.end()


@pytest.fixture
def cast(stage):
    """The same, with its three hosts joined."""
    stage.gather()
    return stage
