"""The policy file, read by the real module: what its keys do, and what holds when it is broken."""

import json
import os
from pathlib import Path

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import aligned_now, reason, sallyport

REPOSITORY = Path(__file__).parents[3]
IGNORED = "PAM_PERM_DENIED"  # libpam's answer of a stack in which nobody said yes


@pytest.fixture
def policy(tmp_path, store, services):
    """Writes a policy file that both services name."""
    path = tmp_path / "sallyport.conf"

    def write(text, mode=0o644):
        path.write_text(text)
        path.chmod(mode)
        return path
    for name in ("login", "sshd"):
        services.code(name, store, "nodelay", f"conf={path}")
    return write


def asked(driver, user, code, service="sshd", **more):
    login = driver.login(service, user, code, **more)
    return login.result, len(login.prompts)


def test_disabled_ignores_everybody_before_the_store_is_looked_at(policy, driver, store):
    store.enroll()
    policy("[default]\nstate = disabled\n")
    assert asked(driver, "alice", "123456") == (IGNORED, 0)
    os.rename(store.directory, f"{store.directory}.gone")
    assert asked(driver, "alice", "123456") == (IGNORED, 0)


def test_adjacent_intervals_are_the_files(policy, driver, store):
    enrollment, now = store.enroll(), aligned_now()
    late = enrollment.code(now - 60)
    policy("[default]\nadjacent_intervals = 1\n")
    assert driver.login("sshd", "alice", late, at=now).result == AUTH_ERR
    policy("[default]\nadjacent_intervals = 2\n")
    assert driver.login("sshd", "alice", late, at=now).result == SUCCESS


def test_look_ahead_is_the_files(policy, driver, store):
    enrollment = store.enroll(type="hotp")
    policy("[default]\nlook_ahead = 0\n")
    assert driver.login("sshd", "alice", enrollment.code(counter=3)).result == AUTH_ERR
    policy("[default]\nlook_ahead = 3\n")
    assert driver.login("sshd", "alice", enrollment.code(counter=3)).result == SUCCESS


