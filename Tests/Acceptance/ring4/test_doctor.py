"""doctor on a whole machine: quiet where nothing is wrong; each breakage is found, and doctor's own
hint fixes it."""

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from clinic import (BREAKAGES, POLICY, PRELOADED, SSHD_CONFIG, SUDOERS, Clinic, doctor, wrong)
from support.hosts import SCRATCH, UIDS, edit
from support.sallyport import DEFAULT_STORE, sallyport
from support.service import PUBLIC, ROOT, Service


@pytest.fixture(scope="module")
def disk(machine):
    """The store on a disk: memory would be a finding of its own."""
    image = SCRATCH / "store-image"
    image.touch()
    os.truncate(image, 32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    DEFAULT_STORE.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", image, DEFAULT_STORE], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no loop device: {done.stderr.decode().strip()}")
    yield
    subprocess.run(["umount", DEFAULT_STORE], check=True)


@pytest.fixture(scope="module")
def clinic(disk):
    """The private machine's own people are not those of the tests; its name service is files."""
    kept = {Path(path): Path(path).read_bytes() for path in ("/etc/nsswitch.conf", "/etc/shadow")}
    edit("/etc/nsswitch.conf", lambda text: text.replace(" fold", ""))
    others = [row.split(":")[0] for row in Path("/etc/passwd").read_text().splitlines()
              if row.split(":")[0] not in UIDS]
    for name in others:
        edit("/etc/shadow", lambda text: re.sub(rf"(?m)^{re.escape(name)}:[^:]*:", f"{name}:*:", text))
    yield Clinic()
    for path, content in kept.items():
        path.write_bytes(content)


@pytest.fixture
def healthy(clinic, stacks):
    """Whole again before each test, and after the last."""
    files = [Path("/etc/passwd"), Path("/etc/shadow"), SUDOERS, SSHD_CONFIG, Path("/etc/pam.d/su")]
    kept = {path: path.read_bytes() for path in files}
    Path("/etc/pam.d/su").write_text("auth required pam_unix.so\naccount required pam_unix.so\n")
    subprocess.run(["mount", "-o", "remount,rw", DEFAULT_STORE], check=True)
    clinic.heal()
    yield clinic
    for path, content in kept.items():
        path.write_bytes(content)
    POLICY.unlink(missing_ok=True)
    subprocess.run(["mount", "-o", "remount,rw", DEFAULT_STORE], check=True)


def test_a_healthy_machine_brings_nothing(healthy):
    said = doctor()
    assert wrong(said) == [] and said["status"] == 0
    assert {found["area"] for found in said["findings"]} >= {
        "sshd", "sudo", "store", "clock", "module"}
    assert (said["lockedOut"], said["inWithoutCode"]) == ([], [])


def test_looking_changes_nothing(healthy):
    def content():
        return {path: (path.read_bytes(), path.stat().st_mtime_ns)
                for path in DEFAULT_STORE.rglob("*") if path.is_file()}
    before = content()
    assert doctor() == doctor()
    assert content() == before


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_breakage_is_found_and_its_hint_mends_it(healthy, name):
    breaks, expected, kind = BREAKAGES[name]
    breaks(healthy)
    said = doctor()
    assert expected in wrong(said), wrong(said)
    assert said["status"] == (2 if expected.endswith("error") else 1)
    found = next(found for found in said["findings"]
                 if found["id"] == expected.split()[0] and found["severity"] != "ok")
    assert found["text"]
    if kind is None:
        return
    healthy.fix(found, kind)
    left = doctor()
    assert expected not in wrong(left), wrong(left)
    assert (wrong(left), left["status"]) == ([], 0)


def test_errors_are_answered_in_the_last_lines(healthy):
    SSHD_CONFIG.write_text(SSHD_CONFIG.read_text().replace("publickey,keyboard-", "keyboard-"))
    SUDOERS.write_text(SUDOERS.read_text() + "alice ALL=(ALL) NOPASSWD: ALL\n")
    shutil.rmtree(healthy.store.of("bob"))
    done = sallyport("doctor", env=PRELOADED)
    assert done.returncode == 2
    end = done.stdout.partition("\nWho gets in:\n")[2]
    told = {heading: [line for line in end.splitlines() if line.startswith(f"  {heading} ")]
            for heading in ("asked for a code", "without a code", "locked out")}
    assert all(lines for lines in told.values()), end
    assert "error: alice at sudo\n" in end, end
    assert "bob at sshd" in told["locked out"][0] and "# sallyport enroll bob" in end, end
    # The module's path is the harness's here, and longer than any real one.
    rows = [row for row in done.stdout.splitlines() if "/modules/pam_sallyport.so" not in row]
    assert [row for row in rows if len(row) > 80] == []


