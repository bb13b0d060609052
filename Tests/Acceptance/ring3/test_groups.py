"""Rules on groups and origins with the private machine's own groups: the module and the command see
the same, and in doubt what is stricter holds."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.hosts import SCRATCH, add_account, edit, remove_account
from support.pam_driver import AUTH_ERR, BUILT, Driver
from support.sallyport import sallyport

IGNORED = "PAM_PERM_DENIED"  # libpam's answer of a stack in which nobody said yes
PASSES, REFUSED = (IGNORED, 0), (AUTH_ERR, 1)
GROUPS = [f"team{number}" for number in range(100)]


@pytest.fixture(scope="module")
def groups():
    """carol: her own primary group, and a hundred others; a group with 3,000 members."""
    before = Path("/etc/group").read_text()
    add_account("carol", 3003)
    crowd = ",".join(f"member{number}" for number in range(3000))
    lines = [f"{name}:x:{4000 + number}:dave,carol" for number, name in enumerate(GROUPS)]
    lines += [f"crowd:x:4500:{crowd},carol", "others:x:4501:dave", "empty:x:4502:"]
    edit("/etc/group", lambda text: text + "\n".join(lines) + "\n")
    yield
    remove_account("carol")
    Path("/etc/group").write_text(before)


@pytest.fixture
def policy(tmp_path, store, services, groups):
    """Writes a policy file that both services name; how carol fares then."""
    store.enroll()
    path = tmp_path / "sallyport.conf"
    for name in ("login", "sshd"):
        services.code(name, store, "nodelay", f"conf={path}")

    class Policy:
        def module(self, text, service="sshd", **more):
            path.write_text(text)
            with Driver(services) as driver:
                login = driver.login(service, "carol", "123456", **more)
            return login.result, len(login.prompts)

        def command(self, text, key="enrollment", **options):
            path.write_text(text)
            words = [word for name, value in options.items() for word in (f"--{name}", value)]
            done = sallyport("config", "show", "--json", "--conf", path, "--user", "carol", *words)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)[key]["value"]
    return Policy()


def rule(condition, *lines):
    return "\n".join(["[rule r]", condition, *lines, ""])


def loosening(condition):
    return rule(condition, "enrollment = voluntary")


def tightening(condition):
    return "[default]\nenrollment = voluntary\n" + rule(condition, "enrollment = refuse")


@pytest.mark.parametrize("condition,member", [
    ("carol", True), ("team0", True), ("team99", True), (" ".join(GROUPS), True),
    ("others empty team50", True), ("crowd", True), ("others", False), ("empty", False),
    ("nobody-here, team1", True)])
def test_primary_and_supplementary_groups_match(policy, condition, member):
    condition = f"match_group = {condition}"
    for text, yes, no in ((loosening(condition), PASSES, REFUSED),
                          (tightening(condition), REFUSED, PASSES)):
        assert policy.module(text) == (yes if member else no)
        level = policy.command(text)
        assert level == ("voluntary" if (yes if member else no) == PASSES else "refuse")


# shows: groups
@pytest.mark.decisive
@pytest.mark.parametrize("group", ["nobody-here", "carol2", "TEAM0", "others nobody-here", "4000",
                                   "3003"])
def test_a_group_that_is_not_found_tightens_and_never_loosens(policy, group):
    """A mistyped name; a number is none."""
    condition = f"match_group = {group}"
    for text in (loosening(condition), tightening(condition)):
        assert policy.module(text) == REFUSED
        assert policy.command(text) == "refuse"


def test_an_account_in_the_database_is_what_counts_not_the_name_as_typed(policy, services):
    with Driver(services) as driver:
        policy.module(loosening("match_group = team0"))
        login = driver.login("sshd", "nobody-by-that-name", "123456")
    assert (login.result, len(login.prompts)) == REFUSED


@pytest.fixture
def sources(groups):
    """Says where groups come from: files, a directory that is down, one that lists no members."""
    libraries = SCRATCH / "lib-groups"
    libraries.mkdir(exist_ok=True)
    for name in ("broken", "silent"):
        shutil.copy(f"{BUILT}/libnss_{name}.so.2", libraries)
    Path("/etc/ld.so.conf.d/groups.conf").write_text(f"{libraries}\n")
    subprocess.run(["ldconfig", "-X"], check=True)
    before = Path("/etc/nsswitch.conf").read_text()

    def set_sources(text):
        edit("/etc/nsswitch.conf", lambda old: re.sub("(?m)^group:.*", f"group: {text}", old))
    yield set_sources
    Path("/etc/nsswitch.conf").write_text(before)


@pytest.fixture
def directory(sources):
    sources("files broken")
    return sources


def by_id(name):
    return subprocess.run(["id", "-nG", name], capture_output=True, text=True, check=True).stdout.split()


def by_succeed_if(services, name, group):
    """What another module says of the same question."""
    services.write("sshd", f"auth required pam_succeed_if.so quiet user ingroup {group}",
                   "account required pam_permit.so")
    with Driver(services) as driver:
        return driver.login("sshd", name).result == "PAM_SUCCESS"


# group of the directory -> whether carol is in it; `split` has its members in files, dave alone
SILENT = [("staffers", True), ("visitors", False), ("split", True), ("visitors staffers", True)]


# shows: groups
@pytest.mark.parametrize("group, member", SILENT)
def test_a_directory_that_lists_no_members_is_asked_by_the_account_too(
        policy, sources, services, group, member):
    """sssd with ignore_group_members, and one name in two sources."""
    edit("/etc/group", lambda text: text + "split:x:4602:dave\n")
    sources("files silent")
    condition = f"match_group = {group}"
    for text, yes, no in ((loosening(condition), PASSES, REFUSED),
                          (tightening(condition), REFUSED, PASSES)):
        assert policy.module(text) == (yes if member else no)
        level = policy.command(text)
        assert level == ("voluntary" if (yes if member else no) == PASSES else "refuse")
    assert any(name in by_id("carol") for name in group.split()) == member
    assert any(by_succeed_if(services, "carol", name) for name in group.split()) == member


def test_a_member_that_only_the_group_lists_is_one(policy, sources):
    """As where nsswitch.conf has another source for the groups of an account."""
    sources("files silent")
    assert policy.module(loosening("match_group = listed")) == PASSES
    assert policy.module(tightening("match_group = listed")) == REFUSED


def test_a_group_without_a_list_of_members_is_an_empty_one(policy, sources):
    """NULL in its place, which a name service should not give; the account tells that she is in it."""
    sources("files silent")
    assert policy.module(loosening("match_group = sloppy")) == PASSES
    assert policy.module(tightening("match_group = sloppy")) == REFUSED
    assert policy.command(loosening("match_group = sloppy")) == "voluntary"


# shows: groups
@pytest.mark.decisive
@pytest.mark.parametrize("group", ["interrupted", "huge"])
def test_a_source_that_never_comes_to_an_end_is_not_waited_for(policy, directory, group):
    """EINTR and ERANGE at every call."""
    condition = f"match_group = {group}"
    assert policy.module(loosening(condition)) == REFUSED
    assert policy.module(tightening(condition)) == REFUSED


# shows: groups
@pytest.mark.decisive
@pytest.mark.parametrize("group", ["admins", "again", "others admins"])
def test_a_directory_that_is_down_tightens_and_never_loosens(policy, directory, group):
    condition = f"match_group = {group}"
    assert policy.module(loosening(condition)) == REFUSED
    assert policy.module(tightening(condition)) == REFUSED
    assert policy.command(loosening(condition)) == "refuse"
    assert policy.command(tightening(condition)) == "refuse"
    keys = {"adjacent_intervals": (2, 9), "look_ahead": (3, 90), "guess_budget": ("0.10 %", "5 %")}
    for key, (strict, loose) in keys.items():
        for outside, inside in ((strict, loose), (loose, strict)):
            text = f"[default]\n{key} = {outside}\n" + rule(condition, f"{key} = {inside}")
            assert policy.command(text, key) == str(strict)
    text = "[default]\nstate = disabled\n" + rule(condition, "state = enabled")
    assert policy.module(text) == REFUSED


def test_a_group_that_files_have_is_found_though_the_directory_is_down(policy, directory):
    assert policy.module(loosening("match_group = team7")) == PASSES
    assert policy.module(tightening("match_group = team7")) == REFUSED
    assert policy.module(loosening("match_group = admins team7")) == PASSES


def test_a_directory_before_others_has_to_end_the_search(policy, directory):
    """The C library tells what the last source says; so the manual's advice."""
    directory("broken [UNAVAIL=return TRYAGAIN=return] files")
    assert policy.module(tightening("match_group = admins")) == REFUSED
    assert policy.module(loosening("match_group = admins")) == REFUSED


