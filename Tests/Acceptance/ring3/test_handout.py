"""enroll --handout: a sheet for the user, instead of secrets on somebody's screen."""

import json
import os
import resource
import shutil
import stat
import subprocess
import xml.etree.ElementTree as ET

import pytest

from support.sallyport import handed_out, sallyport
from support.screen import read_qr_code

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
GROUPS = "JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP"
# Characters that mean something in XML.
NAMES = ["--issuer", "Smith & <Sons>", "--account", "alice \"a\" > b"]


@pytest.fixture
def enroll(store):
    def run(sheet, *more, **process):
        return sallyport(
            "enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--secret-from", "-",
            "--handout", sheet, "--store", store.directory, *more, typed=SECRET, **process)
    return run


def backup_codes(done):
    said = json.loads(done.stdout)
    handed_out.extend(said["backupCodes"])
    return said["backupCodes"]


def text_of(sheet):
    """All words on the sheet, of a page those between its tags."""
    content = sheet.read_text()
    return "\n".join(ET.fromstring(content).itertext()) if sheet.suffix == ".svg" else content


@pytest.mark.parametrize("name", ["alice.txt", "alice.svg", "ALICE.TXT"])
def test_the_sheet_has_everything_and_is_its_makers_alone(enroll, store, tmp_path, name):
    sheet = tmp_path / name
    done = enroll(sheet, "--json", *NAMES, umask=0)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["handout"] == str(sheet)
    facts = sheet.stat()
    assert stat.S_IMODE(facts.st_mode) == 0o600 and facts.st_nlink == 1
    text = text_of(sheet)
    for words in (GROUPS, "Smith & <Sons>", *backup_codes(done)):
        assert words in text
    assert said["uri"] in text.replace("\n", "")


def test_the_sheets_backup_codes_work(enroll, store, driver, tmp_path):
    done = enroll(tmp_path / "sheet.txt", "--json")
    code = backup_codes(done)[9]
    assert code in (tmp_path / "sheet.txt").read_text()
    assert driver.login("login", "alice", code).result == "PAM_SUCCESS"


@pytest.mark.decisive
def test_nothing_secret_is_printed_beside_the_sheet(enroll, tmp_path):
    done = enroll(tmp_path / "sheet.txt")
    assert done.returncode == 0, done.stderr
    sheet = (tmp_path / "sheet.txt").read_text()
    codes = [word for word in sheet.split() if word.count("-") == 3]
    handed_out.extend(codes)
    assert len(codes) == 10
    for secret in (*codes, SECRET, GROUPS, "otpauth:", "\u2588"):
        assert secret in sheet and secret not in done.stdout + done.stderr
    assert str(tmp_path / "sheet.txt") in done.stdout


def test_zbarimg_reads_the_code_of_a_text(enroll, tmp_path):
    enroll(tmp_path / "sheet.txt")
    rows = [line for line in (tmp_path / "sheet.txt").read_text().splitlines()
            if set(line) & set("\u2580\u2584\u2588")]
    read = read_qr_code(rows, tmp_path / "code.pgm")
    assert read.startswith("otpauth://totp/") and f"secret={SECRET}" in read


def test_zbarimg_reads_the_code_of_a_page(enroll, tmp_path):
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert (librsvg2-bin) is not installed: no page is drawn")
    enroll(tmp_path / "sheet.svg", *NAMES)
    subprocess.run(["rsvg-convert", "--dpi-x=150", "--dpi-y=150", "-o", tmp_path / "page.png",
                    tmp_path / "sheet.svg"], check=True)
    read = subprocess.run(["zbarimg", "--quiet", "--raw", tmp_path / "page.png"],
                          capture_output=True, text=True, check=True).stdout
    assert read.startswith("otpauth://totp/") and f"secret={SECRET}" in read


TAKEN = {
    "a file": lambda path: path.write_text("mine"),
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere"),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", TAKEN)
def test_what_has_that_name_stays_and_nobody_is_enrolled(enroll, store, tmp_path, what):
    sheet = tmp_path / "sheet.txt"
    TAKEN[what](sheet)
    before = sheet.lstat()
    done = enroll(sheet)
    assert done.returncode == 73 and "EEXIST" in done.stderr and "hint: " in done.stderr
    assert (sheet.lstat().st_ino, sheet.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not (tmp_path / "nowhere").exists() and not store.of().exists()


def test_a_directory_that_is_not_there_is_said(enroll, store, tmp_path):
    done = enroll(tmp_path / "no such directory" / "sheet.txt")
    assert done.returncode == 66 and "ENOENT" in done.stderr
    assert not store.of().exists()


@pytest.mark.parametrize("limit, what", [(100, "the sheet"), (6000, "the enrollment's state")])
def test_a_failure_to_write_leaves_neither_sheet_nor_enrollment(
        enroll, store, tmp_path, limit, what):
    """The largest size of a file, in bytes, stands for a full disk: the sheet has about 3,000."""
    done = enroll(tmp_path / "sheet.txt", restore_signals=False, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 74 and "EFBIG" in done.stderr, what
    assert not (tmp_path / "sheet.txt").exists() and not store.of().exists()
    assert "otpauth" not in done.stdout


def test_the_sheet_is_on_disk_before_the_user_is_enrolled(enroll, store, tmp_path):
    sheet, trace = tmp_path / "sheet.txt", tmp_path / "trace"
    done = subprocess.run(
        ["strace", "-y", "-o", trace, "-e", "trace=fsync,renameat2", os.environ["SALLYPORT_COMMAND"],
         "enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--handout", sheet,
         "--store", store.directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls = trace.read_text().splitlines()
    synced = [next(n for n, call in enumerate(calls) if f"<{path}>" in call)
              for path in (sheet, tmp_path)]
    enrolled = next(n for n, call in enumerate(calls)
                    if "renameat2" in call and '"alice"' in call)
    assert synced[0] < synced[1] < enrolled
