"""People and groups of a directory whose names have spaces: real slapd and sssd, the real module."""

import pytest

from support.directory import MISSING, Directory
from support.hosts import edit
from support.pam_driver import AUTH_ERR, Driver
from support.sallyport import sallyport

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' '.join(MISSING)}")
NAME = "john doe"
KEY = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(scope="module")
def directory(machine):
    directory = Directory()
    directory.up()
    directory.cache()
    yield directory
    directory.close()


@pytest.fixture
def asks(services, store, tmp_path, directory):
    """Whether a person who is not enrolled is asked where a rule on these words says voluntary."""
    path = tmp_path / "sallyport.conf"
    services.code("sshd", store, "nodelay", f"conf={path}")
    store.enroll()

    def ask(condition, name):
        path.write_text(f"[rule r]\n{condition}\nenrollment = voluntary\n")
        with Driver(services) as driver:
            driver.send("sshd", name, "123456")  # the library of sssd keeps descriptors of its own
            found = driver.verdict()
        assert (found.result == AUTH_ERR) == bool(found.prompts)
        return bool(found.prompts), sallyport("config", "check", path).stderr
    return ask


@pytest.mark.decisive
@pytest.mark.parametrize("condition", [
    'match_user = "john doe"', 'match_user = ana, "john doe"', 'match_group = "Domain Users"',
    'match_group = folk\nmatch_user = "john doe"'])
def test_a_name_in_quotes_is_matched(asks, condition):
    for name, is_asked in ((NAME, False), ("zoe", True)):
        found, told = asks(condition, name)
        assert found == is_asked and "match_user" not in told, told


@pytest.mark.parametrize("key,name", [
    ("match_user", "john doe"), ("match_group", "Domain Users"), ("match_group", "Staff members")])
def test_a_name_without_quotes_is_named_with_them(asks, key, name):
    """A group whose second word is a group, too."""
    if name == "Staff members":
        edit("/etc/group", lambda text: text + "members:x:7001:\nStaff members:x:7002:bob\n")
    is_asked, told = asks(f"{key} = {name}", NAME)
    assert is_asked
    start = "match_user: " if key == "match_user" else ""
    assert told.endswith(f':2: warning: {start}{name} is not matched: write it in quotes, "{name}"\n'), told


def test_people_with_spaces_are_imported_and_required(directory, store, tmp_path):
    names = tmp_path / "list"
    names.write_text(f'"{NAME}" otpauth://totp/x?secret={KEY}\n')
    done = sallyport("import", "uri", names, "--store", store.directory)
    assert done.returncode == 0, done.stderr
    done = sallyport("status", NAME, "--store", store.directory)
    assert done.returncode == 0 and done.stdout.startswith("john doe, enrolled "), done.stdout + done.stderr
    done = sallyport("require", NAME, "--store", store.directory)
    assert done.returncode == 0, done.stderr