# rhost, matched by 192.0.2.0/24: True, False, or None where it is not known
ORIGINS = [
    ("192.0.2.7", True), ("::ffff:192.0.2.7", True), ("::FFFF:c000:0207", True),
    ("198.51.100.1", False), ("2001:db8::7", False), ("::ffff:198.51.100.1", False),
    ("fe80::1%eth0", False), ("host.example.org", None), ("192.0.2.7.example.org", None),
    ("192.0.2", None), ("192.0.2.007", None), ("192.0.2.7:22", None), ("[192.0.2.7]", None),
    ("192.0.2.7 ", None), ("192.0.2.7%eth0", None), ("0xc0000207", None), ("3221225991", None),
    ("", None), (None, None)]


@pytest.mark.parametrize("rhost,matches", ORIGINS)
def test_an_origin_that_is_not_known_is_loosened_by_no_address(policy, rhost, matches):
    condition = "match_origin = 192.0.2.0/24"
    assert policy.module(loosening(condition), rhost=rhost) == (PASSES if matches else REFUSED)
    expected = PASSES if matches is False else REFUSED
    assert policy.module(tightening(condition), rhost=rhost) == expected
    if rhost:
        assert policy.command(loosening(condition), origin=rhost) == (
            "voluntary" if matches else "refuse")
        assert policy.command(tightening(condition), origin=rhost) == (
            "voluntary" if matches is False else "refuse")


