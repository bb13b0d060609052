"""One PostgreSQL for all tests, which Tests/Fleet/run has started; a database for each test."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.fleet import VERIFIER, Cluster, Verifier

LONGEST_TEST = 120  # seconds


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
        self.sql("INSERT INTO host (name, enrolls) VALUES ('web1', true), ('web2', false)")

    def words(self, user="sallyport_verifier"):
        return f"{self.cluster.words} dbname={self.database} user={user}"

    def sql(self, statement):
        return self.cluster.sql(statement, self.database)

    def verifier(self, name):
        self.made.append(Verifier(self.words(), self.directory, name).start())
        return self.made[-1]

    def accepted(self):
        """Who was, by the table of events."""
        return [name for name, in self.sql("SELECT encode(name, 'escape') FROM event WHERE outcome = 'accepted'")]

    def twice(self):
        """What was accepted more than once."""
        return self.sql("""SELECT encode(name, 'escape'), authenticator, position FROM event
          WHERE outcome = 'accepted' GROUP BY 1, 2, 3 HAVING count(*) > 1""")


@pytest.fixture(scope="session")
def cluster():
    return Cluster(Path(os.environ["SALLYPORT_FLEET"]))


@pytest.fixture
def fleet(cluster, tmp_path, request):
    tmp_path.chmod(0o700)
    made = Fleet(cluster, f"test_{abs(hash(request.node.name))}", tmp_path)
    yield made
    for verifier in made.made:
        verifier.kill()
