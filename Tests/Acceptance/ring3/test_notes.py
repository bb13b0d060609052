"""Levels of single users and remembered addresses: what the command says, the module does."""

import json
import time

import pytest

from support.hosts import add_account, remove_account
from support.pam_driver import AUTH_ERR, SUCCESS
from support.sallyport import MODULE, our_line, sallyport

IGNORED = "PAM_PERM_DENIED"  # libpam's answer of a stack in which nobody said yes
PASSES, REFUSED = (IGNORED, 0), (AUTH_ERR, 1)
NEVER = "2999-12-31"
KEY = "SSH_AUTH_INFO_0=publickey ssh-ed25519 AAAA"  # a first factor


@pytest.fixture
def policy(tmp_path, store, services):
    """Writes the policy file that the services name, the command too."""
    store.enroll()
    path = tmp_path / "sallyport.conf"
    path.write_text("")
    for name in ("login", "sshd"):
        services.write(name, our_line(store, "nodelay", f"conf={path}"),
                       f"account required {MODULE} store={store.directory} conf={path}",
                       "account required pam_permit.so")
    return path


@pytest.fixture
def say(store):
    """Runs a verb on the store; its JSON."""
    def say(verb, *words, user="carol", status=0):
        done = sallyport(verb, "--user", user, "--json", "--store", store.directory, *words)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout) if done.stdout else None
    return say


def asked(driver, user="carol", service="sshd", **more):
    login = driver.login(service, user, "123456", **more)
    return login.result, len(login.prompts)


@pytest.mark.parametrize("level,words,passes", [
    (None, "refuse", False), (None, "voluntary", True),
    ("exempt", "refuse", True), ("exempt", "required", True), ("exempt", "voluntary", True),
    ("require", "voluntary", False), ("require", "offer", False), ("require", "refuse", False),
    (f"require --by {NEVER}", "voluntary", True), ("require --by 2001-01-01", "voluntary", False)])
def test_what_root_says_of_one_user_stands_above_the_level_of_all(
        policy, driver, carol, say, level, words, passes):
    policy.write_text(f"[default]\nenrollment = {words}\n")
    if level:
        say(*level.split())
    assert asked(driver) == (PASSES if passes else REFUSED)


@pytest.mark.parametrize("level", ["exempt", "require"])
def test_a_rule_that_refuses_stands_above_it(policy, driver, carol, say, level):
    policy.write_text("[default]\nenrollment = voluntary\n"
                      "[rule r]\nmatch_service = sshd\nenrollment = refuse\n")
    say(level)
    assert asked(driver) == REFUSED
    assert asked(driver, service="login") == (PASSES if level == "exempt" else REFUSED)
    say(level, "--undo")
    assert asked(driver, service="login") == PASSES


def test_it_is_of_the_account_and_not_of_the_name_as_typed(policy, driver, carol, say):
    say("exempt")
    assert asked(driver) == PASSES
    assert asked(driver, "Carol") == REFUSED
    assert asked(driver, "carol ") != PASSES


def test_the_enrolled_are_asked_whatever_is_said_of_them(alice, policy, driver, store, say):
    say("exempt", user="alice")
    assert asked(driver, "alice") == REFUSED


@pytest.fixture
def becomes(carol):
    """Deletes the account and adds one with this uid, perhaps of another name."""
    names = {carol}

    def becomes(uid, name=carol):
        for old in names:
            remove_account(old)
        names.add(name)
        add_account(name, uid)
    yield becomes
    for name in names - {carol}:
        remove_account(name)


# shows: notes
def test_an_exempt_note_holds_for_the_name_with_the_same_uid_alone(policy, driver, say, becomes):
    policy.write_text("[default]\nenrollment = required\n")
    say("exempt")
    assert asked(driver) == PASSES
    becomes(3004)
    assert asked(driver) == REFUSED
    becomes(3003, "carla")
    assert asked(driver, "carla") == REFUSED
    becomes(3003)
    assert asked(driver) == PASSES


# shows: notes
def test_what_is_required_holds_for_the_same_name_or_the_same_uid(policy, driver, say, becomes):
    policy.write_text("[default]\nenrollment = voluntary\n")
    say("require")
    becomes(3004)
    assert asked(driver) == REFUSED
    becomes(3003, "carla")
    assert asked(driver, "carla") == REFUSED
    assert say("status", user="carla", status=66)["level"] == {"name": "required", "from": None}
    say("require", "--undo", user="carla")
    assert asked(driver, "carla") == PASSES
    becomes(3004)
    say("require", "--undo")
    assert asked(driver) == PASSES


