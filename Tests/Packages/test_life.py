"""One life of the packages on a clean Debian 12: each test goes on where the one above it ended."""

import pytest

from clean import CONFIGURATION, MODULES, STORE
from support.codes import totp

BOTH = ("sallyport", "libpam-sallyport")
PASSWORD = "correct horse"
SERVICE = "etc/pam.d/try"
SETTINGS = "etc/ssh/sshd_config.d/00-sallyport.conf"
OURS = "# Written by sallyport pam enable sshd --sshd password+code\nUsePAM yes\n"
# What dpkg and pam-auth-update note for themselves.
NOTES = ("var/lib/dpkg", "var/lib/pam", "var/log", "var/cache", "root/")


@pytest.fixture(scope="module")
def life(machine):
    """What later tests need of earlier ones."""
    return {"clean": machine.files()}


def changed(machine, life):
    now, before = machine.files(), life["clean"]
    return {path for path in now.keys() | before.keys()
            if now.get(path, "gone") != before.get(path, "gone")
            and not path.startswith(NOTES) and not path.startswith("root")}


def test_installing_makes_a_store_and_changes_no_login(machine, life):
    machine.install(*BOTH)
    assert [machine.status(name) for name in BOTH] == ["ii", "ii"]
    store = machine.root / STORE
    assert store.stat().st_mode & 0o7777 == 0o700
    assert (store / "decoy/state").stat().st_size == 8192
    # A service of its own, and no line of the module in it.
    stack = "etc/pam.d/sallyport"
    assert [path for path in changed(machine, life) if path.startswith("etc/pam.d")] == [stack]
    assert "pam_sallyport" not in (machine.root / stack).read_text()


def test_nothing_of_swift_is_needed(machine, life):
    names = [path for path in machine.files() if "libswift" in path or path.endswith("/swiftc")]
    assert names == []
    for file in ("/usr/bin/sallyport", "/usr/sbin/sallyportd", f"/{MODULES}/pam_sallyport.so"):
        linked = machine.succeed("ldd", file)
        assert "not found" not in linked and "swift" not in linked.lower()


def test_the_service_is_there_and_not_started(machine, life):
    """A clean Debian without systemd, as a chroot is."""
    assert not (machine.root / "run/sallyport").exists()
    assert "sallyportd" not in machine.succeed("sh", "-c", "cat /proc/[0-9]*/comm")
    wants = machine.root / "etc/systemd/system/sockets.target.wants"
    assert {path.name for path in wants.iterdir()} == {
        "sallyport.socket", "sallyport-root.socket"}
    # Without systemd it waits to be turned on.
    links = {path.name for path in machine.root.glob("etc/rc[0-6].d/*sallyport")}
    assert links and all(name.startswith("K") for name in links)


def test_a_program_that_is_not_root_asks_the_service(machine, life):
    """It starts as root by its init script, with nothing in the environment."""
    machine.succeed("useradd", "--create-home", "carol")
    (machine.root / "etc/pam.d/locker").write_text("auth required pam_sallyport.so nodelay\n")
    code = machine.enroll("carol")["backupCodes"]
    script = ("env -i /etc/init.d/sallyport start >&2; "
              "for _ in $(seq 100); do [ ! -S /run/sallyport/socket ] || break; sleep 0.05; done; "
              "as='setpriv --reuid carol --regid carol --clear-groups --no-new-privs'; "
              "try() { echo $1 | $as pamtester locker carol authenticate >/dev/null 2>&1; }; "
              f"try {code[0]} && echo in; try {code[0]} || echo refused; "
              "/etc/init.d/sallyport stop >&2; [ ! -e /run/sallyport/socket ] && echo gone; "
              f"try {code[1]} || echo refused")
    done = machine.run("sh", "-c", script)
    assert done.stdout.split() == ["in", "refused", "gone", "refused"], done.stderr
    (machine.root / "etc/pam.d/locker").unlink()


