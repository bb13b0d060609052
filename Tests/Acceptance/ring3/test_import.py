"""Moving over: set up with the real peers, logged in through them, imported, logged in with ours."""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.peers import imported, peer
from support.sallyport import REAL_ROOT, Enrollment, handed_out, reason, sallyport


def play(services, service, user, code):
    """A login through a peer, in a host of its own: google-authenticator leaves it changed."""
    with Driver(services) as host:
        host.send(service, user, code)
        return host.verdict().result


def the_refusal(sink, driver, user, code):
    with sink.watch() as lines:
        assert driver.login("login", user, code).result == AUTH_ERR
    return reason(lines)


@pytest.fixture
def google(tmp_path, services):
    """A file made by the real command, and a service `ga` with the real module."""
    module, path = peer("pam_google_authenticator.so"), tmp_path / "google"

    def make(*options):
        command = ["google-authenticator", "--force", "--quiet", "--no-confirm", f"--secret={path}"]
        subprocess.run([*command, *options], check=True, capture_output=True,
                       env=os.environ | {"HOME": str(tmp_path)})
        lines = path.read_text().splitlines()
        kind = "hotp" if "--counter-based" in options else "totp"
        handed_out.append(lines[0])
        scratch = [line for line in lines[1:] if line.isdigit()]
        return path, Enrollment("root", lines[0], kind, "sha1", 6, 30, 0, ""), scratch

    services.write("ga", f"auth required {module} user=root secret={path}",
                   "account required pam_permit.so")
    return make


TOTP = ("--time-based", "--disallow-reuse", "--rate-limit=9", "--rate-time=30", "--window-size=3")


