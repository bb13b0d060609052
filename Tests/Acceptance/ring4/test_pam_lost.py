"""What `pam enable` wrote and something else took away: a package, a role, a hand."""

import json
import re
from pathlib import Path

import pytest

from support.hosts import PAM_D, Sudo
from support.sallyport import sallyport
from test_pam import BASE, base  # noqa: F401: a fixture

pytestmark = pytest.mark.usefixtures("base")
RECORDS = Path("/var/lib/sallyport/services")


def check():
    return sallyport("pam", "status", "--check", "--settle", "0")


def alerts(sink, since):
    sink.flush()
    return [line.text for line in sink.lines[since:]
            if line.level == "ALERT" and "no longer asks" in line.text]


@pytest.mark.decisive
def test_lines_that_a_package_takes_away_are_an_alert_once_and_an_error_of_doctor(store, sink):
    store.enroll(allow_missing=False)
    assert sallyport("pam", "enable", "sudo", "--yes").returncode == 0
    record = RECORDS / "sudo"
    assert record.stat().st_mode & 0o777 == 0o600 and record.read_text().startswith("version = 1\n")
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sink.flush()
    start = len(sink.lines)
    # A minute ago: a change of the same second may be of before it.
    record.write_text(re.sub(r"(?m)^(enabled = )(\d+)$", lambda one: f"{one[1]}{int(one[2]) - 60}",
                             record.read_text()))
    (PAM_D / "sudo").write_bytes(BASE["sudo"])
    for _ in range(3):
        done = check()
        assert done.returncode == 1 and "hint: sallyport pam enable sudo\n" in done.stderr
    told = alerts(sink, start)
    assert len(told) == 1 and told[0].startswith("sallyport: sudo no longer asks for a code"), told
    said = json.loads(sallyport("doctor", "sudo", "--json").stdout)
    found = [one for one in said["findings"] if one["id"] == "service-lost"]
    assert found[0]["severity"] == "error" and " since about 2" in found[0]["text"]
    assert sallyport("pam", "enable", "sudo", "--yes").returncode == 0
    assert check().returncode == 0
    (PAM_D / "sudo").write_bytes(BASE["sudo"])
    assert check().returncode == 1 and len(alerts(sink, start)) == 2, "another change"
    assert sallyport("pam", "disable", "sudo", "--yes").returncode == 0
    # Copies of before are left, which would look like a service that was lost.
    assert check().returncode == 0 and "\ndisabled = " in record.read_text()


def test_a_damaged_record_keeps_nobody_out(store):
    alice = store.enroll(allow_missing=False)
    assert sallyport("pam", "enable", "sudo", "--yes").returncode == 0
    for path in RECORDS.iterdir():
        path.write_bytes(b"\0\xff" * 5000)
    assert Sudo().enter("alice", alice.code())
    assert check().returncode == 0
    assert sallyport("pam", "disable", "sudo", "--yes").returncode == 0