def test_of_one_account_each_way_is_told(healthy):
    shutil.rmtree(healthy.store.of("bob"))
    done = sallyport("doctor", "--user", "bob", env=PRELOADED)
    assert done.returncode == 2
    head, *rows = done.stdout.splitlines()
    assert head.startswith("bob (uid ") and head.endswith("; not enrolled)")
    told = " ".join(" ".join(rows).split())
    assert "sshd" in told and "not enrolled" in told and "# sallyport enroll bob" in told, rows
    assert sallyport("doctor", "--user", "nobodyhere", env=PRELOADED).returncode == 67


def test_a_service_that_is_named_is_looked_at_alone(healthy):
    SUDOERS.write_text(SUDOERS.read_text() + "alice ALL=(ALL) NOPASSWD: ALL\n")
    assert wrong(doctor("--service", "sshd")) == []
    assert wrong(doctor("--service", "sudo")) == ["sudo-nopasswd error"]
    assert wrong(doctor("--service", "su")) == ["service-unasked error"]


def test_what_is_meant_to_need_no_code_is_no_fault_but_one_account_more_is(healthy):
    SUDOERS.write_text(SUDOERS.read_text() + "alice ALL=(ALL) NOPASSWD: ALL\n")
    assert (wrong(doctor()), doctor()["status"]) == (["sudo-nopasswd error"], 2)
    POLICY.write_text("[default]\nwithout_code = alice:sudo\n")
    said = doctor()
    assert (wrong(said), said["status"], said["inWithoutCode"]) == ([], 0, [])
    alice = next(row for row in said["access"]["accounts"] if row["user"] == "alice")
    meant = {said["access"]["ways"][cell["way"]]["name"] for cell in alice["cells"]
             if cell["onPurpose"] == f"{POLICY}:2"}
    assert "sudo" in meant and "sshd" not in meant
    SUDOERS.write_text(SUDOERS.read_text() + "bob ALL=(ALL) NOPASSWD: ALL\n")
    more = doctor()
    assert more["status"] == 2
    assert not any("alice" in text for text in more["inWithoutCode"] if " at " in text)


def test_a_key_alone_that_is_meant_is_no_fault_unless_another_may_add_one(healthy):
    asks = SSHD_CONFIG.read_text()
    SSHD_CONFIG.write_text(f"{asks}Match User alice\n  AuthenticationMethods publickey\n")
    assert (wrong(doctor()), doctor()["status"]) == (["ssh-no-code error"], 2)
    POLICY.write_text("[default]\nwithout_code = alice:sshd\n")
    assert (wrong(doctor()), doctor()["status"]) == ([], 0)
    # Nobody else has a key, but everybody may write one.
    SSHD_CONFIG.write_text(asks.replace("publickey,keyboard-interactive", "publickey"))
    Path("/home/bob/.ssh/authorized_keys").unlink()
    assert "ssh-no-code error" in wrong(doctor()) and doctor()["status"] == 2


def of_the_service(said):
    return {f"{found['id']} {found['severity']}" for found in said["findings"]
            if found["area"] == "sallyportd"}


def test_whether_the_service_is_there_is_told_and_what_it_lacks_mended(healthy):
    shutil.rmtree(ROOT.parent, ignore_errors=True)
    assert of_the_service(doctor()) == {"daemon-callers ok"}
    with Service() as service:
        assert of_the_service(doctor()) == {"daemon ok"}
        ROOT.chmod(0o666)
        PUBLIC.chmod(0o600)
        ROOT.parent.chmod(0o777)
        said = doctor()
        assert of_the_service(said) == {"daemon-directory error", "daemon-mode warning"}
        for found in said["findings"]:
            if found["area"] == "sallyportd":
                healthy.fix(found, "command")
        assert of_the_service(doctor()) == {"daemon ok"}
        service.process.send_signal(signal.SIGSTOP)
        said = doctor()
        service.process.send_signal(signal.SIGCONT)
        # sudo asks the one socket, nobody here the other.
        assert of_the_service(said) == {"daemon-silent error", "daemon-silent warning"}
        assert said["lockedOut"] == ["everybody from sudo"]


