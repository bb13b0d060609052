"""The other recipes of docs/recipes.md: stacks, set-up by programs, patterns for the log."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import recipes
from support.hosts import PASSWORD, Sshd
from support.sallyport import COMMAND, DEFAULT_STORE, MODULE, Enrollment, handed_out
from own_sshd import DROP_INS, Daemon


def pamtester(service, user, *answers):
    """Whether the service lets the user in who types these answers, and the prompts."""
    done = subprocess.run(
        ["pamtester", service, user, "authenticate", "acct_mgmt"], capture_output=True,
        input="".join(f"{answer}\n" for answer in answers), text=True, timeout=60, check=False)
    return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def write(tmp_path):
    """Writes files of the private /etc that a recipe has, and puts back what was there."""
    before = {}

    def keep(path):
        path = Path(path)
        before.setdefault(path, path.read_bytes() if path.exists() else None)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
    yield lambda path, text: keep(path).write_text(text)
    for path, content in before.items():
        path.unlink(missing_ok=True) if content is None else path.write_bytes(content)


def test_one_field_goes_before_debians_own_stack(store, write):
    """pam_unix, as Debian's common-auth has it, takes the password that was taken apart."""
    write("/etc/pam.d/one-field", recipes.block("## Clients with one field", "One line before")
          .replace("pam_sallyport.so", f"{MODULE} nodelay") + "@include common-account\n")
    enrollment = store.enroll(allow_missing=False)
    assert not pamtester("one-field", "alice", PASSWORD + enrollment.wrong())[0]
    assert not pamtester("one-field", "alice", PASSWORD)[0]
    assert not pamtester("one-field", "alice", enrollment.code())[0]
    assert not pamtester("one-field", "alice", "wrong" + enrollment.backup_codes[0])[0]
    assert pamtester("one-field", "alice", PASSWORD + enrollment.backup_codes[1])[0]


@pytest.mark.decisive
def test_xrdps_stack_asks_once(store, write):
    write("/etc/pam.d/xrdp-sesman", recipes.stack("### xrdp", "xrdp-sesman"))
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    entered, said = pamtester("xrdp-sesman", "alice", PASSWORD + code)
    assert entered and said.count("assword") == 1
    assert not pamtester("xrdp-sesman", "alice", PASSWORD + code)[0]


@pytest.mark.decisive
def test_cockpits_stack_asks_twice(store, write):
    write("/etc/pam.d/cockpit",
          recipes.stack("### Cockpit", "cockpit") + "@include common-account\n")
    enrollment = store.enroll(allow_missing=False)
    entered, said = pamtester("cockpit", "alice", PASSWORD, enrollment.code())
    assert entered and "Verification code: " in said
    assert not pamtester("cockpit", "alice", PASSWORD, enrollment.wrong())[0]


# What each command of the section finds among these, by its line.
LINES = [
    'pam_sallyport(sshd:auth): refused: reason=wrong-code user=alice origin=198.51.100.9 '
    'budget=known:20,other:19',
    'pam_sallyport(sshd:auth): code accepted: user=alice authenticator="phone" origin=192.0.2.7',
    'pam_sallyport(sudo:auth): code accepted: user=bob authenticator="phone" drift=-1 origin=local',
    'pam_sallyport(sshd:auth): backup code accepted: user=bob left=6 origin=198.51.100.99',
    'pam_sallyport(sshd:auth): error: user=carol origin=192.0.2.8: '
    '/var/lib/sallyport/users/carol/state: mode 0644 is too open',
    'pam_sallyport(sshd:account): denied: reason=not-enrolled user=carol',
    'pam_unix(sshd:auth): refused: user=alice origin=198.51.100.9',
]


def test_the_patterns_for_the_journal_find_what_they_say():
    section = recipes.block("## Reading the log", "with fields")
    patterns = re.findall(r"^journalctl -g '(.*?)' +# ", section, re.MULTILINE)
    found = []
    for pattern in patterns:  # journalctl -g takes PCRE2, as this does
        done = subprocess.run(["grep", "-nP", pattern], input="\n".join(LINES), text=True,
                              capture_output=True, check=False)
        found.append([int(line.split(":")[0]) - 1 for line in done.stdout.splitlines()])
    assert found == [[0, 5], [0, 1], [0], [3], [2], [4]]


def test_the_lines_are_those_of_the_real_module(store, driver, sink):
    enrollment = store.enroll()
    with sink.watch() as lines:
        driver.login("sshd", "alice", enrollment.wrong(), rhost="198.51.100.9")
        driver.login("sshd", "alice", enrollment.code(), rhost="192.0.2.7")
        driver.login("sshd", "alice", enrollment.backup_codes[0], rhost="198.51.100.99")
    texts = [line.text.partition(": ")[2] for line in lines]
    assert texts[:2] == LINES[:2]
    assert re.fullmatch(LINES[3].replace("(", r"\(").replace(")", r"\)").replace("bob", "alice")
                        .replace("left=6", "left=9"), texts[2])


# MARK: set-up by programs

def on_sheet(path):
    """The enrollment on a page."""
    text = path.read_text().replace("</text>\n", "")
    secret = re.search(r"secret=([A-Z2-7]+)", text)[1]
    codes = re.findall(r"(?:[0-9A-Z]{4}-){3}[0-9A-Z]{4}", text)
    handed_out.extend([secret, *codes])
    return Enrollment("", secret, "totp", "sha1", 6, 30, None, "", codes)


@pytest.fixture
def in_path(tmp_path):
    """An environment in which `sallyport` is the command under test."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "sallyport").symlink_to(COMMAND)
    return os.environ | {"PATH": f"{directory}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def sshd_pam(write):
    """Debian's own stack for sshd, as it is before a recipe."""
    write("/etc/pam.d/sshd", "@include common-auth\n@include common-account\n"
          "session required pam_permit.so\n")