def test_a_code_used_at_google_authenticator_is_used_here(google, services, driver, store, sink):
    path, app, _ = google(*TOTP, "--emergency-codes=5")
    now = time.time()
    used, fresh = app.code(now), app.code(now + 30)
    assert play(services, "ga", "root", used) == SUCCESS
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    one = imported(store, "google-authenticator", path, "--user", "root")["root"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert one["result"] == "imported"
    assert one["authenticators"][0]["lastAccepted"] == int(now) // 30
    assert the_refusal(sink, driver, "root", used) == "replayed"
    assert driver.login("login", "root", fresh).result == SUCCESS
    assert the_refusal(sink, driver, "root", fresh) == "replayed"


@pytest.mark.decisive
def test_scratch_codes_work_once_and_guesses_at_them_are_charged(google, services, driver, store, sink):
    path, app, scratch = google(*TOTP, "--emergency-codes=5")
    assert len(scratch) == 5
    assert play(services, "ga", "root", scratch[0]) == SUCCESS
    one = imported(store, "google-authenticator", path, "--user", "root")["root"]
    assert one["scratchCodes"] == 4
    assert "scratch-codes-weak" in [remark["code"] for remark in one["remarks"]]
    # The one used there is a guess here.
    with sink.watch() as lines:
        assert driver.login("login", "root", scratch[0]).result == AUTH_ERR
    assert reason(lines) == "wrong-code" and "budget=known:19," in lines[0].text
    typed = f"{scratch[1][:4]} {scratch[1][4:]}"
    assert driver.login("login", "root", typed).result == SUCCESS
    assert the_refusal(sink, driver, "root", scratch[1]) == "replayed"
    assert driver.login("sshd", "root", scratch[2], rhost="192.0.2.7").result == SUCCESS
    told = store.status("root")["backupCodes"]
    assert (told["left"], told["total"], told["scratchLeft"]) == (2, 4, 2)
    assert store.enrollment("root").read_text().count("scratch_code = ") == 4
    store.regenerate("root")
    assert the_refusal(sink, driver, "root", scratch[3]) == "malformed"


def test_scratch_codes_are_refused_where_the_budget_is_used_up(google, driver, store, sink):
    path, app, scratch = google(*TOTP, "--emergency-codes=5")
    imported(store, "google-authenticator", path, "--user", "root")
    for _ in range(20):
        assert driver.login("login", "root", app.wrong()).result == AUTH_ERR
    # Six digits are throttled now; what is left of the budget goes eight digits by eight.
    assert the_refusal(sink, driver, "root", app.code()) == "throttled"
    assert the_refusal(sink, driver, "root", scratch[0]) == "throttled"


def test_a_counter_goes_on_where_google_authenticator_was(google, services, driver, store, sink):
    path, app, _ = google("--counter-based", "--no-rate-limit", "--window-size=5")
    for counter in (1, 3):
        assert play(services, "ga", "root", app.code(counter=counter)) == SUCCESS
    one = imported(store, "google-authenticator", path, "--user", "root")["root"]
    assert one["authenticators"][0]["counter"] == 4
    assert the_refusal(sink, driver, "root", app.code(counter=3)) == "replayed"
    assert the_refusal(sink, driver, "root", app.code(counter=2)) == "wrong-code"
    assert driver.login("login", "root", app.code(counter=4)).result == SUCCESS


def test_what_is_used_between_two_imports_is_used_here(google, services, driver, store, sink):
    path, app, scratch = google(*TOTP, "--emergency-codes=3")
    imported(store, "google-authenticator", path, "--user", "root")
    now = time.time()
    for code in (app.code(now), scratch[1]):
        assert play(services, "ga", "root", code) == SUCCESS
    for wanted in ("brought-up-to-date", "already-imported"):
        one = imported(store, "google-authenticator", path, "--user", "root")["root"]
        assert one["result"] == wanted
    assert the_refusal(sink, driver, "root", app.code(now)) == "replayed"
    assert the_refusal(sink, driver, "root", scratch[1]) == "replayed"
    assert driver.login("login", "root", scratch[2]).result == SUCCESS
    assert driver.login("login", "root", app.code(now + 30)).result == SUCCESS
    # The other way round nothing is lost: what was used here stays used.
    assert imported(store, "google-authenticator", path, "--user", "root")["root"][
        "result"] == "already-imported"
    assert store.status("root")["backupCodes"]["left"] == 1


def test_where_reuse_was_allowed_codes_up_to_now_are_used(google, services, driver, store, sink):
    path, app, _ = google("--time-based", "--allow-reuse", "--no-rate-limit", "--window-size=3")
    now = time.time()
    assert play(services, "ga", "root", app.code(now)) == SUCCESS
    imported(store, "google-authenticator", path, "--user", "root")
    assert the_refusal(sink, driver, "root", app.code(now)) == "replayed"
    assert driver.login("login", "root", app.code(now + 90)).result == SUCCESS


@pytest.fixture
def oath(tmp_path, services):
    """A users file, and a service `oath` with the real module."""
    path = tmp_path / "users.oath"
    services.write("oath", f"auth required {peer('pam_oath.so')} usersfile={path} window=5",
                   "account required pam_permit.so")
    key = "3132333435363738393031323334353637383930"
    base32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

    def make(kind, digits=6, rest="", password="-"):
        path.write_text(f"# users\n{kind}\troot\t{password}\t{key}{rest}\n")
        path.chmod(0o600)
        app = "totp" if "/T" in kind else "hotp"
        period = 60 if "T60" in kind else 30
        return path, Enrollment("root", base32, app, "sha1", digits, period, 0, "")

    return make


@pytest.mark.parametrize("kind, digits", [("HOTP/T30", 6), ("HOTP/T60/8", 8), ("HOTP/T30/7", 7)])
def test_the_last_code_of_pam_oath_is_used_here(oath, services, driver, store, sink, kind, digits):
    path, app = oath(kind, digits)
    now = time.time()
    used, fresh = app.code(now), app.code(now + app.period)
    assert play(services, "oath", "root", used) == SUCCESS
    assert used in path.read_text()
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    one = imported(store, "pam-oath", path)["root"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert one["authenticators"][0]["lastAccepted"] == int(now) // app.period
    assert the_refusal(sink, driver, "root", used) == "replayed"
    assert driver.login("login", "root", fresh).result == SUCCESS


def test_the_last_code_is_found_in_another_time_zone(oath, services, driver, store, sink):
    path, app = oath("HOTP/T30")
    used = app.code(time.time())
    assert play(services, "oath", "root", used) == SUCCESS
    done = sallyport("import", "pam-oath", path, "--store", store.directory,
                     env=os.environ | {"TZ": "Asia/Kathmandu"})
    assert done.returncode == 0, done.stderr
    assert the_refusal(sink, driver, "root", used) == "replayed"


@pytest.mark.parametrize("rest, at_the_peer, next_one", [
    ("", [], 0), ("", [0], 1), ("", [0, 1, 4], 5), ("\t7", [], 7), ("\t7", [9], 10)])
def test_a_counter_goes_on_where_pam_oath_was(
        oath, services, driver, store, sink, rest, at_the_peer, next_one):
    path, app = oath("HOTP", rest=rest)
    for counter in at_the_peer:
        assert play(services, "oath", "root", app.code(counter=counter)) == SUCCESS
    one = imported(store, "pam-oath", path)["root"]
    assert one["authenticators"][0]["counter"] == next_one
    if next_one > 0:
        assert driver.login("login", "root", app.code(counter=next_one - 1)).result == AUTH_ERR
    assert driver.login("login", "root", app.code(counter=next_one)).result == SUCCESS
    assert the_refusal(sink, driver, "root", app.code(counter=next_one)) == "replayed"


def test_digits_that_pam_oath_did_not_enforce_are_those_of_the_last_code(oath, services, driver, store):
    path, app = oath("HOTP", digits=8)  # the line means six
    assert play(services, "oath", "root", app.code(counter=0)) == SUCCESS
    one = imported(store, "pam-oath", path)["root"]
    assert one["authenticators"][0]["digits"] == 8
    assert driver.login("login", "root", app.code(counter=1)).result == SUCCESS


def test_a_clear_text_password_is_warned_of_and_nowhere_in_the_store(oath, store):
    path, _ = oath("HOTP", password="correcthorse")
    one = imported(store, "pam-oath", path)["root"]
    assert "clear-text-password" in [remark["code"] for remark in one["remarks"]]
    content = b"".join(file.read_bytes() for file in store.directory.rglob("*") if file.is_file())
    assert b"correcthorse" not in content and b"correcthorse" not in json.dumps(one).encode()


def test_what_cannot_be_imported_is_named_and_the_rest_is_imported(tmp_path, store):
    path, key = tmp_path / "users.oath", "31" * 19 + "32"
    path.write_text(f"HOTP alice - {key}\nHOTP bob - 123\nHOTP carol - {key} 0x5\n"
                    f"HOTP/T45 dave - {key}\nHOTP eve - 3132\nHOTP frank - {key}")
    path.chmod(0o600)
    users = imported(store, "pam-oath", path, "--allow-missing", status=65)
    assert {user: each["result"] for user, each in users.items()} == {
        "alice": "imported", "frank": "imported", "bob": "not-imported", "carol": "not-imported",
        "dave": "not-imported", "eve": "not-imported"}
    assert [users[user]["reasons"][0]["code"] for user in ("bob", "carol", "dave", "eve")] == [
        "line", "line", "line", "weak-secret"]
    assert {path.name for path in (store.directory / "users").iterdir()} == {"alice", "frank"}
    again = imported(store, "pam-oath", path, "--allow-missing", "--force", status=65)
    assert again["alice"]["result"] == "already-imported"
    assert again["eve"]["result"] == "imported"
    unknown = imported(store, "pam-oath", path, "--user", "alice", status=65)
    assert unknown["alice"]["reasons"][0]["code"] == "no-account"


def test_nothing_is_changed_by_a_dry_run(google, store):
    path, _, _ = google(*TOTP)
    one = imported(store, "google-authenticator", path, "--user", "root", "--dry-run")["root"]
    assert one["result"] == "imported" and not store.directory.exists()


def test_uris_of_many_come_from_standard_input(driver, store, sink):
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    app = Enrollment("root", secret, "hotp", "sha1", 8, None, 0, "")
    users = imported(store, "uri", "--allow-missing", "--backup-codes", "3", typed=(
        f"# exported\nroot otpauth://hotp/x:root?secret={secret}&counter=7&digits=8\n"
        f"alice otpauth://totp/x:alice?secret={secret}&algorithm=SHA256\n"
        f"alice otpauth://totp/x:alice?secret={secret}\n"))
    assert [each["name"] for each in users["alice"]["authenticators"]] == ["phone", "phone-2"]
    handed_out.extend(users["root"]["backupCodes"])
    assert driver.login("login", "root", app.code(counter=6)).result == AUTH_ERR
    assert driver.login("login", "root", app.code(counter=7)).result == SUCCESS
    assert driver.login("login", "root", users["root"]["backupCodes"][2]).result == SUCCESS
    one = imported(store, "uri", "-", "--user", "bob", "--allow-missing",
                   typed=f"otpauth://totp/x?secret={secret}")["bob"]
    assert one["result"] == "imported"


@pytest.mark.parametrize("kind, status", [
    ("missing", 66), ("link", 65), ("directory", 65), ("pipe", 65), ("empty", 0)])
def test_a_list_is_opened_with_care(tmp_path, store, kind, status):
    path = tmp_path / "list"
    if kind == "link":
        (tmp_path / "other").write_text("")
        path.symlink_to(tmp_path / "other")
    elif kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "empty":
        path.write_text("# nobody\n")
    done = sallyport("import", "pam-oath", path, "--store", store.directory)
    assert done.returncode == status, done.stderr
    assert status == 0 or done.stderr.startswith(f"sallyport: {path}: ")


@pytest.fixture
def homes(tmp_path):
    """Accounts of this private machine, each with a home; user(name, uid) makes one."""
    if not REAL_ROOT:
        pytest.skip("other users' files need root")
    passwd = Path("/etc/passwd")
    before = passwd.read_text()
    directory = Path("/home/import")
    directory.mkdir(mode=0o755)

    def user(name, uid):
        home = directory / name
        home.mkdir(mode=0o700)
        os.chown(home, uid, uid)
        with passwd.open("a") as file:
            file.write(f"{name}:x:{uid}:{uid}::{home}:/bin/sh\n")
        return home

    yield user
    passwd.write_text(before)
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def google_file(path, uid, mode=0o600, secret="GEZDGNBVGY3TQOJQGEZDGNBVGY"):
    path.write_text(f'{secret}\n" DISALLOW_REUSE\n" TOTP_AUTH\n')
    os.chown(path, uid, uid)
    path.chmod(mode)


def test_all_homes_are_read_as_their_owners(homes, store, tmp_path):
    name = ".google_authenticator"
    google_file(homes("ann", 4001) / name, 4001)
    google_file(homes("bea", 4002) / name, 4002, 0o644)
    google_file(homes("cid", 4003) / name, 4001)
    dan, eli, fay = homes("dan", 4004), homes("eli", 4005), homes("fay", 4006)
    google_file(tmp_path / "roots", 0, secret="JBSWY3DPEHPK3PXPJBSWY3DPEH")
    (dan / name).symlink_to(tmp_path / "roots")
    os.mkfifo(eli / name)
    google_file(homes("gus", 4007) / name, 0, 0o400)  # root's, which gus cannot read
    users = imported(store, "google-authenticator", "--all-homes", status=65)
    told = {user: each["reasons"][0]["code"] if each["reasons"] else each["result"]
            for user, each in users.items()}
    assert told == {"ann": "imported", "bea": "open-to-others", "cid": "cannot-read",
                    "dan": "symbolic-link", "eli": "not-regular", "gus": "cannot-read"}
    assert users["bea"]["reasons"][0]["fix"] == [f"chmod 600 /home/import/bea/{name}"]
    assert stat.S_IMODE((store.directory / "users").stat().st_mode) == 0o700
    google_file(fay / name, 4006)
    again = imported(store, "google-authenticator", "--all-homes", status=65)
    assert (again["ann"]["result"], again["fay"]["result"]) == ("already-imported", "imported")


def test_what_root_collected_is_read_as_root_where_only_root_can_change_it(homes, store):
    homes("ida", 4009)
    collected = Path("/root/collected-here")
    collected.mkdir(mode=0o700)
    google_file(collected / "ida", 0)

    def read(path=collected / "${USER}", cwd=None):
        done = sallyport("import", "google-authenticator", path, "--user", "ida", "--dry-run",
                         "--json", "--store", store.directory, cwd=cwd)
        one = json.loads(done.stdout)["users"][0]
        return one["reasons"][0]["code"] if one["reasons"] else one["result"]

    try:
        assert read() == "imported"
        assert read("//root/./collected-here/ida") == "imported"
        assert read("collected-here/ida", cwd="/root") == "imported"
        # What somebody else could change is read with her rights, as before.
        (collected / "link").symlink_to("ida")
        assert read(collected / "link") == "cannot-read"
        assert read(collected / ".." / "collected-here" / "ida") == "cannot-read"
        collected.chmod(0o770)
        assert read() == "cannot-read"
        collected.chmod(0o700)
        os.chown(collected / "ida", 4009, 4009)
        assert read() == "cannot-read"
    finally:
        subprocess.run(["rm", "-rf", str(collected)], check=True)


def test_a_directory_that_only_root_may_enter_is_closed_to_a_users_file(homes, store, tmp_path):
    hal, closed = homes("hal", 4008), tmp_path / "closed"
    closed.mkdir(mode=0o700)
    google_file(closed / "ga", 0, secret="JBSWY3DPEHPK3PXPJBSWY3DPEH")
    (hal / "d").symlink_to(closed)
    done = sallyport("import", "google-authenticator", "${HOME}/d/ga", "--user", "hal",
                     "--store", store.directory)
    assert done.returncode == 65 and "Permission denied" in done.stdout, done.stderr
    assert not (store.directory / "users" / "hal").exists()
