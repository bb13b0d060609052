"""sshd that looks up names: what an address may loosen and tighten then."""

from pathlib import Path

import pytest

from support.hosts import Sshd
from support.sallyport import reason

POLICY = Path("/etc/security/sallyport.conf")


@pytest.fixture(scope="module", params=["no", "yes"], ids=["addresses", "names"])
def sshd(machine, request):
    daemon = Sshd("keyboard-interactive", use_dns=request.param)
    daemon.tells_names = request.param == "yes"
    yield daemon
    daemon.stop()


@pytest.fixture
def policy():
    before = POLICY.read_text() if POLICY.exists() else None
    POLICY.parent.mkdir(exist_ok=True)
    yield POLICY.write_text
    if before is None:
        POLICY.unlink()
    else:
        POLICY.write_text(before)


def test_a_name_is_loosened_by_no_address(sshd, store, policy, sink):
    store.enroll(allow_missing=False)
    policy("[rule here]\nmatch_origin = 127.0.0.0/8\nenrollment = voluntary\n")
    with sink.watch() as lines:
        assert sshd.enter("bob", "123456") == (not sshd.tells_names)
    if sshd.tells_names:
        assert reason(lines) == "not-enrolled"


def test_a_name_is_tightened_by_every_address(sshd, store, policy, sink):
    store.enroll(allow_missing=False)
    policy("[default]\nenrollment = voluntary\n"
           "[rule here]\nmatch_origin = 127.0.0.0/8\nenrollment = refuse\n")
    with sink.watch() as lines:
        assert not sshd.enter("bob", "123456")
    assert reason(lines) == "not-enrolled"


def test_another_address_is_nobodys_business(sshd, store, policy, sink):
    store.enroll(allow_missing=False)
    policy("[default]\nenrollment = voluntary\n"
           "[rule there]\nmatch_origin = 192.0.2.0/24\nenrollment = refuse\n")
    assert sshd.enter("bob", "123456") == (not sshd.tells_names)