@pytest.fixture
def fresh(debian):
    """Debian's own stacks, and nobody is enrolled."""
    for directory in (DEFAULT_STORE, "/root/sheets"):
        shutil.rmtree(directory, ignore_errors=True)


def play(directory, environment, asks):
    done = subprocess.run(
        ["ansible-playbook", "--inventory", "localhost,", "--connection", "local",
         "--skip-tags", "packages", "--diff", "-v", "--extra-vars", f"sshd_asks={asks}",
         "playbook.yml"], cwd=directory, env=environment, capture_output=True, text=True,
        check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.decisive
@pytest.mark.first
@pytest.mark.parametrize("asks", ["match", "none"])
def test_the_playbook_enrolls_once_and_a_second_run_changes_nothing(
        asks, in_path, tmp_path, fresh):
    if shutil.which("ansible-playbook") is None:
        pytest.skip("ansible-playbook (ansible-core) is not installed")
    (tmp_path / "playbook.yml").write_text(recipes.block("## Ansible", "`playbook.yml`"))
    daemon = Daemon().start() if asks != "none" else None
    try:
        first = play(tmp_path, in_path, asks)
        sheets = tmp_path / "sheets/localhost"
        assert {path.name for path in sheets.iterdir()} == {"alice.svg", "bob.svg"}
        assert sheets.stat().st_mode & 0o777 == 0o700
        assert list(Path("/root/sheets").iterdir()) == []
        before = {path: path.read_bytes() for path in DEFAULT_STORE.rglob("*") if path.is_file()}
        stack = Path("/etc/pam.d/sshd").read_bytes()
        assert b"pam_sallyport.so" in stack
        enrollment = on_sheet(sheets / "alice.svg")
        for secret in (enrollment.secret, *enrollment.backup_codes):
            assert secret not in first
        assert re.search(r"changed=0 ", play(tmp_path, in_path, asks))
        assert {path: path.read_bytes() for path in before} == before
        assert Path("/etc/pam.d/sshd").read_bytes() == stack
        if daemon:
            # alice has a key: that and a code.
            assert not daemon.by_key() and not daemon.enter("alice", enrollment.wrong(), password=None)
            assert daemon.enter("alice", enrollment.code(), password=None)
    finally:
        if daemon:
            daemon.stop()
            shutil.rmtree(DROP_INS)
            DROP_INS.mkdir()


def test_the_user_data_makes_a_login_with_key_and_code(in_path, tmp_path, write, machine):
    yaml = pytest.importorskip("yaml", reason="python3-yaml is not installed")
    shutil.rmtree(DEFAULT_STORE, ignore_errors=True)
    shutil.rmtree("/root/sheets", ignore_errors=True)
    text = recipes.block("## cloud-init", "`user-data`")
    assert text.startswith("#cloud-config\n")
    data = yaml.safe_load(text)
    sshd_pam(write)
    [file] = data["write_files"]
    for command in data["runcmd"]:
        if not command.startswith(("apt-get ", "systemctl ")):
            subprocess.run(["sh", "-ec", command], check=True, env=in_path, capture_output=True)
    write("/etc/pam.d/sshd", Path("/etc/pam.d/sshd").read_text().replace(
        "pam_sallyport.so", f"{MODULE} nodelay"))
    write("/etc/group", Path("/etc/group").read_text() + "second-factor:x:3900:alice\n")
    enrollment = on_sheet(Path("/root/sheets/alice.svg"))
    daemon = Sshd("cloud-init", settings=file["content"])
    try:
        code = enrollment.code()
        assert not daemon.enter("alice", enrollment.wrong())
        assert daemon.enter("alice", code)
        assert not daemon.enter("alice", code)
        assert daemon.enter("bob", "")  # by key alone, as the cloud's own account
        keyless = daemon.command("alice", "-o", "PubkeyAuthentication=no")
        done = subprocess.run(keyless, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        assert done.returncode != 0 and "denied" in done.stderr
    finally:
        daemon.stop()


@pytest.mark.decisive
def test_one_secret_serves_several_machines_and_each_has_its_own_memory(tmp_path):
    """Machines are stores here, and ssh is a script that runs the command in the other one."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, store in [("sallyport", "first"), ("ssh", "second")]:
        shift = "shift 2; " if name == "ssh" else ""
        (programs / name).write_text(
            f'#!/bin/sh\n{shift}exec {COMMAND} "$@" --allow-missing --store {tmp_path}/{store}\n')
        (programs / name).chmod(0o755)
    heading = "## One phone for several machines"
    for words in ("On the first machine", "for each of the others"):
        subprocess.run(["sh", "-eu"], input=recipes.block(heading, words), text=True, check=True,
                       cwd=tmp_path, capture_output=True,
                       env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"})
    assert (tmp_path / "alice.json").stat().st_mode & 0o077 == 0
    told = json.loads((tmp_path / "alice.json").read_text())
    code = Enrollment("alice", told["secret"], "totp", "sha1", 6, 30, None, told["uri"]).code()

    def verify(store, code):
        return subprocess.run(
            [COMMAND, "verify", "alice", "--allow-missing", "--store", tmp_path / store],
            input=f"{code}\n", capture_output=True, text=True, check=False).returncode
    assert [verify("first", code), verify("second", code)] == [0, 0]
    assert [verify("first", code), verify("second", code)] == [1, 1]
    backup = told["backupCodes"][0]
    assert [verify("second", backup), verify("first", backup)] == [1, 0]
