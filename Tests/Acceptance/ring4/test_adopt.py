"""An account gets another uid or name, and its enrollment goes on."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.hosts import UIDS, add_account, remove_account
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import COMMAND, sallyport
from support.steps import broken_at, steps
from support.whole import STRIDE

OLD, NEW = UIDS["alice"], UIDS["alice"] + 100
CHANGING = ("mkdirat", "openat", "fchmod", "write", "pwrite64", "fsync", "flock", "renameat",
            "renameat2", "rename", "unlinkat")


@pytest.fixture
def another_uid():
    remove_account("alice")
    add_account("alice", NEW)
    yield "alice", ()
    remove_account("alice")
    add_account("alice", OLD)


@pytest.fixture
def another_name():
    remove_account("alice")
    add_account("alina", OLD)
    yield "alina", ("--from", "alice")
    remove_account("alina")
    add_account("alice", OLD)


@pytest.fixture(params=["another_uid", "another_name"])
def change(request):
    """Makes it; (the name now, the words of adopt)."""
    return lambda: request.getfixturevalue(request.param)


def adopt(store, name, *words, prefix=()):
    line = [COMMAND, "adopt", name, *words, "--uid", OLD, "--yes", "--store", store.directory]
    return subprocess.run([*prefix, *map(str, line)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def files(store):
    """Whose directories there are; leftovers are another name's."""
    return sorted(path.name for path in (store.directory / "users").iterdir()
                  if not path.name.startswith("."))


def is_required(store, name):
    said = sallyport("status", name, "--json", "--store", store.directory)
    assert said.returncode == 0, said.stderr
    return (json.loads(said.stdout)["level"] or {}).get("name") == "required"


def test_codes_go_on_and_what_was_used_stays_used(store, services, change):
    enrollment = store.enroll(allow_missing=False)
    assert sallyport("require", "alice", "--store", store.directory).returncode == 0
    used, unused = enrollment.backup_codes[:2]
    with Driver(services) as driver:
        assert driver.login("login", "alice", used).result == SUCCESS
        code = enrollment.code()
        name, words = change()
        assert driver.login("login", name, code).result in (TROUBLE, AUTH_ERR)
        done = adopt(store, name, *words)
        assert done.returncode == 0, done.stderr
        assert driver.login("login", name, used).result == AUTH_ERR
        assert driver.login("login", name, code).result == SUCCESS
        assert driver.login("login", name, code).result == AUTH_ERR
        assert driver.login("login", name, unused).result == SUCCESS
    assert files(store) == [name]
    assert is_required(store, name)
    again = adopt(store, name, *words)
    assert again.returncode != 0 and files(store) == [name]


# shows: adopt
def test_an_exemption_stays_behind(store, services, change):
    store.enroll(allow_missing=False)
    assert sallyport("exempt", "alice", "--store", store.directory).returncode == 0
    name, words = change()
    assert adopt(store, name, *words).returncode == 0
    shown = sallyport("status", name, "--store", store.directory, "--json")
    assert '"exempt"' not in shown.stdout, shown.stdout


@pytest.mark.parametrize("level", ["require", "exempt"])
def test_the_note_of_the_name_before_ends_and_its_undoing_ends_no_requirement(
        store, request, level):
    store.enroll(allow_missing=False)
    assert sallyport(level, "alice", "--store", store.directory).returncode == 0
    name, words = request.getfixturevalue("another_name")
    assert adopt(store, name, *words).returncode == 0
    assert not (store.directory / "unenrolled" / "alice").exists()
    sallyport(level, "alice", "--undo", "--allow-missing", "--store", store.directory)
    assert is_required(store, name) == (level == "require")


# shows: adopt
@pytest.mark.parametrize("words,text", [
    (("alice", "--from", "bob"), "bob is an account still"),
    (("alice", "--from", "alice"), "already"),
    (("bob", "--from", "gone"), "gone is not enrolled"),
    (("alice",), "already"),
    (("nobody-here", "--from", "alice"), "there is no user"),
])
def test_what_is_not_meant_is_refused(store, words, text):
    store.enroll(allow_missing=False)
    before = store.enrollment().read_bytes()
    done = sallyport("adopt", *words, "--uid", OLD, "--yes", "--store", store.directory)
    assert done.returncode != 0 and text in done.stderr, done.stderr
    assert store.enrollment().read_bytes() == before and files(store) == ["alice"]


def test_another_uid_than_the_recorded_one_is_refused(store, another_uid):
    del another_uid
    store.enroll(allow_missing=False)  # as NEW
    remove_account("alice")
    add_account("alice", OLD)
    done = adopt(store, "alice")
    assert done.returncode != 0 and f"of uid {NEW}" in done.stderr
    done = sallyport("adopt", "alice", "--yes", "--store", store.directory)
    assert done.returncode == 64 and "--uid" in done.stderr