def test_somebody_enrolls_and_logs_in(machine, life):
    machine.succeed("useradd", "--create-home", "alice")
    machine.succeed("chpasswd", typed=f"alice:{PASSWORD}\n")
    (machine.root / SERVICE).write_text(
        "auth requisite pam_unix.so nodelay\nauth required pam_sallyport.so nodelay\n")
    life["alice"] = alice = machine.enroll("alice")
    life["code"] = code = totp(alice["secret"])[0]
    assert not machine.login("try", "alice", PASSWORD, "000000")
    assert not machine.login("try", "alice", "wrong horse", code)
    assert machine.login("try", "alice", PASSWORD, code)
    assert not machine.login("try", "alice", PASSWORD, code)
    assert machine.login("try", "alice", PASSWORD, alice["backupCodes"][0])


def test_a_service_is_turned_on_and_off_by_the_command(machine, life):
    path = machine.root / "etc/pam.d/door"
    plain = "@include common-auth\n@include common-account\n"
    path.write_text(plain)
    machine.succeed("sallyport", "pam", "enable", "door", "--yes")
    assert "pam_sallyport.so" in path.read_text()
    assert not machine.login("door", "alice", PASSWORD, "not a code")
    assert machine.login("door", "alice", PASSWORD, life["alice"]["backupCodes"][3])
    machine.succeed("sallyport", "pam", "disable", "door", "--yes")
    assert path.read_text() == plain
    path.unlink()


def test_the_qr_code_is_drawn_with_no_library_for_it(machine, life):
    assert not list(machine.root.glob("usr/lib/*/libqr*"))
    shown = machine.succeed("sallyport", "enroll", "--user", "root", "--no-confirm", "--qr", "utf8")
    assert "\u2588" in shown


def test_an_upgrade_keeps_enrollments_and_a_changed_configuration(machine, life):
    configuration = machine.root / CONFIGURATION
    configuration.write_text("# ours\n")
    before = {path: content for path, content in machine.files().items()
              if path.startswith((STORE, "etc/pam.d"))}
    wants = machine.root / "etc/systemd/system/sockets.target.wants/sallyport.socket"
    wants.unlink()  # somebody has disabled it
    machine.newer("sallyport", lambda tree: None)
    machine.newer("libpam-sallyport",
                  lambda tree: (tree / CONFIGURATION).write_text("# the next sample\n"))
    machine.install(*BOTH)
    assert "+next" in machine.succeed("dpkg-query", "-W", *BOTH)
    assert not wants.is_symlink()
    assert configuration.read_text() == "# ours\n"
    assert (machine.root / f"{CONFIGURATION}.dpkg-dist").read_text() == "# the next sample\n"
    after = machine.files()
    acts = {path for path in before if path.startswith(f"{STORE}/acts/")}
    assert acts and all(after[path].startswith(before[path]) for path in acts)
    assert {path: after[path] for path in before} == before | {path: after[path] for path in acts}
    # Used codes stay used, the next one works.
    assert not machine.login("try", "alice", PASSWORD, life["code"])
    assert machine.login("try", "alice", PASSWORD, totp(life["alice"]["secret"], 4)[3])


def test_removing_is_refused_while_a_service_names_the_module(machine, life):
    done = machine.run("dpkg", "--remove", "libpam-sallyport")
    assert done.returncode != 0
    assert f"/{SERVICE}\n" in done.stderr and "hint: " in done.stderr
    assert machine.status("libpam-sallyport")[1] == "i"
    # As apt calls it, which goes on to the command where the module's package refuses.
    done = machine.run("dpkg", "--force-depends", "--remove", *BOTH)
    assert done.returncode != 0
    assert [machine.status(name)[1] for name in BOTH] == ["i", "i"], done.stderr
    assert machine.run("sallyport", "--version").returncode == 0
    assert machine.login("try", "alice", PASSWORD, life["alice"]["backupCodes"][1])
    left = machine.root / f"{SERVICE}.bak"
    left.write_text((machine.root / SERVICE).read_text())
    (machine.root / SERVICE).unlink()


