"""Names and uids: one person is one enrollment, and another person is not."""

import subprocess
from pathlib import Path

import pytest

from support.hosts import UIDS, add_account, remove_account
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import reason

SPELLINGS = ["ALICE", "Alice", "alice@corp", "aLiCe@CORP.example"]


# shows: spelling
def test_every_spelling_of_the_name_is_the_same_enrollment(daemons, store, services, sink):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    assert daemons["keyboard-interactive"].enter("ALICE", code)
    with Driver(services) as driver:
        for spelling in ["alice", *SPELLINGS]:
            with sink.watch() as lines:
                assert driver.login("login", spelling, code).result == AUTH_ERR
            assert reason(lines) == "replayed"
        backup = enrollment.backup_codes[0]
        assert driver.login("login", "Alice", backup).result == SUCCESS
        assert driver.login("login", "alice", backup).result == AUTH_ERR


# shows: spelling
def test_every_spelling_of_the_name_is_the_same_throttle(store, services, sink):
    enrollment = store.enroll(allow_missing=False)
    wrong, verified = enrollment.wrong(), 0
    with Driver(services) as driver:
        for turn in range(24):
            with sink.watch() as lines:
                driver.login("sshd", SPELLINGS[turn % 4], wrong, rhost="198.51.100.9")
            verified += reason(lines) == "wrong-code"
        assert verified == 20
        with sink.watch() as lines:
            driver.login("sshd", "alice", enrollment.code(), rhost="198.51.100.9")
        assert reason(lines) == "throttled"


# shows: spelling
def test_another_spelling_finds_no_way_around_with_nullok(store, services, sink):
    enrollment = store.enroll(allow_missing=False)
    services.code("optional", None, "nodelay", "nullok")
    with Driver(services) as driver:
        for spelling in SPELLINGS:
            assert driver.login("optional", spelling, enrollment.wrong()).result == AUTH_ERR


@pytest.fixture
def made_anew():
    remove_account("alice")
    add_account("alice", UIDS["alice"] + 100)
    yield
    remove_account("alice")
    add_account("alice", UIDS["alice"])


# shows: wrong-owner
def test_an_account_made_again_with_another_uid_is_trouble(store, services, sink, request):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    request.getfixturevalue("made_anew")
    with Driver(services) as driver:
        for answer in (code, enrollment.wrong(), enrollment.backup_codes[0]):
            with sink.watch() as lines:
                assert driver.login("login", "alice", answer).result == TROUBLE
            assert lines[0].level == "ALERT" and str(store.enrollment()) in lines[0].text
            assert str(UIDS["alice"]) in lines[0].text


def test_an_account_made_again_is_refused_by_sshd(daemons, store, sink, request):
    enrollment = store.enroll(allow_missing=False)
    code = enrollment.code()
    request.getfixturevalue("made_anew")
    assert not daemons["keyboard-interactive"].enter("alice", code)


def test_the_package_gives_exempt_notes_their_uid_before_the_new_module_is_there(store, services):
    """Not to that of a name that is a uid, nor of nobody."""
    store.enroll()
    preinst = Path(__file__).parents[3] / "pam" / "debian" / "libpam-sallyport.preinst"
    notes = store.directory / "unenrolled"
    add_account("carol", 3003)
    text = "# Sallyport: change it with sallyport(1) only.\nversion = 1\nuser = {}\nfrom = none\nlevel = exempt\n"
    notes.mkdir(mode=0o700, exist_ok=True)
    for name in ("carol", "3003", "gone"):
        (notes / name).write_text(text.format(name))
        (notes / name).chmod(0o600)
    for _ in range(2):
        subprocess.run(["sh", preinst, "upgrade", "0.1.0"], check=True)
        assert (notes / "carol").read_text() == "# uid = 3003\n" + text.format("carol")
        assert (notes / "carol").stat().st_mode & 0o777 == 0o600
        assert [(notes / name).read_text() for name in ("3003", "gone")] == [text.format("3003"), text.format("gone")]
    with Driver(services) as driver:
        assert driver.login("login", "carol", "123456").prompts == []
    for name in ("carol", "3003", "gone"):
        (notes / name).unlink()
    remove_account("carol")
