"""doctor on a machine with 10,000 accounts: it knows each of them, and is done soon."""

import json
import os
import time

import pytest

from support.sallyport import sallyport
from town import Town

ACCOUNTS, ENROLLED = 10_000, 2_000
# Seconds of processors. No measurement: what is done for each pair of accounts takes minutes.
LIMIT = 20


def told(*arguments):
    """What doctor says, the seconds until then, and those of processors."""
    begun, before = time.monotonic(), os.times()
    done = sallyport("doctor", *arguments)
    seconds, after = time.monotonic() - begun, os.times()
    assert done.returncode == 2, done.stderr
    used = sum(after[2:4]) - sum(before[2:4])
    return done.stdout, seconds, used


@pytest.fixture
def town(debian, store):
    town = Town(ACCOUNTS, ENROLLED)
    yield town
    town.leave()


@pytest.mark.first
def test_doctor_knows_each_of_ten_thousand_accounts(town, figure):
    text, seconds, used = told()
    figure(f"doctor on {ACCOUNTS:,} accounts: {seconds:.1f} s, {used:.1f} s of processors")
    assert used < LIMIT
    assert "Who gets in:" in text
    access = json.loads(told("--json")[0])["access"]
    rows = {row["user"]: row for row in access["accounts"]}
    # Who has neither a password, a key, a rule nor an enrollment has no way in.
    assert {name for name in town.names if name not in rows} == town.strangers
    assert {name for name in town.names if name in rows and rows[name]["enrolled"]} \
        == set(town.enrolled)
    for name, service, verdict, reason in town.samples:
        found = {(cell["verdict"], cell["reason"]) for cell in rows[name]["cells"]
                 if access["ways"][cell["way"]]["name"] == service}
        assert (verdict, reason) in found, (name, service, found)