def test_the_budget_is_the_files(policy, driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    policy("[default]\nguess_budget = 0.02 %\n")
    verified = 0
    for _ in range(20):
        with sink.watch() as lines:
            driver.login("sshd", "alice", enrollment.wrong(now), at=now, rhost="198.51.100.9")
        verified += reason(lines) == "wrong-code"
    assert verified == 5


@pytest.mark.parametrize("key,code", [
    ("factor_totp", lambda e: e.code()), ("factor_backup_code", lambda e: e.backup_codes[0])])
def test_a_factor_that_is_off_is_not_accepted_and_kept(policy, driver, store, key, code):
    code = code(store.enroll())
    policy(f"[default]\n{key} = off\n")
    assert asked(driver, "alice", code) == (AUTH_ERR, 1)
    policy(f"[default]\n{key} = on\n")
    assert asked(driver, "alice", code) == (SUCCESS, 1)


@pytest.mark.parametrize("rule,passes", [
    ("match_user = bob", True), ("match_user = alice", False), ("match_service = sshd", True),
    ("match_service = sudo", False), ("match_origin = 192.0.2.0/24", True),
    ("match_origin = 2001:db8::/32", False), ("match_origin = network", True),
    ("match_origin = local", False), ("match_user = bob\nmatch_service = sudo", False)])
def test_voluntary_by_user_service_and_origin(policy, driver, store, rule, passes):
    store.enroll()
    policy(f"[rule r]\n{rule}\nenrollment = voluntary\n")
    expected = (IGNORED, 0) if passes else (AUTH_ERR, 1)
    assert asked(driver, "bob", "123456", rhost="192.0.2.7") == expected


@pytest.mark.parametrize("rule,passes", [
    ("match_group = root", True), ("match_group = nobody-here root", True),
    ("match_group = nobody-here", False), ("match_group = daemon", False)])
def test_voluntary_by_primary_group(policy, driver, store, rule, passes):
    store.enroll()
    policy(f"[rule r]\n{rule}\nenrollment = voluntary\n")
    assert asked(driver, "root", "123456") == ((IGNORED, 0) if passes else (AUTH_ERR, 1))


# shows: policy-mistake
def test_a_broken_file_without_a_good_one_is_strict(policy, driver, store, sink):
    enrollment, now = store.enroll(), aligned_now()
    path = policy("[default]\nenrollment = voluntary\nadjacent_intervals = 11\n")
    with sink.watch() as lines:
        assert asked(driver, "bob", "123456") == (AUTH_ERR, 1)
    errors = [line.text for line in lines if line.level == "ERR"]
    assert len(errors) == 1 and f'{path}:3: adjacent_intervals: expected a whole number from 0 to ' \
        '10, found "11"; the strict policy applies' in errors[0]
    login = driver.login("sshd", "alice", enrollment.code(now - 60), at=now)
    assert login.result == AUTH_ERR
    assert driver.login("sshd", "alice", enrollment.code(now), at=now).result == SUCCESS


# shows: policy-mistake
@pytest.mark.parametrize("broken", ["text", "mode", "link", "gone", "long"])
def test_the_last_good_file_holds_while_it_is_broken(policy, driver, store, sink, broken):
    store.enroll()
    path = policy("[default]\nenrollment = voluntary\n")
    assert asked(driver, "bob", "123456") == (IGNORED, 0)
    kept = list((store.directory / "policy.good").iterdir())
    assert [file.stat().st_mode & 0o777 for file in kept] == [0o600]
    if broken == "text":
        policy("[default]\nenrollment = volontary\n")
    elif broken == "mode":
        policy("[default]\nenrollment = refuse\n", mode=0o666)
    elif broken == "long":
        policy("#" * 65537)
    else:
        path.unlink()
        if broken == "link":
            path.symlink_to("/dev/null")
    with sink.watch() as lines:
        assert asked(driver, "bob", "123456") == (IGNORED, 0)
    assert [line.level for line in lines] == ["ERR", "INFO"]
    assert "the last good file applies" in lines[0].text
    assert lines[1].text.endswith("not asked: state = disabled, or not enrolled: user=bob")


# shows: policy-file
def test_a_writable_file_without_a_good_one_is_strict(policy, driver, store, sink):
    store.enroll()
    policy("[default]\nenrollment = voluntary\n", mode=0o666)
    with sink.watch() as lines:
        assert asked(driver, "bob", "123456") == (AUTH_ERR, 1)
    assert "mode 0666 is too open" in lines[0].text and lines[0].level == "ERR"


@pytest.mark.decisive
def test_an_unchanged_file_is_kept_once(policy, driver, store):
    enrollment = store.enroll()
    policy("[default]\nlook_ahead = 9\n")
    driver.login("sshd", "alice", enrollment.wrong())
    kept, = (store.directory / "policy.good").iterdir()
    before = kept.stat()
    driver.login("sshd", "alice", enrollment.wrong())
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    policy("[default]\nlook_ahead = 8\n")
    driver.login("sshd", "alice", enrollment.wrong())
    kept, = (store.directory / "policy.good").iterdir()
    assert "look_ahead = 8" in kept.read_text()


def test_a_file_of_64_kib_is_read(policy, driver, store, figure):
    enrollment = store.enroll()
    rule = "[rule r]\nmatch_user = nobody\nlook_ahead = 1\n"
    text = rule * (65000 // len(rule)) + "[rule b]\nmatch_user = bob\nenrollment = voluntary\n"
    policy(text + "#" * (65536 - len(text)))
    assert asked(driver, "bob", "123456") == (IGNORED, 0)
    login = driver.login("sshd", "alice", enrollment.code())
    assert login.result == SUCCESS
    figure(f"policy of 64 KiB with 1,400 rules: a login in {login.seconds * 1000:.1f} ms "
           "after the answer")


# shows: policy-mistake
def test_a_policy_that_is_missing_is_an_error_only_where_the_line_names_it(
        services, store, sink, tmp_path):
    enrollment = store.enroll()
    services.code("sshd", store, "nodelay")
    with Driver(services) as driver, sink.watch() as lines:
        assert driver.login("sshd", "alice", enrollment.code()).result == SUCCESS
    assert [line.level for line in lines] == ["INFO"]
    services.code("sshd", store, "nodelay", "nullok", f"conf={tmp_path}/none")
    with Driver(services) as driver, sink.watch() as lines:
        assert asked(driver, "bob", "123456") == (AUTH_ERR, 1)
    assert lines[0].level == "ERR" and "ENOENT" in lines[0].text


# shows: policy-mistake
def test_the_command_names_every_error(tmp_path):
    broken = tmp_path / "broken.conf"
    broken.write_text("[default]\nadjacent_intervals = 11\nhint = yes\n")
    done = sallyport("config", "check", broken)
    assert done.returncode == 78 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"{broken}:2: adjacent_intervals: expected a whole number from 0 to 10, found \"11\"",
        f"{broken}:3: unknown key, found \"hint\". Did you mean: hints",
        f"sallyport: {broken} cannot be used: 2 errors"]
    target = tmp_path / "sallyport.conf"
    assert sallyport("config", "install", broken, "--conf", target).returncode == 78
    assert not target.exists()


def test_the_command_installs_and_shows_what_holds(tmp_path):
    new, target = tmp_path / "new.conf", tmp_path / "sallyport.conf"
    new.write_text("[default]\nadjacent_intervals = 2\n"
                   "[rule o]\nmatch_origin = 192.0.2.0/24\nenrollment = voluntary\n")
    assert sallyport("config", "install", new, "--conf", target).returncode == 0
    assert target.read_bytes() == new.read_bytes() and target.stat().st_mode & 0o777 == 0o644
    for origin, level in (("192.0.2.9", "voluntary"), ("example.org", "refuse")):
        done = sallyport("config", "show", "--conf", target, "--origin", origin, "--json")
        shown = json.loads(done.stdout)
        assert shown["enrollment"]["value"] == level
        assert shown["adjacent_intervals"] == {"value": "2", "file": str(target), "line": 2}
        assert shown["look_ahead"]["line"] is None
    done = sallyport("config", "check", "--conf", target, "--user", "root")
    assert "then 2.68 a day" in done.stdout


def test_the_sample_is_valid_and_changes_nothing(tmp_path):
    sample = REPOSITORY / "pam/sallyport.conf"
    shown = [sallyport("config", "show", "--json", "--user", "root", "--conf", path).stdout
             for path in (sample, tmp_path / "none")]
    assert shown[0] == shown[1] != ""
    everything = tmp_path / "all.conf"
    everything.write_text("".join(
        line[1:] if line[:1] == "#" and " = " in line else line
        for line in sample.read_text().splitlines(keepends=True) if "match_" not in line
        and "voluntary\n" not in line))
    done = sallyport("config", "check", everything, "--user", "root")
    assert done.returncode == 0, done.stderr