def of_before(store, name="carol"):
    """Makes the note one that the version before has written."""
    note = store.directory / "unenrolled" / name
    lines = note.read_text().splitlines(keepends=True)
    assert lines[0].startswith("# uid = ")
    note.write_text("".join(lines[1:]))
    return note


def test_an_exempt_note_of_before_lets_nobody_pass_until_prepare_gives_it_its_uid(
        policy, driver, say, store, becomes):
    policy.write_text("[default]\nenrollment = required\n")
    say("exempt")
    note = of_before(store)
    assert asked(driver) == REFUSED
    for _ in range(2):
        done = sallyport("prepare", "--store", store.directory)
        assert (done.returncode, done.stderr) == (0, "")
        assert note.read_text().startswith("# uid = 3003\n")
        assert asked(driver) == PASSES
    becomes(3004)
    sallyport("prepare", "--store", store.directory)
    assert asked(driver) == REFUSED


def check(store):
    return sallyport("pam", "status", "--check", "--settle", "0", "--store", store.directory)


# shows: notes
@pytest.mark.decisive
def test_an_exempt_note_of_before_gets_no_uid_by_what_runs_with_the_machine(
        policy, driver, say, store, becomes):
    """Another person may have got the name, also before the first start."""
    policy.write_text("[default]\nenrollment = required\n")
    say("exempt")
    note = of_before(store)
    becomes(3004)
    done = check(store)
    assert f"sallyport prepare --store {store.directory}" in done.stderr
    assert not note.read_text().startswith("# uid"), done.stderr
    assert asked(driver) == REFUSED


@pytest.mark.decisive
def test_an_exempt_note_of_before_whose_account_is_gone_is_nobodys_after_the_first_check(
        policy, driver, say, store, becomes):
    policy.write_text("[default]\nenrollment = required\n")
    say("exempt")
    note = of_before(store)
    becomes(3003, "dave")
    assert "carol is exempt no more" in check(store).stderr
    becomes(3004)
    for _ in range(2):
        assert check(store).stderr == ""
        assert sallyport("prepare", "--store", store.directory).stderr == ""
        assert note.read_text().startswith("# uid = 4294967295\n")
        assert asked(driver) == REFUSED


@pytest.mark.decisive
@pytest.mark.parametrize("copy", ["carol~", "carol.bak"])
def test_a_copy_of_an_exempt_note_of_before_takes_back_nothing_that_is_required(
        policy, driver, carol, say, store, copy):
    policy.write_text("[default]\nenrollment = voluntary\n")
    say("exempt")
    of_before(store).rename(store.directory / "unenrolled" / copy)
    say("require")
    for done in (check(store), sallyport("prepare", "--store", store.directory)):
        assert asked(driver) == REFUSED, done.stderr


# shows: notes
def test_an_exempt_note_of_before_whose_account_is_gone_lets_nobody_pass_ever(
        policy, driver, say, store, becomes):
    policy.write_text("[default]\nenrollment = required\n")
    say("exempt")
    note = of_before(store)
    becomes(3003, "dave")
    done = sallyport("prepare", "--store", store.directory)
    assert done.returncode == 0
    assert "carol" in done.stderr and f"sallyport exempt carol --store {store.directory}" in done.stderr
    assert note.read_text().startswith("# uid = 4294967295\n")
    becomes(3003)
    assert sallyport("prepare", "--store", store.directory).stderr == ""
    assert asked(driver) == REFUSED
    say("exempt")
    assert asked(driver) == PASSES


def test_what_was_required_before_holds_by_the_uid_too_after_prepare(
        policy, driver, say, store, becomes):
    policy.write_text("[default]\nenrollment = voluntary\n")
    say("require")
    of_before(store)
    (store.directory / "required" / "3003").unlink()
    assert sallyport("prepare", "--store", store.directory).stderr == ""
    becomes(3003, "carla")
    assert asked(driver, "carla") == REFUSED


def test_an_account_that_does_not_exist_cannot_be_made_exempt(policy, say, store):
    say("exempt", "--allow-missing", user="nobodyhere", status=67)
    say("require", "--allow-missing", user="nobodyhere")
    say("require", "--undo", "--allow-missing", user="nobodyhere")
    assert list((store.directory / "unenrolled").iterdir()) == []

