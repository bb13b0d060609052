"""A directory that is there, away, or half in the cache: real slapd and sssd, the real module."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.directory import MISSING, TELLS, Directory, ask_groups, resolves, wait
from support.hosts import SCRATCH, UIDS, add_account, edit, remove_account
from support.pam_driver import AUTH_ERR, BUILT, Driver
from support.sallyport import COMMAND, sallyport

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {' '.join(MISSING)}")
IGNORED = "PAM_PERM_DENIED"  # libpam's answer of a stack in which nobody said yes
RULES = {
    "loosens": "[rule r]\nmatch_group = admins\nenrollment = voluntary\n",
    "tightens": "[default]\nenrollment = voluntary\n[rule r]\nmatch_group = admins\nenrollment = refuse\n"}
# What becomes of a login under the two: a member, no member, not known.
YES, NO, UNKNOWN = ("in", "out"), ("out", "in"), ("out", "out")


@pytest.fixture(scope="module")
def directory(machine):
    directory = Directory()
    directory.up()
    yield directory
    directory.close()


@pytest.fixture
def fates(services, store, tmp_path, directory):
    """How each of them fares in the module; the command says the same."""
    directory.online()
    store.enroll()
    path = tmp_path / "sallyport.conf"
    services.code("sshd", store, "nodelay", f"conf={path}")

    def fate(name, rule):
        path.write_text(RULES[rule])
        with Driver(services) as driver:
            logins = []
            for _ in range(2):
                driver.send("sshd", name, "123456")
                logins.append(driver.verdict())
            # The library of sssd keeps descriptors of its own from then on; we keep none.
            logins.append(driver.login("sshd", name, "123456"))
        login = logins[0]
        assert {(one.result, len(one.prompts)) for one in logins} == {(login.result, len(login.prompts))}
        done = sallyport("config", "show", "--json", "--conf", path, "--user", name)
        level = json.loads(done.stdout)["enrollment"]["value"]
        assert (login.result, len(login.prompts)) == (
            (IGNORED, 0) if level == "voluntary" else (AUTH_ERR, 1)), (name, rule, level)
        return "in" if level == "voluntary" else "out"
    return lambda *names: {name: (fate(name, "loosens"), fate(name, "tightens")) for name in names}


def look_up(*names):
    """Their entries and the group's, as a listing of files does; nobody's groups."""
    assert all(resolves(name) for name in names) and resolves("admins", "group")


def settings(tells):
    return [TELLS] if tells else []


# shows: groups
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("away", [False, True])
def test_a_directory_that_answered_for_somebody_decides(directory, fates, ignores, tells, away):
    """Online, and away with a warm cache: bob is of this machine, dora in another group."""
    directory.cache(*settings(tells), ignore_group_members=ignores)
    if away:
        look_up("ana", "bea", "dora")
        for name in ("ana", "bea", "dora"):
            ask_groups(name)
        directory.down()
    # Where SSSD does not tell, nothing shows that the directory was asked for their groups.
    no = NO if tells else UNKNOWN
    assert fates("ana", "bea", "dora", "bob") == {"ana": YES, "bea": no, "dora": no, "bob": NO}


# shows: groups
@pytest.mark.decisive
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("dead", [False, True, "without its socket"])
def test_a_directory_that_never_answered_for_somebody_tightens(directory, fates, ignores, tells, dead):
    """Group and people in the cache, nobody's groups, and then slapd away (or sssd as well; the memory
    that it shares with programs stays)."""
    directory.cache(*settings(tells), ignore_group_members=ignores)
    look_up("ana", "bea")
    directory.down()
    if dead:
        directory.end_sssd()
    if dead == "without its socket":
        Path("/var/lib/sss/pipes/nss").unlink(missing_ok=True)
    # A group that was looked up whole lists all of its members.
    found = fates("ana", "bea", "bob")
    if ignores:
        assert found == {"ana": UNKNOWN, "bea": UNKNOWN, "bob": NO}
    else:
        assert found == {"ana": YES, "bea": UNKNOWN, "bob": NO}


# shows: groups
@pytest.mark.decisive
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("ignores", [False, True])
def test_a_group_that_another_login_left_is_no_proof(directory, fates, ignores, tells):
    """cleo's groups were asked for, which leaves the group with her alone in the cache."""
    directory.cache(*settings(tells), ignore_group_members=ignores)
    assert all(resolves(name) for name in ("ana", "bea"))
    assert 5100 in ask_groups("cleo")
    directory.down()
    assert fates("cleo", "ana", "bea") == {"cleo": YES, "ana": UNKNOWN, "bea": UNKNOWN}


