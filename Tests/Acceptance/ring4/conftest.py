"""The private machine's accounts and hosts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.hosts import (
    DEBIAN, PAM_D, SCRATCH, UIDS, Sshd, Su, Sudo, add_account, edit, remove_account, service,
    two_factors)
from support.pam_driver import BUILT
from support.sallyport import DEFAULT_STORE, REAL_ROOT, Services, Store


def pytest_collection_modifyitems(items):
    if not REAL_ROOT:
        for item in items:
            if "ring4" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="ring 4 runs real hosts and needs root"))


@pytest.fixture(scope="session", autouse=True)
def machine(sink):
    """Accounts alice and bob, sudo's right for alice, and a name service that folds spellings; no pauses."""
    for name, uid in UIDS.items():
        add_account(name, uid)
    sudoers = Path("/etc/sudoers")
    edit(sudoers, lambda text: text +
         "Defaults lecture=never, timestamp_timeout=0, passwd_tries=1\n"
         "alice ALL=(ALL) ALL\n")
    edit("/etc/login.defs", lambda text: re.sub("(?m)^FAIL_DELAY.*", "", text) + "FAIL_DELAY 0\n")
    libraries = SCRATCH / "lib"
    libraries.mkdir()
    shutil.copy(f"{BUILT}/libnss_fold.so.2", libraries)
    shutil.copy(f"{BUILT}/pauses.so", libraries)
    Path("/etc/ld.so.preload").write_text(f"{libraries}/pauses.so\n")
    Path("/etc/ld.so.conf.d/fold.conf").write_text(f"{libraries}\n")
    subprocess.run(["ldconfig", "-X"], check=True)
    edit("/etc/nsswitch.conf", lambda text: re.sub("(?m)^(passwd|shadow): files", r"\g<0> fold", text))
    yield
    for name in UIDS:
        remove_account(name)


@pytest.fixture(scope="session")
def daemons(machine):
    daemons = {methods: Sshd(methods) for methods in
               ("keyboard-interactive", "publickey,keyboard-interactive")}
    yield daemons
    for daemon in daemons.values():
        daemon.stop()


@pytest.fixture
def store():
    """The default store, as the hosts find it without `store=`."""
    shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
    return Store(DEFAULT_STORE)


@pytest.fixture
def services(tmp_path, store):
    """For the driver: our line alone, with the default store."""
    services = Services(tmp_path / "pam.d")
    for name in ("login", "sshd"):
        services.code(name, None, "nodelay")
    return services


@pytest.fixture(autouse=True)
def stacks(machine):
    """Password, then code, in every host."""
    for name in ("sshd", "sudo", "su"):
        service(name, *two_factors())


@pytest.fixture
def debian(stacks, installed):
    """Debian's own stacks in place of the harness's."""
    def restore():
        for path in PAM_D.iterdir():
            path.unlink()
        for name, content in DEBIAN.items():
            (PAM_D / name).write_bytes(content)
        shutil.rmtree(DEFAULT_STORE / "services", ignore_errors=True)
    restore()
    yield
    restore()


@pytest.fixture(
    params=["sshd keyboard-interactive", "sshd publickey,keyboard-interactive", "sudo", "su"])
def host(request, daemons):
    kind, _, methods = request.param.partition(" ")
    return daemons[methods] if kind == "sshd" else {"sudo": Sudo, "su": Su}[kind]()
