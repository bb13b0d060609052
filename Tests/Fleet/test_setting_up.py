"""What an administrator types on the machine of a verifier.

test_how_the_database_is_reached_is_written_down_once
test_root_acts_as_the_owner_of_the_directory
test_a_copy_of_the_keys_is_read_where_only_root_may_look
test_a_crash_at_any_step_of_init_leaves_whole_files_and_init_goes_on
test_a_damaged_key_is_named_as_damaged
test_a_database_that_is_not_the_fleets_is_told_with_what_to_do
test_a_policy_that_is_broken_is_told_before_anybody_logs_in
test_status_tells_who_is_there_and_who_is_not
test_a_verifier_writes_what_it_counts
"""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.fleet import VERIFIER
from support.service import soon
from support.steps import broken_at

NOBODY = pwd.getpwnam("nobody")


def run(verb, directory, *more):
    return subprocess.run([VERIFIER, verb, *more, "--directory", directory], capture_output=True, text=True, timeout=60)


@pytest.mark.decisive
def test_how_the_database_is_reached_is_written_down_once(fleet):
    path = fleet.directory / "database"
    words = fleet.words("postgres")
    assert path.read_text() == f"{words} user=sallyport_verifier\n"
    assert path.stat().st_mode & 0o777 == 0o600
    done = run("status", fleet.directory)
    assert done.returncode == 0 and "users: 0" in done.stdout, done.stderr
    assert "is kept" not in run("init", fleet.directory).stderr
    done = run("init", fleet.directory, "--database", f"{words} application_name=other")
    assert done.returncode == 0 and f"sallyport-verifier: {path} is kept" in done.stderr
    assert "application_name" not in path.read_text(), "what is there stays"
    uri = f"postgresql:///{fleet.database}?host={fleet.cluster.directory}&user=postgres"
    path.unlink()
    assert run("init", fleet.directory, "--database", uri).returncode == 0
    assert path.read_text() == f"{uri}&user=sallyport_verifier\n"
    assert run("status", fleet.directory).returncode == 0
    for text, said in ("", "empty"), (None, "init --database WORDS"):
        path.write_text(text) if text is not None else path.unlink()
        done = run("status", fleet.directory)
        assert done.returncode == 1 and said in done.stderr
        assert done.stderr.startswith(f"sallyport-verifier: {path}: ")
    nowhere = fleet.directory / "nowhere"
    assert run("init", nowhere).returncode == 1 and not nowhere.exists(), "before it knows the database"