@pytest.fixture
def other_directory(directory):
    """Groups come from another one than SSSD's, which has the same people and groups."""
    shutil.copy(f"{BUILT}/libnss_silent.so.2", SCRATCH / "lib")
    subprocess.run(["ldconfig", "-X"], check=True)
    before = Path("/etc/nsswitch.conf").read_text()
    edit("/etc/nsswitch.conf", lambda old: re.sub("(?m)^group:.*", "group: files silent # sss", old))
    yield
    Path("/etc/nsswitch.conf").write_text(before)


@pytest.mark.parametrize("dead", [False, True])
def test_an_sssd_from_which_no_groups_come_is_not_asked(directory, fates, other_directory, dead):
    """It serves something else, or is gone and has left its socket."""
    directory.cache()
    look_up("ana", "bea")
    if dead:
        directory.end_sssd()
    assert fates("ana", "bea") == {"ana": YES, "bea": NO}


@pytest.mark.parametrize("ignores", [False, True])
def test_a_directory_with_an_empty_cache_lets_nobody_in(directory, fates, ignores):
    directory.cache(TELLS, ignore_group_members=ignores)
    directory.down()
    assert not resolves("ana")
    assert fates("ana", "bob") == {"ana": UNKNOWN, "bob": UNKNOWN}


# shows: groups
@pytest.mark.parametrize("ignores", [False, True])
def test_a_directory_that_is_back_tightens_nobody_more(directory, fates, ignores):
    """What was answered while it was away is still in the memory that programs share with sssd."""
    directory.cache(TELLS, ignore_group_members=ignores)
    look_up("ana", "bea")
    directory.down()
    assert ask_groups("bea") == [5000]
    assert fates("bea") == {"bea": UNKNOWN}
    directory.up()
    wait(lambda: resolves("zoe"), "sssd has found slapd again")
    assert fates("ana", "bea", "bob") == {"ana": YES, "bea": NO, "bob": NO}


@pytest.fixture
def enrolled(store, directory):
    """ana, while the directory is there; then it is away, and nothing of it in the cache."""
    directory.online()
    directory.cache(TELLS)
    person = store.enroll("ana")
    directory.down()
    directory.cache(TELLS)
    assert not resolves("ana")
    return person


def test_an_outage_of_the_directory_is_no_deletion(enrolled, store):
    """No line that removes her is printed, and none removes her but by the uid."""
    # The machine's own stacks and settings do not matter here.
    told = sallyport("doctor", "--json")
    findings = [found for found in json.loads(told.stdout)["findings"] if "ana" in found["text"]]
    assert [(found["id"], found["severity"]) for found in findings] == [("user-unseen", "unseen")], findings
    status = sallyport("status", "ana", "--allow-missing")
    assert status.returncode == 65
    assert "unenroll" not in told.stdout + told.stderr + status.stdout + status.stderr
    for words in ([], ["--allow-missing"], ["--allow-missing", "--uid", "5002"]):
        done = sallyport("unenroll", "ana", "--force", *words)
        assert done.returncode == 67 and "unenroll" not in done.stderr, done.stderr
        assert (store.directory / "users" / "ana").is_dir()
    assert sallyport("unenroll", "ana", "--force", "--uid", "5001").returncode == 0
    assert not (store.directory / "users" / "ana").exists()


def told(path, text):
    """What `config check` says of this policy."""
    path.write_text(text)
    done = sallyport("config", "check", path)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


RULE = "[rule r]\nmatch_group = {}\nenrollment = refuse\n"
NOT_SEEN = "no account that is found here is in it, and a source in nsswitch.conf may list nobody"