def test_who_is_enrolled_keeps_what_is_his(store, another_name):
    name, words = another_name
    add_account("alice", NEW)
    store.enroll(allow_missing=False)
    remove_account("alice")
    store.enroll(user=name, allow_missing=False)
    before = store.enrollment(name).read_bytes()
    line = ["adopt", name, *words, "--store", store.directory]
    for done in (sallyport(*line, "--uid", NEW, "--yes"), sallyport(*line, typed="y\n")):
        assert done.returncode != 0 and store.enrollment(name).read_bytes() == before
        assert files(store) == ["alice", name] and "the person" not in done.stdout
        hint = f"sallyport unenroll {name} --store {store.directory} --force  # then adopt again"
        assert f"hint: {hint}\n" in done.stderr, done.stderr


def test_a_uid_that_somebody_else_has_now_is_told_and_refused_without_a_question(store):
    """anna became anne, and a new anna came."""
    remove_account("alice")
    add_account("anna", OLD)
    try:
        enrollment = store.enroll(user="anna", allow_missing=False)
        remove_account("anna")
        add_account("anne", OLD)
        add_account("anna", NEW)
        done = adopt(store, "anna")
        assert done.returncode != 0 and f"uid {OLD} is anne's now" in done.stderr
        done = sallyport("adopt", "anna", "--store", store.directory, typed="n\n")
        assert done.returncode != 0 and "is anne now" in done.stdout
        assert str(OLD) in store.enrollment("anna").read_text()
        assert enrollment
    finally:
        remove_account("anna")
        remove_account("anne")
        add_account("alice", OLD)


@pytest.mark.parametrize("holder", [".anna", "a/b"])
def test_a_uid_that_is_somebodys_with_a_name_that_is_no_login_name_is_not_free(store, holder):
    store.enroll(allow_missing=False)
    remove_account("alice")
    passwd = Path("/etc/passwd")
    before = passwd.read_text()
    try:
        passwd.write_text(f"{before}alice:x:{NEW}:100::/:/bin/sh\n{holder}:x:{OLD}:100::/:/bin/sh\n")
        done = adopt(store, "alice")
        assert done.returncode != 0 and f"uid {OLD} is {holder}'s now" in done.stderr, done.stderr
        assert str(OLD) in store.enrollment().read_text()
    finally:
        passwd.write_text(before)
        add_account("alice", OLD)


def test_the_earlier_day_of_two_requirements_holds(store, another_name):
    name, words = another_name
    add_account("alice", NEW)
    store.enroll(allow_missing=False)
    for user, *more in (("alice", "--by", "2090-01-01"), (name,)):
        assert sallyport("require", user, *more, "--store", store.directory).returncode == 0
    remove_account("alice")
    done = sallyport("adopt", name, *words, "--uid", NEW, "--yes", "--store", store.directory)
    assert done.returncode == 0, done.stderr
    note = (store.directory / "unenrolled" / name).read_text()
    assert "from = none" in note, note


def test_each_name_of_a_person_who_was_renamed_tells_of_the_other(store, another_name):
    name, words = another_name
    remove_account(name)
    add_account("alice", OLD)
    store.enroll(allow_missing=False)
    remove_account("alice")
    add_account(name, OLD)
    line = f"hint: sallyport adopt {name} --store {store.directory} {' '.join(words)}"
    told = f"{line}  # if it is the same person: alice is enrolled with this uid and is not found\n"
    for verb, user in (("status", name), ("status", "alice"), ("adopt", name)):
        done = sallyport(verb, user, "--store", store.directory)
        assert done.returncode != 0 and told in done.stderr, (verb, user, done.stderr)
        assert "sallyport enroll" not in done.stderr
    for verb in (["status", name], ["doctor", "--user", name], ["doctor"]):
        said = sallyport(*verb).stdout
        assert f"if it is the same person: sallyport adopt {name} --from alice" in " ".join(said.split())
        assert f"sallyport enroll {name}" not in said, said
    # Two that the uid joins, and one who is enrolled.
    shutil.copytree(store.directory / "users" / "alice", store.directory / "users" / "alan")
    other = store.directory / "users" / "alan" / "enrollment"
    other.write_text(other.read_text().replace("user = alice", "user = alan"))
    assert line not in sallyport("status", name, "--store", store.directory).stderr
    shutil.rmtree(other.parent)
    store.enroll(user=name, allow_missing=False)
    assert line not in sallyport("status", "alice", "--store", store.directory).stderr