def test_a_locker_that_is_not_root_needs_the_service(healthy):
    shutil.rmtree(ROOT.parent, ignore_errors=True)
    locker = Path("/etc/pam.d/swaylock")
    healthy.stack(f"auth required {healthy.module}", services=["swaylock"])
    try:
        assert "daemon-missing error" in of_the_service(doctor())
        assert "everybody from swaylock" in doctor()["lockedOut"]
        with Service() as service:
            assert of_the_service(doctor()) == {"daemon ok"}
            service.stop(signal.SIGKILL)  # its sockets stay
            assert PUBLIC.is_socket() and "daemon-missing error" in of_the_service(doctor())
    finally:
        locker.unlink()
        shutil.rmtree(ROOT.parent)


def found_in_sudoers(said):
    return [(found["id"], found["severity"], found["file"], found["line"], found["text"])
            for found in said["findings"]
            if found["severity"] != "ok" and found["id"].startswith("sudo-")]


# shows: nopasswd
def test_aliases_and_hosts_in_sudoers_mean_what_they_mean_to_sudo(healthy, tmp_path):
    included = tmp_path / "included"
    included.write_text(f"""Host_Alias HERE = {socket.gethostname()}
ADMINS ELSEWHERE = NOPASSWD: EVERYTHING
ADMINS HERE, ELSEWHERE = (root) NOPASSWD: \\
    EVERYTHING : ELSEWHERE = NOPASSWD: /bin/ls
""")
    SUDOERS.write_text(SUDOERS.read_text() + f"""
User_Alias ADMINS = alice, %floppy
Host_Alias ELSEWHERE = no-such-host
@include {included}
Cmnd_Alias EVERYTHING = ALL
Defaults:ADMINS !authenticate
""")
    last = len(SUDOERS.read_text().splitlines())
    assert found_in_sudoers(doctor("--service", "sudo")) == [
        ("sudo-nopasswd", "warning", str(included), 2,
         "on no-such-host: alice, %floppy can become root without a code: NOPASSWD"),
        ("sudo-nopasswd", "error", str(included), 3,
         "alice, %floppy can become root without a code: NOPASSWD"),
        ("sudo-authenticate", "error", str(SUDOERS), last,
         "sudo asks nothing of alice, %floppy: !authenticate")]


# shows: nopasswd
@pytest.mark.parametrize("said", [None, "exit 3", "echo oops >&2; exit 1", "echo garbage",
                                  "head -c 10000000 /dev/zero", "kill -9 $$", "exec sleep 60"])
def test_without_an_answer_of_cvtsudoers_sudoers_are_read_as_they_are(healthy, tmp_path, said):
    SUDOERS.write_text(SUDOERS.read_text() + "Cmnd_Alias EVERYTHING = ALL\n"
                       "alice ALL=(ALL) NOPASSWD: EVERYTHING\n")
    stand_in = tmp_path / "cvtsudoers"
    stand_in.write_text(f"#!/bin/sh\n{said}\n")
    stand_in.chmod(0o755)
    program = shutil.which("cvtsudoers")
    # No regular file is no program.
    subprocess.run(["mount", "--bind", stand_in if said else "/dev/null", program], check=True)
    try:
        assert wrong(doctor("--service", "sudo")) == [
            "sudo-aliases unseen", "sudo-nopasswd warning"]
    finally:
        subprocess.run(["umount", program], check=True)


def test_a_full_disk_is_a_warning_because_logins_go_on(healthy):
    with open(DEFAULT_STORE / "filler", "wb", buffering=0) as file:
        with pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)
    try:
        said = doctor()
        assert {"store-space warning", "store-writing warning"} <= set(wrong(said))
        assert said["status"] == 1
    finally:
        (DEFAULT_STORE / "filler").unlink()


def test_without_root_nothing_is_called_good_that_was_not_seen(healthy):
    said = doctor(user=UIDS["alice"], group=UIDS["alice"], extra_groups=[])
    unseen = [found["id"] for found in said["findings"] if found["severity"] == "unseen"]
    assert {"store-closed", "ssh-settings", "sudo-files"} <= set(unseen)
    assert not [found for found in said["findings"]
                if found["area"] == "store" and found["severity"] == "ok"]
    assert said["status"] == 1