@pytest.mark.parametrize("rhost", ["fe80::1%eth0", "fe80::1%1", "FE80::1", "fe80::1"])
def test_the_zone_of_an_address_does_not_count(policy, rhost):
    assert policy.module(loosening("match_origin = fe80::/64"), rhost=rhost) == PASSES
    assert policy.module(tightening("match_origin = fe80::1"), rhost=rhost) == REFUSED


@pytest.mark.parametrize("service,rhost,local", [
    ("login", None, True), ("login", "192.0.2.7", False), ("login", "localhost", False),
    ("sshd", None, False), ("sshd", "127.0.0.1", False), ("sshd", "localhost", False)])
def test_this_machine_is_a_local_service_without_an_address(policy, service, rhost, local):
    answer = policy.module(loosening("match_origin = local"), service, rhost=rhost)
    assert answer == (PASSES if local else REFUSED)
    answer = policy.module(loosening("match_origin = network"), service, rhost=rhost)
    assert answer == (REFUSED if local else PASSES)
    # An address is not this machine's, and this machine has none.
    answer = policy.module(tightening("match_origin = 10.0.0.0/8"), "login")
    assert answer == PASSES


def test_a_file_of_64_kib_is_read_and_one_byte_more_is_not(policy, tmp_path, services):
    text = loosening("match_group = team99")
    whole = text + "#" * (65536 - len(text))
    assert policy.module(whole) == PASSES
    assert policy.command(whole) == "voluntary"
    path = tmp_path / "long.conf"
    path.write_text(whole + "#")
    done = sallyport("config", "check", path)
    assert done.returncode == 78 and done.stderr == f"sallyport: {path}: longer than 64 KiB\n"
    # Without a last good one.
    shutil.rmtree(tmp_path / "store" / "policy.good")
    assert policy.module(whole + "#") == REFUSED


# shows: groups
def test_the_command_names_a_group_in_which_nobody_is(tmp_path, groups, sources):
    edit("/etc/group", lambda text: text + "ghosts:x:4603:dave,erin\n")
    sources("files silent")
    path = tmp_path / "sallyport.conf"
    path.write_text("[rule a]\nmatch_group = team0 carol crowd staffers\nlook_ahead = 3\n"
                    "[rule b]\nmatch_group = empty, visitors\nlook_ahead = 2\n"
                    "[rule c]\nmatch_group = ghosts\nlook_ahead = 2\n")
    done = sallyport("config", "check", path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"{path}:5: warning: no account is found in group empty",
        f"{path}:5: warning: no account is found in group visitors",
        f"{path}:8: warning: no account is found in group ghosts"]


# shows: groups
def test_the_command_names_a_group_that_does_not_exist(tmp_path, groups):
    path = tmp_path / "sallyport.conf"
    path.write_text("[rule a]\nmatch_group = team0, whell\nlook_ahead = 3\n"
                    "[rule b]\nmatch_group = nobody-here\nlook_ahead = 2\n")
    done = sallyport("config", "check", path, "--user", "carol")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"{path}:2: warning: there is no group whell",
        f"{path}:5: warning: there is no group nobody-here"]
