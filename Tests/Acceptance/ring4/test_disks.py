"""Full and read-only disks: full locks nobody out and lets no code in twice."""

import os
import subprocess

import pytest

from support.hosts import UIDS
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import MODULE, Services, Store, our_line, reason, sallyport


def mount(*arguments):
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request, tmp_path):
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    if request.param == "tmpfs":
        assert mount("-t", "tmpfs", "-o", "size=256k,mode=755", "small", place).returncode == 0
    else:
        image = tmp_path / "image"
        image.write_bytes(b"")
        image.open("r+b").truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        done = mount("-o", "loop", image, place)
        if done.returncode != 0:
            pytest.skip(f"no loop device: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def fill(place):
    """Not a byte is left, nor an inode's worth."""
    for size in (1 << 16, 4096, 1):
        with open(place / f"filler{size}", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                assert error.errno == 28
    with pytest.raises(OSError):
        (place / "one-more").write_bytes(b"x" * 5000)


@pytest.fixture
def here(disk, tmp_path):
    """A store on the small disk, and the driver's services for it."""
    store = Store(disk / "store")
    services = Services(tmp_path / "services")
    services.code("login", store, "nodelay")
    return store, services


# shows: full-disk
@pytest.mark.decisive
def test_a_full_disk_lets_the_owner_in_once_per_code(disk, here, sink):
    store, services = here
    enrollment = store.enroll()
    fill(disk)
    with Driver(services) as driver:
        code, backup = enrollment.code(), enrollment.backup_codes[0]
        assert driver.login("login", "alice", code).result == SUCCESS
        with sink.watch() as lines:
            assert driver.login("login", "alice", code).result == AUTH_ERR
        assert reason(lines) == "replayed"
        assert driver.login("login", "alice", backup).result == SUCCESS
        assert driver.login("login", "alice", backup).result == AUTH_ERR
        assert driver.login("login", "alice", enrollment.wrong()).result == AUTH_ERR


# shows: read-only-disk
def test_a_read_only_disk_refuses_and_says_so(disk, here, sink):
    store, services = here
    enrollment = store.enroll()
    assert mount("-o", "remount,ro", disk).returncode == 0
    with Driver(services) as driver:
        for answer in (enrollment.code(), enrollment.wrong(), enrollment.backup_codes[0]):
            with sink.watch() as lines:
                assert driver.login("login", "alice", answer).result == TROUBLE
            assert lines[0].level == "ALERT" and str(store.state()) in lines[0].text
            assert "Read-only file system (EROFS)" in lines[0].text


def cannot_write(disk, store, how):
    if how == "full":
        fill(disk)
    elif how == "read-only":
        assert mount("-o", "remount,ro", disk).returncode == 0
    else:
        os.chown(store.directory / "users", UIDS["bob"], 0)


# shows: full-disk
@pytest.mark.decisive
@pytest.mark.parametrize("how", ["full", "read-only", "another's"])
def test_a_store_that_cannot_be_written_is_found_before_a_secret_is_shown(
        disk, here, sink, tmp_path, how):
    """By the command, whose first code would come too late, and in the login."""
    store, services = here
    store.enroll()
    policy = tmp_path / "policy.conf"
    policy.write_text("[default]\nenrollment = required\n")
    policy.chmod(0o644)
    words = [f"conf={policy}", "nodelay"]
    services.write("sshd", "auth required pam_exec.so quiet expose_authtok /bin/true",
                   our_line(store, *words, "enroll"),
                   f"account required {MODULE} store={store.directory} {' '.join(words)}",
                   "account required pam_permit.so")
    cannot_write(disk, store, how)
    for verb in (["enroll", "alice", "--allow-missing", "--force"],
                 ["enroll", "carol", "--allow-missing"], ["add", "alice", "--force"]):
        done = sallyport(*verb, "--no-confirm", "--store", store.directory)
        assert done.returncode not in (0, 1) and done.stdout == "", (verb, done)
        assert done.stderr.startswith(f"sallyport: {store.directory}"), done.stderr
    with Driver(services) as driver, sink.watch() as lines:
        login = driver.login("sshd", "bob", "x", "y", phases=("auth", "acct"), rhost="192.0.2.7")
    assert {"PAM_PERM_DENIED", TROUBLE} & set(login.results)
    assert not any("otpauth" in text or "\u2580" in text for _, text in login.prompts)
    assert any(line.level == "ALERT" and str(store.directory) in line.text for line in lines)
    assert [path.name for path in (store.directory / "users").iterdir()] == ["alice"]


# shows: full-disk
def test_enrolling_on_a_full_disk_keeps_the_old_enrollment_whole(disk, here, sink):
    store, services = here
    enrollment = store.enroll()
    before = store.enrollment().read_bytes()
    fill(disk)
    done = sallyport("enroll", "--user", "alice", "--no-confirm", "--json", "--force",
                     "--allow-missing", "--store", store.directory)
    assert done.returncode == 74 and "No space left" in done.stderr
    assert store.enrollment().read_bytes() == before
    assert sorted(path.name for path in (store.directory / "users").iterdir()) == ["alice"]
    with Driver(services) as driver:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