def test_a_rule_on_a_group_that_lists_nobody_is_told_of_as_it_is(directory, store, tmp_path):
    """SSSD lists no people, and here no members; the enrolled are asked about."""
    directory.online()
    directory.cache(TELLS, ignore_group_members=True)
    path = tmp_path / "sallyport.conf"
    unseen = [f"{path}:2: warning: the members of group admins are not known: {NOT_SEEN}"]
    assert told(path, RULE.format("admins")) == unseen
    store.enroll("dora")
    assert told(path, RULE.format("admins")) == unseen
    assert told(path, RULE.format("crew, folk")) == []
    store.enroll("ana")
    assert told(path, RULE.format("admins")) == []
    directory.down()
    directory.cache(TELLS, ignore_group_members=True)
    assert told(path, RULE.format("admins")) == [
        f"{path}:2: warning: there is no group admins, or a source in nsswitch.conf is away"]


def test_a_name_in_another_case_is_named(directory, tmp_path):
    directory.online()
    directory.cache(TELLS)
    path = tmp_path / "sallyport.conf"
    rule = "[rule r]\nmatch_user = Ana, BOB\nmatch_group = Admins, ROOT\nenrollment = refuse\n"
    assert told(path, rule) == [
        f"{path}:2: warning: match_user: there is no account Ana. Did you mean: ana",
        f"{path}:2: warning: match_user: there is no account BOB. Did you mean: bob",
        f"{path}:3: warning: there is no group Admins. Did you mean: admins",
        f"{path}:3: warning: there is no group ROOT. Did you mean: root"]


def findings(*ids):
    told = json.loads(sallyport("doctor", "--json").stdout)["findings"]
    return [found for found in told if found["id"] in ids]


def follow(finding, tmp_path):
    """Types the command of the finding, and yes."""
    command = finding["fixes"][0]["text"].replace("sallyport ", f"{COMMAND} ")
    return subprocess.run(["sh", "-c", command], cwd=tmp_path, input="y\n", capture_output=True, text=True,
                          check=True, timeout=60)


def test_names_that_get_and_lose_their_domain_are_adopted_as_doctor_says(directory, store, tmp_path):
    """The commands it prints are typed; of a uid that another name has it prints none."""
    directory.online()
    directory.cache(TELLS)
    for name in ("ana", "bea"):
        store.enroll(name, allow_missing=False)
    assert findings("user-name-form", "user-renamed", "user-unseen") == []
    directory.cache(TELLS, full_names=True)
    found, = findings("user-name-form", "user-renamed", "user-unseen", "user-no-account")
    assert found["id"] == "user-name-form" and found["severity"] == "error"
    assert "ana@example:ana:5001" in found["fixes"][0]["text"], found
    follow(found, tmp_path)
    users = store.directory / "users"
    assert sorted(path.name for path in users.iterdir()) == ["ana@example", "bea@example"]
    assert findings("user-name-form", "user-renamed", "user-unseen", "user-unusable") == []
    # SSSD still finds the longer name, and has the short one for it.
    directory.cache(TELLS)
    assert sallyport("unenroll", "bea@example", "--force").returncode != 0
    found, = findings("user-name-form", "user-renamed", "user-unseen", "user-no-account")
    follow(found, tmp_path)
    assert sorted(path.name for path in users.iterdir()) == ["ana", "bea"]
    assert findings("user-name-form", "user-renamed", "user-unseen", "user-unusable") == []


def test_a_uid_that_somebody_else_has_is_no_ready_line(directory, store):
    directory.online()
    directory.cache(TELLS)
    add_account("anne", UIDS["alice"] + 500)
    try:
        store.enroll("anne", allow_missing=False)
        remove_account("anne")
        add_account("hanna", UIDS["alice"] + 500)
        found, = findings("user-name-form", "user-renamed", "user-unseen", "user-no-account")
        assert found["id"] == "user-renamed" and "hanna is a new person" in found["text"], found
        assert [fix["kind"] for fix in found["fixes"]] == ["advice"]
    finally:
        remove_account("hanna")