@pytest.fixture
def directory():
    """Of another user, where all may pass."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        own = Path(top, "own")
        own.mkdir(mode=0o700)
        os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
        yield own


def test_root_acts_as_the_owner_of_the_directory(fleet, directory):
    for path in fleet.directory.iterdir():
        if path.name in ("key", "identity.key"):
            shutil.copy2(path, directory)
            os.chown(directory / path.name, NOBODY.pw_uid, NOBODY.pw_gid)
    done = run("init", directory, "--database", fleet.words("postgres"))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in directory.iterdir()} >= {"key", "database", "sallyport.conf"}
    assert {path.stat().st_uid for path in directory.iterdir()} == {NOBODY.pw_uid}
    os.chown(directory / "key", 0, 0)
    assert "Permission denied" in run("run", directory).stderr, "root's key in another one's directory"


def test_a_copy_of_the_keys_is_read_where_only_root_may_look(fleet, directory, tmp_path):
    """As the package has it: the directory is another user's, and root types in a directory of his own."""
    passphrase = "correct horse battery staple\n"
    for path in fleet.directory.iterdir():
        if path.name in ("key", "identity.key"):
            shutil.copy2(path, directory)
            os.chown(directory / path.name, NOBODY.pw_uid, NOBODY.pw_gid)
    shown = subprocess.run([VERIFIER, "key", "show", "--directory", directory], input=passphrase, capture_output=True,
                           text=True, timeout=60, check=True)
    own = tmp_path / "own"
    own.mkdir(0o700)
    copy = own / "copy"
    copy.write_text(shown.stdout)
    copy.chmod(0o600)
    for verb in "check", "take":
        done = subprocess.run([VERIFIER, "key", verb, copy, "--directory", directory], input=passphrase,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (verb, done.stderr)


def killed(call, count, *words):
    done = subprocess.run([*broken_at(call, count), VERIFIER, *words], capture_output=True, timeout=60)
    return done.returncode in (-9, 137)


@pytest.mark.parametrize("has_key", [False, True], ids=["the key", "what comes after it"])
def test_a_crash_at_any_step_of_init_leaves_whole_files_and_init_goes_on(has_key, fleet, tmp_path):
    own = tmp_path / "own"
    # Without a database init makes the key, and says that it cannot go on.
    database = fleet.words("postgres") if has_key else "host=/nowhere"
    kills = 0
    for call in ("flock", "unlink", "write", "fchmod", "fsync", "link"):
        for count in range(1, 30):
            shutil.rmtree(own, ignore_errors=True)
            if has_key:
                own.mkdir(mode=0o700)
                shutil.copy2(fleet.directory / "key", own)
            if not killed(call, count, "init", "--directory", own, "--database", database):
                break
            kills += 1
            sizes = {path.name: path.stat().st_size for path in own.iterdir()} if own.exists() else {}
            assert sizes.get("key", 36) == 36 and sizes.get("identity.key", 119) == 119, (call, count, sizes)
            again = run("init", own, "--database", database)
            assert again.returncode == (0 if has_key else 1), (call, count, again.stderr)
            assert has_key or "the database: " in again.stderr, (call, count, again.stderr)
            assert (own / "key").stat().st_size == 36 and (own / "key").stat().st_mode & 0o777 == 0o600
            assert not list(own.glob("*.new")), (call, count)
    assert kills >= 5


def test_a_damaged_key_is_named_as_damaged(fleet):
    for name, parts in ("key", (0, 10, 35)), ("identity.key", (0, 1, 60)):
        path = fleet.directory / name
        right = path.read_bytes()
        for content in [*(right[:count] for count in parts), right * 40]:
            path.write_bytes(content)
            told = run("init", fleet.directory, "--database", fleet.words("postgres")).stderr
            assert f"{path}: damaged" in told and "key take" in told, (name, len(content), told)
            assert "chmod" not in told
        path.write_bytes(right)
    assert run("init", fleet.directory, "--database", fleet.words("postgres")).returncode == 0


def test_a_database_that_is_not_the_fleets_is_told_with_what_to_do(fleet):
    elsewhere = fleet.words().replace(fleet.database, "postgres")
    told = run("status", fleet.directory, "--database", elsewhere)
    assert told.returncode == 1 and 'relation "fleet" does not exist' in told.stderr
    assert "hint: sallyport-verifier init --database WORDS" in told.stderr
    fleet.sql("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM sallyport_verifier")
    for verb in "status", "run":
        told = run(verb, fleet.directory)
        assert told.returncode == 1 and "permission denied for table" in told.stderr
        assert "hint: sallyport-verifier init --database 'WORDS user=sallyport_owner'" in told.stderr
    assert run("init", fleet.directory, "--database", fleet.words()).returncode == 1
    assert run("init", fleet.directory, "--database", fleet.words("postgres")).returncode == 0
    assert run("status", fleet.directory).returncode == 0


def test_a_policy_that_is_broken_is_not_stored(fleet):
    """Not by init either, which reads a file there for the first one."""
    (fleet.directory / "sallyport.conf").write_text("[default]\nadjacent_intervals = many\n")
    (fleet.directory / "sallyport.conf").chmod(0o644)
    says = f"{fleet.directory}/sallyport.conf:2: "
    for verb in ("init",), ("config", "check", fleet.directory / "sallyport.conf"), (
            "config", "edit", fleet.directory / "sallyport.conf"):
        options = () if "check" in verb else ("--database", fleet.words())
        done = subprocess.run([VERIFIER, *verb, "--directory", fleet.directory, *options], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 1 and says in done.stderr, done
    assert len(run("config", fleet.directory, "history").stdout.splitlines()) == 1, "that of the first init"


def test_what_an_editor_leaves_is_stored_or_kept_where_only_the_owner_may_look(fleet):
    def edited(script):
        done = subprocess.run([VERIFIER, "config", "edit", "--directory", fleet.directory, "--database", fleet.words()],
                              env=os.environ | {"VISUAL": "", "EDITOR": f"sh -c '{script}' --"}, capture_output=True,
                              text=True, timeout=60)
        return done, list(fleet.directory.glob("sallyport.conf.edit-*"))
    done, kept = edited('echo adjacent_intervals = 2 >>"$1"; exit 3')
    [copy] = kept
    assert done.returncode == 1 and "status 3" in done.stderr and str(copy) in done.stderr
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.unlink()
    done, kept = edited('echo [default] >"$1"; echo adjacent_intervals = 2 >>"$1"')
    assert (done.returncode, kept) == (0, []), done.stderr
    assert run("config", fleet.directory, "show").stdout == "[default]\nadjacent_intervals = 2\n"


def test_status_tells_who_is_there_and_who_is_not(fleet):
    one, two = fleet.verifier("one"), fleet.verifier("two")

    def told():
        done = run("status", fleet.directory, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return {each["name"]: each for each in found["verifiers"]}, {each["what"] for each in found["warnings"]}
    assert soon(lambda: all(each["hasLooked"] for each in told()[0].values()) and len(told()[0]) == 2)
    # One that has just started says by which policy it goes once it has read it.
    assert soon(lambda: told()[1] == {"no-synchronous-standby", "no-safe-copy"}), told()
    verifiers = told()[0]
    assert all(each["isThere"] and abs(each["clockOffsetSeconds"]) < 2 for each in verifiers.values())
    two.stop()
    assert soon(lambda: told()[1] == {"no-synchronous-standby", "no-safe-copy", "one-verifier", "verifier-silent"}, 30)
    text = run("status", fleet.directory).stdout
    assert "verifier: one: up" in text and "verifier: two: SILENT" in text
    assert "warning: verifier two is silent since 2" in text and text.rstrip().endswith("; the others answer")
    path = fleet.directory / "fleet.prom"
    done = run("status", fleet.directory, "--metrics", path)
    assert (done.returncode, done.stdout) == (0, "") and "sallyport_fleet_up 1\n" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o644
    done = run("status", fleet.directory, "--metrics", path, "--database", "host=/nowhere")
    assert done.returncode != 0 and "the database: " in done.stderr
    assert path.read_text().endswith("\nsallyport_fleet_up 0\n")
    one.stop()


def test_a_verifier_writes_what_it_counts(fleet):
    path = fleet.directory / "verifier.prom"
    one = fleet.verifier("one", "--metrics", path)
    assert soon(lambda: path.exists() and "sallyport_verifier_verifying 1\n" in path.read_text())
    one.enroll("alice")
    one.type("alice", "000000")
    assert soon(lambda: 'outcomes_total{outcome="wrong-code"} 1\n' in path.read_text())
    text = path.read_text()
    assert "sallyport_verifier_answer_seconds_count 1\n" in text and "sallyport_verifier_unknown_total 0\n" in text
    assert path.stat().st_mode & 0o777 == 0o644
    one.stop()
