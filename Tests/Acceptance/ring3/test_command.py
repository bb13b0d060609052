"""The command: exit statuses, one-line errors with a hint, stable JSON."""

import json
import re
import subprocess

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS
from support.sallyport import COMMAND, REAL_ROOT, sallyport

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def run(store, *arguments, typed=None, **more):
    return sallyport(*arguments, "--store", store.directory, typed=typed, **more)


def assert_error(done, status, *words):
    """One line of error, then hints; nothing on standard output."""
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    first, *rest = done.stderr.rstrip("\n").split("\n")
    assert re.match(r"sallyport: [^A-Z].*[^.]$", first), first
    assert all(line.startswith("hint: ") for line in rest) and rest, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.decisive
def test_closed_standard_descriptors_never_become_files_of_the_store(store, tmp_path):
    """What is said to people would be written into them."""
    store.enroll()
    report = tmp_path / "strace"
    words = [COMMAND, "unlock", "--user", "alice", "--store", str(store.directory)]
    subprocess.run(["sh", "-c", 'exec strace -f -y -o "$0" "$@" <&- >&- 2>&-', report, *words],
                   timeout=60, check=False)
    opened = re.findall(r"openat\(.*\) = ([0-2])<(.*)>$", report.read_text(), re.MULTILINE)
    ours = {(number, path) for number, path in opened if not path.endswith((".cache", ".so"))
            and ".so." not in path}
    assert {(number, "/dev/null") for number in "012"} <= ours
    assert not [path for _, path in ours if path.startswith(str(store.directory))]
    assert store.status()["user"] == "alice"


def test_the_arguments_are_read_in_a_root_directory_without_proc(tmp_path):
    """As a package's script does in one: with none it would print the overview, and make no store."""
    tmp_path.chmod(0o700)
    hidden = 'mount -t tmpfs none /proc && [ ! -e /proc/self ] && exec "$@"'
    done = subprocess.run(
        ["unshare", *([] if REAL_ROOT else ["--map-root-user"]), "--mount", "sh", "-c", hidden, "-",
         COMMAND, "prepare", "--store", str(tmp_path / "store")],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "store/decoy/state").exists()


def test_enroll_prints_one_stable_object(store):
    done = run(store, "enroll", "--user", "alice", "--name", "phone", "--secret-from", "-",
               "--no-confirm", "--json", "--allow-missing", typed=SECRET + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert set(said) == {"user", "authenticator", "secret", "uri", "backupCodes"}
    assert said["authenticator"] == {
        "name": "phone", "type": "totp", "algorithm": "sha1", "digits": 6, "period": 30}
    assert (said["user"], said["secret"], len(said["backupCodes"])) == ("alice", SECRET, 10)
    assert said["uri"].startswith("otpauth://totp/") and f"secret={SECRET}" in said["uri"]
    assert all(re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}", code)
               for code in said["backupCodes"])


@pytest.mark.decisive
@pytest.mark.parametrize("spelling", [
    "jbswy3dpehpk3pxpjbswy3dpehpk3pxp", "JBSW Y3DP EHPK 3PXP JBSW-Y3DP-EHPK-3PXP"])
def test_a_secret_is_read_in_any_spelling(store, spelling):
    assert store.enroll(secret=spelling).secret == SECRET


# shows: store-closed
def test_the_stores_files_are_as_documented(store):
    store.enroll()
    assert sorted(path.name for path in store.of().iterdir()) == ["enrollment", "state"]
    for path in store.of().iterdir():
        assert path.stat().st_mode & 0o7777 == 0o600 and path.stat().st_nlink == 1
    state = store.state().stat()
    assert state.st_size == 8192 and state.st_blocks * 512 >= 8192
    for directory in (store.directory, store.directory / "users", store.of(), store.directory / "decoy"):
        assert directory.stat().st_mode & 0o7777 == 0o700