def test_what_was_unenrolled_after_a_kill_does_not_come_back(store, another_name, tmp_path):
    name, words = another_name
    store.enroll(user=name, allow_missing=False)
    (store.directory / "users" / name).rename(store.directory / "users" / "alice")
    done = sallyport("unenroll", name, "--force", "--store", store.directory)
    assert done.returncode != 0  # it has no files of that name: the adoption has to be ended first
    assert adopt(store, name, *words).returncode == 0 and files(store) == [name]
    assert sallyport("unenroll", name, "--force", "--store", store.directory).returncode == 0
    assert adopt(store, name, *words).returncode != 0 and files(store) == []


def test_one_that_was_cut_short_is_told_with_the_command_that_ends_it(store, another_name):
    name, words = another_name
    enrollment = store.enroll(user=name, allow_missing=False)
    (store.directory / "users" / name).rename(store.directory / "users" / "alice")
    ending = f"sallyport adopt {name} --store {store.directory} --from alice"
    said = json.loads(sallyport("doctor", "--json", "--store", store.directory).stdout)["findings"]
    fixes = [one["fixes"][0]["text"] for one in said if one["id"] == "user-unusable"]
    assert fixes == [ending], [one for one in said if one["severity"] == "error"]
    for line in (["status", "alice", "--allow-missing"], ["adopt", "bob", "--from", "alice"]):
        done = sallyport(*line, "--store", store.directory)
        assert done.returncode == 65 and f"hint: {ending}  #" in done.stderr, done.stderr
    assert adopt(store, name, *words).returncode == 0 and files(store) == [name]
    assert enrollment


def test_without_an_answer_nothing_changes(store, another_uid):
    name, _ = another_uid
    add_account("other", OLD)
    store.enroll(user="other", allow_missing=False)
    remove_account("other")
    done = sallyport("adopt", name, "--from", "other", "--store", store.directory, typed="n\n")
    assert done.returncode != 0 and files(store) == ["other"]
    assert f"other, uid {OLD}" in done.stdout and f"{name}, uid {NEW}" in done.stdout
    line = f"sallyport adopt {name} --from other --store {store.directory}"
    for more, options in (((), "--uid UID --yes"), (("--uid", OLD), "--yes")):
        done = sallyport("adopt", name, "--from", "other", "--store", store.directory, *more,
                         typed="")
        assert done.returncode == 1 and files(store) == ["other"]
        assert done.stderr == (
            "sallyport: there is no terminal to ask on: nothing was changed\n"
            f"hint: {' '.join([line, *map(str, more), options])}  # does not ask\n")


# shows: adopt
def test_killed_at_each_step_nobody_is_lost_and_no_code_is_good_twice(
        store, services, change, tmp_path, figure):
    enrollment = store.enroll(allow_missing=False)
    assert sallyport("require", "alice", "--store", store.directory).returncode == 0
    used, unused = enrollment.backup_codes[:2]
    with Driver(services) as driver:
        assert driver.login("login", "alice", used).result == SUCCESS
        name, words = change()
        kept, report = tmp_path / "kept", tmp_path / "strace"
        shutil.copytree(store.directory, kept)
        assert adopt(store, name, *words, prefix=("strace", "-y", "-o", report)).returncode == 0
        found = steps(report, store.directory, CHANGING)
        assert len(found) > 10 and any(call.startswith("rename") for call, _ in found)
        for call, count in found[::STRIDE]:
            shutil.rmtree(store.directory)
            shutil.copytree(kept, store.directory)
            killed = adopt(store, name, *words, prefix=broken_at(call, count))
            assert killed.returncode != 0, (call, count)
            adopt(store, name, *words)
            assert files(store) == [name], (call, count)
            assert driver.login("login", name, used).result == AUTH_ERR, (call, count)
            assert driver.login("login", name, unused).result == SUCCESS, (call, count)
            assert driver.login("login", name, unused).result == AUTH_ERR, (call, count)
            assert is_required(store, name), (call, count)
            left = [path.name for path in (store.directory / "users").iterdir()]
            assert left == [name], (call, count)
    figure(f"{len(found[::STRIDE])} kills of adopt, {name}")


def test_a_uid_that_was_never_recorded_may_be_somebody_elses_too(store):
    store.enroll(user="anna", allow_missing=True)
    add_account("anne", NEW)
    try:
        words = ["adopt", "anne", "--from", "anna", "--yes", "--store", store.directory]
        done = sallyport(*words, "--uid", UIDS["bob"])
        assert done.returncode != 0 and f"uid {UIDS['bob']} is bob's now" in done.stderr, done.stderr
        assert files(store) == ["anna"]
        done = sallyport(*words, "--uid", NEW)
        assert done.returncode == 0 and files(store) == ["anne"], done.stderr
    finally:
        remove_account("anne")