def test_removing_is_refused_while_sshd_goes_by_our_settings(machine, life):
    settings = machine.root / SETTINGS
    settings.parent.mkdir(parents=True)
    settings.write_text(OURS)
    for name in (["libpam-sallyport"], ["sallyport"], BOTH):
        done = machine.run("dpkg", "--force-depends", "--remove", *name)
        assert done.returncode != 0 and f"/{SETTINGS} still sets" in done.stderr, done.stderr
        assert [machine.status(name)[1] for name in BOTH] == ["i", "i"]
    settings.unlink()


def test_removing_takes_the_line_out_that_pam_auth_update_has_written(machine, life):
    common = machine.root / "etc/pam.d/common-auth"
    plain = common.read_text()
    machine.succeed("pam-auth-update", "--enable", "sallyport")
    assert "pam_sallyport.so" in common.read_text()
    machine.succeed("dpkg", "--remove", "libpam-sallyport")
    assert common.read_text() == plain


def test_removing_keeps_configuration_and_enrollments(machine, life):
    before = {path: content for path, content in machine.files().items() if path.startswith(STORE)}
    machine.succeed("dpkg", "--remove", "sallyport")
    assert [machine.status(name) for name in BOTH] == ["rc", "rc"]
    after = machine.files()
    assert {path: after[path] for path in after if path.startswith(STORE)} == before
    assert (machine.root / CONFIGURATION).read_text() == "# ours\n"
    assert f"{MODULES}/pam_sallyport.so" not in after


def test_what_was_removed_can_come_back(machine, life):
    machine.install(*BOTH)
    (machine.root / SERVICE).write_text("auth required pam_sallyport.so nodelay\n")
    assert machine.login("try", "alice", life["alice"]["backupCodes"][2])
    assert not machine.login("try", "alice", life["alice"]["backupCodes"][0])
    (machine.root / SERVICE).unlink()


def test_purging_the_module_leaves_the_enrollments(machine, life):
    (machine.root / "run/sallyport").mkdir(exist_ok=True)
    # As `systemctl enable` leaves it.
    wanted = machine.root / "etc/systemd/system/sockets.target.wants/sallyport-session.socket"
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.symlink_to("/usr/lib/systemd/system/sallyport-session.socket")
    machine.succeed("dpkg", "--purge", "libpam-sallyport")
    assert not (machine.root / "run/sallyport").exists() and not wanted.is_symlink()
    assert not (machine.root / CONFIGURATION).exists()
    assert (machine.root / STORE / "users/alice/enrollment").exists()


def test_purging_takes_our_settings_of_sshd_away_where_sshd_does_without(machine, life):
    settings, sshd = machine.root / SETTINGS, machine.root / "usr/sbin/sshd"
    sshd.write_text(f"#!/bin/sh\n[ -e /{SETTINGS} ] || {{ echo 'line 3: no' >&2; exit 255; }}\n")
    sshd.chmod(0o755)
    purge = ("sh", "/var/lib/dpkg/info/sallyport.postrm", "purge")
    for text in (f"# {OURS}", f"{OURS}UseDNS no\n", OURS):
        settings.write_text(text)
        done = machine.run(*purge)
        assert done.returncode == 0 and settings.read_text() == text
        assert ("line 3: no" in done.stderr) == (text == OURS), done.stderr
        assert ("somebody has changed it" in done.stderr) == (text != OURS), done.stderr
    # It says so only after it has read its settings.
    sshd.write_text(
        "#!/bin/sh\necho 'Missing privilege separation directory: /run/sshd' >&2\nexit 255\n")
    machine.succeed(*purge)
    assert not settings.exists()
    settings.with_name(f"{settings.name}.purged").write_text(OURS)
    sshd.unlink()
    machine.succeed(*purge)
    assert not any(settings.parent.iterdir())


def test_purging_the_command_leaves_nothing(machine, life):
    machine.succeed("dpkg", "--remove", "sallyport")
    (machine.root / SETTINGS).write_text(OURS)
    machine.succeed("dpkg", "--purge", "sallyport")
    assert [machine.status(name) for name in BOTH] == ["--", "--"]
    left = {path for path in changed(machine, life) if "sallyport" in path}
    assert left == set()
