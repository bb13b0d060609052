"""What `pam enable` writes into stacks as Fedora and EL 9 have them, under the real libpam and the
real pam_unix: no wrong password reaches the code prompt."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from clinic import doctor, wrong
from setups import DISTRIBUTIONS
from support.hosts import PAM_D, as_user, converse
from support.sallyport import REPOSITORY, sallyport
from test_doctor import clinic, disk, healthy  # noqa: F401: fixtures
from test_doctor_setups import machine_of  # noqa: F401: fixture

GATE = Path("/etc/security/sallyport-gate")
INNER = Path(f"{GATE}-inner")


@pytest.fixture
def gate():
    for path in (GATE, INNER):
        path.write_bytes((REPOSITORY / "pam" / path.name.removeprefix("sallyport-")).read_bytes())
    yield
    GATE.unlink()
    INNER.unlink()


def enter(service, code, **password):
    said = "echo IN-$((6*7))"
    if service == "su":
        return converse(as_user("bob", "su", "alice", "-c", said), code, **password)
    command = f"pamtester {service} alice authenticate acct_mgmt && {said}"
    return converse(["/bin/sh", "-c", command], code, **password)


@pytest.mark.parametrize("distribution, service", [
    ("fedora", "sshd"), ("fedora", "su"), ("fedora", "login"), ("fedora-sssd", "sshd")])
def test_a_wrong_password_is_refused_without_a_prompt_for_a_code(
        distribution, service, machine_of, gate):  # noqa: F811
    machine = machine_of(SimpleNamespace(files=DISTRIBUTIONS[distribution], service=service))
    before = (PAM_D / service).read_bytes()
    sshd = ["--sshd", "none"] if service == "sshd" else []
    done = sallyport("pam", "enable", service, "--yes", "--force", *sshd)
    assert done.returncode == 0, done.stderr
    assert f"substack   {GATE}" in (PAM_D / service).read_text()
    assert "stack-wrong-password warning" not in wrong(doctor("--service", service))
    first, second, *_ = machine.enrolled["alice"].backup_codes
    state = machine.store.state("alice")
    kept = state.read_bytes()
    let_in, written = enter(service, first, password="not it")
    assert not let_in and "erification code" not in written, written
    assert state.read_bytes() == kept
    assert enter(service, "000000")[0] is False
    let_in, written = enter(service, second)
    assert let_in and "erification code" in written, written
    done = sallyport("pam", "disable", service, "--yes")
    assert done.returncode == 0, done.stderr
    assert (PAM_D / service).read_bytes() == before