ENROLL = ["enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--json"]
BAD = {  # exit status, arguments, standard input
    "an unknown user": (67, ["enroll", "--user", "no-such-person", "--no-confirm"], None),
    "no user": (64, ["enroll", "--name", "x"], None),
    "an unknown verb": (64, ["enrol"], None),
    "an unknown option": (64, ["status", "--usr", "alice"], None),
    "nine digits": (64, [*ENROLL, "--digits", "9"], None),
    "a period of a second": (64, [*ENROLL, "--period", "1"], None),
    "a secret that is no base32": (65, [*ENROLL, "--secret-from", "-"], "not base 32!\n"),
    "an empty secret": (65, [*ENROLL, "--secret-from", "-"], "\n"),
    "a secret file that is not there": (66, [*ENROLL, "--secret-from", "/nonexistent"], None),
    "status of the unknown": (67, ["status", "--user", "no-such-person"], None),
    "unlock of the unenrolled": (66, ["unlock", "--user", "daemon"], None),
    "codes for the unenrolled": (66, ["backup-codes", "--user", "daemon", "--regenerate"], None),
    "unenroll of the unenrolled": (66, ["unenroll", "--user", "daemon", "--force"], None),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_with_a_hint(store, case):
    store.enroll("bob")
    status, arguments, typed = BAD[case]
    done = run(store, *arguments, typed=typed)
    if status == 64:  # worded by the argument parser
        assert done.returncode == 64 and done.stderr and not done.stdout
    else:
        assert_error(done, status)
    assert not store.of("alice").exists()


# shows: store-closed
def test_an_existing_enrollment_is_replaced_only_by_force(store):
    before = store.enroll()
    content = store.enrollment().read_bytes()
    done = run(store, *ENROLL)
    assert_error(done, 73, "alice", "--force")
    assert store.enrollment().read_bytes() == content
    assert store.enroll().secret != before.secret


# shows: store-closed
def test_a_store_of_another_is_refused(store):
    if not REAL_ROOT:
        pytest.skip("becoming another user needs root")
    store.enroll()
    done = run(store, "status", "--user", "alice", user=65534, group=65534, extra_groups=[])
    assert_error(done, 77)


def test_verify_decides_as_a_login_would_and_uses_the_code_up(store, driver):
    enrollment = store.enroll()
    code = enrollment.code()
    assert run(store, "verify", "--user", "alice", typed=enrollment.wrong() + "\n").returncode == 1
    assert run(store, "verify", "--user", "alice", typed=code + "\n").returncode == 0
    assert run(store, "verify", "--user", "alice", typed=code + "\n").returncode == 1
    assert driver.login("login", "alice", code).result == AUTH_ERR
    assert driver.login("login", "alice", enrollment.backup_codes[0]).result == SUCCESS


def test_status_and_list_tell_what_was_used(store, driver):
    enrollment = store.enroll()
    store.enroll("bob")
    assert driver.login("login", "alice", enrollment.backup_codes[0]).result == SUCCESS
    status = store.status()
    assert status["user"] == "alice" and status["backupCodes"]["left"] == 9
    done = run(store, "list", "--json")
    assert done.returncode == 0
    assert {user["user"] for user in json.loads(done.stdout)["users"]} == {"alice", "bob"}
    for verb in (["status", "--user", "alice"], ["list"]):
        done = run(store, *verb)
        assert done.returncode == 0 and "alice" in done.stdout
        assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_unenroll_removes_everything(store, driver, services):
    enrollment = store.enroll()
    assert run(store, "unenroll", "--user", "alice", "--force").returncode == 0
    assert not store.of().exists()
    assert not any(enrollment.secret.encode() in path.read_bytes()
                   for path in store.directory.rglob("*") if path.is_file())
    assert driver.login("login", "alice", enrollment.code()).result == AUTH_ERR


# shows: arguments
@pytest.mark.decisive
def test_codes_and_secrets_are_never_in_the_arguments(store):
    assert "--code" not in sallyport("verify", "--help").stdout
    assert "--secret " not in sallyport("enroll", "--help").stdout