@pytest.mark.parametrize("spoil", ["text", "mode", "link", "owner's name"])
def test_a_note_that_cannot_be_read_lets_nobody_pass(policy, driver, carol, say, store, sink, spoil):
    policy.write_text("[default]\nenrollment = voluntary\n")
    say("exempt")
    note = store.directory / "unenrolled" / "carol"
    if spoil == "text":
        note.write_bytes(note.read_bytes()[:-2])
    elif spoil == "mode":
        note.chmod(0o644)
    elif spoil == "link":
        note.rename(note.parent / "other")
        note.symlink_to("other")
    else:
        note.write_text(note.read_text().replace("carol", "alice"))
    with sink.watch() as lines:
        result, prompts = asked(driver)
    assert result == "PAM_AUTHINFO_UNAVAIL"
    assert [line.level for line in lines if str(note) in line.text] == ["ALERT"]


def test_status_and_config_show_tell_what_is_kept_of_the_unenrolled(policy, carol, say, store):
    say("require", "--by", "2030-01-31")
    told = say("status", status=66)
    assert told == {"user": "carol", "uid": 3003, "inFleet": False, "enrolled": None, "logins": 0,
                    "enrollingBegun": None, "blocked": None,
                    "level": {"name": "required", "from": "2030-01-31T00:00:00Z"}}
    done = sallyport("config", "show", "--json", "--user", "carol", "--conf", policy,
                     "--store", store.directory)
    shown = json.loads(done.stdout)
    assert shown["level"] == {"value": "offer", "own": told["level"], "enrolled": False}


def through(driver, enrollment, *answers, service="sshd", rhost="192.0.2.7"):
    login = driver.login(service, "alice", *answers, phases=("auth", "acct"), rhost=rhost, sets=KEY)
    return login.results[0], len(login.prompts)


def test_an_address_is_remembered_for_no_enrollment_without_a_uid(policy, driver, store):
    """Made before the account, it would be that of any account that gets the name."""
    enrollment = store.enroll()
    codes = iter(enrollment.backup_codes)
    policy.write_text("[default]\nremember = 1 d\n")
    assert through(driver, enrollment, next(codes))[0] == SUCCESS
    result, prompts = through(driver, enrollment, next(codes))
    assert result == SUCCESS and prompts > 0


def test_an_address_is_remembered_after_a_login_until_it_is_forgotten(
        alice, policy, driver, store, say):
    enrollment = store.enroll()
    codes = iter(enrollment.backup_codes)
    policy.write_text("[default]\nremember = 1 d\n")
    assert through(driver, enrollment, next(codes))[0] == SUCCESS
    assert through(driver, enrollment) == (SUCCESS, 0)
    shown = say("status", user="alice")["remembered"]
    assert [(pair["origin"], pair["service"]) for pair in shown] == [("192.0.2.7", "sshd")]
    assert say("forget", user="alice") == {"user": "alice", "forgotten": shown}
    assert say("status", user="alice")["remembered"] == []
    assert through(driver, enrollment, enrollment.wrong()) == (AUTH_ERR, 1)
    assert through(driver, enrollment, next(codes))[0] == SUCCESS
    assert through(driver, enrollment) == (SUCCESS, 0)


@pytest.mark.parametrize("verb", ["add", "remove", "regenerate", "enroll", "resync"])
def test_an_address_is_not_remembered_past_a_change_of_what_a_code_is(
        alice, policy, driver, store, say, verb):
    enrollment = store.enroll()
    if verb == "remove":
        store.add("tablet")
    policy.write_text("[default]\nremember = 1 d\n")
    assert through(driver, enrollment, enrollment.backup_codes[0])[0] == SUCCESS
    assert through(driver, enrollment) == (SUCCESS, 0)
    if verb == "add":
        store.add("tablet")
    elif verb == "remove":
        store.remove("tablet")
    elif verb == "regenerate":
        store.regenerate()
    elif verb == "enroll":
        store.enroll()
    else:
        typed = "\n".join(enrollment.codes(2, time.time())) + "\n"
        done = sallyport("resync", "--user", "alice", "--store", store.directory, typed=typed)
        assert done.returncode == 0, done.stderr
    assert through(driver, enrollment, "000000") == (AUTH_ERR, 1)
