"""Verbs about a group, all, or another spelling, where a source of accounts lists nobody."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from support.hosts import SCRATCH, add_account, edit, remove_account
from support.pam_driver import BUILT
from support.sallyport import COMMAND, sallyport
from support.typist import Child

HIDDEN = Path("/etc/passwd.hidden")
PEOPLE = "people whom a source in nsswitch.conf may not list"
CHANGES = [
    ("unenroll", "--force"), ("require",), ("exempt",), ("forget",), ("unlock",), ("verify",),
    ("resync",), ("remove", "--name", "phone", "--force"), ("backup-codes", "--regenerate"),
    ("rename", "--name", "phone", "--to", "fob"), ("enroll", "--force", "--no-confirm"),
    ("add", "--name", "fob", "--force", "--no-confirm")]


@pytest.fixture
def directory():
    """lena and max, of a source that finds them by name alone; carol is in files."""
    libraries = SCRATCH / "lib-hidden"
    libraries.mkdir(exist_ok=True)
    shutil.copy(f"{BUILT}/libnss_hidden.so.2", libraries)
    Path("/etc/ld.so.conf.d/hidden.conf").write_text(f"{libraries}\n")
    subprocess.run(["ldconfig", "-X"], check=True)
    before = {path: Path(path).read_text() for path in ("/etc/nsswitch.conf", "/etc/group")}
    HIDDEN.write_text("lena:x:3100:3100::/home/lena:/bin/sh\nmax:x:3101:3100::/home/max:/bin/sh\n")
    add_account("carol", 3003)

    def set_sources(**sources):
        for name, words in sources.items():
            edit("/etc/nsswitch.conf",
                 lambda text: re.sub(f"(?m)^{name}:.*", f"{name}: {words}", text))
    yield set_sources
    remove_account("carol")
    HIDDEN.unlink()
    for path, text in before.items():
        Path(path).write_text(text)


def require(store, *words, status=0):
    done = sallyport("require", *words, "--json", "--store", store.directory)
    assert done.returncode == status, done.stderr
    told = json.loads(done.stdout)
    return sorted(user["user"] for user in told["users"]), told["notReached"]


def content(store):
    return {path: path.read_bytes() for path in Path(store.directory).rglob("*") if path.is_file()}


def asked(store, *words, answer):
    """On a terminal; the question, the answers, and all that came then."""
    child = Child([COMMAND, *words, "--store", store.directory])
    child.expect_exact("[y/N]: ")
    question = child.before
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    return question, child.before, child.exitstatus


def test_a_group_is_asked_for_its_members_by_name(directory, store):
    store.enroll()
    directory(passwd="files hidden", group="files")
    edit("/etc/group", lambda text: text + "ops:x:4700:lena,carol,ghost\n")
    done, unseen = require(store, "--group", "ops", status=75)
    assert done == ["carol", "lena"]
    source = PEOPLE.removeprefix("people ")
    assert unseen == ["ghost", f"members of ops {source}"]
    told = sallyport("require", "--group", "ops", "--store", store.directory).stderr
    assert told.startswith("hint: sallyport require NAME --store")
    assert require(store, "--group", "ops", "--undo", status=75)[0] == ["carol", "lena"]


def test_a_group_of_files_alone_is_done_in_full(directory, store):
    store.enroll()
    directory(passwd="files", group="files")
    edit("/etc/group", lambda text: text + "ops:x:4700:carol\n")
    assert require(store, "--group", "ops") == (["carol"], [])


def test_who_is_enrolled_or_has_a_level_is_found_in_a_group_that_lists_nobody(directory, store):
    """By the primary group. Nothing else shows that they are in it."""
    directory(passwd="files hidden", group="files")
    store.enroll("lena")
    assert sallyport("require", "max", "--store", store.directory).returncode == 0
    edit("/etc/group", lambda text: text + "hidden:x:3100:\n")
    done, unseen = require(store, "--group", "hidden", "--undo", status=75)
    assert done == ["max"] and len(unseen) == 1
    assert require(store, "--group", "hidden", status=75)[0] == ["lena"]


def test_all_names_whom_it_did_not_reach(directory, store):
    store.enroll()
    directory(passwd="files hidden", group="files")
    done, unseen = require(store, "--all", status=75)
    assert "carol" in done and "lena" not in done and unseen == [PEOPLE]
    directory(passwd="files", group="files")
    assert require(store, "--all", "--undo")[1] == []
    edit("/etc/passwd", lambda text: text + "far:x:70000:70000::/:/bin/sh\n")
    assert require(store, "--all", status=75)[1] == ["far: uid 70000"]
    edit("/etc/passwd", lambda text: text.replace("far:x:70000:70000::/:/bin/sh\n", ""))


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: words[0])
def test_another_spelling_of_an_account_changes_nothing_without_a_terminal(directory, store, words):
    directory(passwd="files hidden", group="files")
    store.enroll("lena")
    before = content(store)
    done = sallyport(words[0], "--user", "lena@corp", *words[1:], "--store", store.directory)
    assert done.returncode == 64, done.stderr
    assert "lena@corp is the account lena: nothing was changed" in done.stderr
    assert f"hint: sallyport {words[0]} lena --store" in done.stderr
    assert content(store) == before


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: words[0])
def test_both_names_are_said_on_a_terminal_and_no_is_the_usual_answer(directory, store, words):
    directory(passwd="files hidden", group="files")
    store.enroll("lena")
    before = content(store)
    question, _, status = asked(
        store, words[0], "--user", "lena@corp", *words[1:], answer="")
    assert "lena@corp is the account lena. Go on with lena?" in question and status == 1
    assert content(store) == before


def test_another_spelling_that_is_agreed_to_is_the_account(directory, store):
    directory(passwd="files hidden", group="files")
    store.enroll("lena")
    _, told, status = asked(store, "exempt", "lena@corp", answer="y")
    assert status == 0 and "lena: exempt" in told
    assert (store.directory / "unenrolled" / "lena").exists()
    _, told, status = asked(store, "unenroll", "lena@corp", "--force", answer="y")
    assert status == 0 and "lena is no longer enrolled" in told and not store.of("lena").exists()


@pytest.fixture
def stale(directory, store):
    """lena@corp was an account of its own, which the directory knows as lena now."""
    edit("/etc/passwd", lambda text: text + "lena@corp:x:3100:3100::/:/bin/sh\n")
    store.old = store.enroll("lena@corp")
    edit("/etc/passwd", lambda text: text.replace("lena@corp:x:3100:3100::/:/bin/sh\n", ""))
    store.enroll("lena")
    directory(passwd="files hidden", group="files")
    return store


def test_what_is_removed_is_the_entry_that_was_typed(stale):
    for more in ([], ["--uid", "3101"]):
        done = sallyport("unenroll", "lena@corp", "--force", *more, "--store", stale.directory)
        assert done.returncode == (67 if more else 64), done.stderr
        # To be copied without a thought, it would end the living account's.
        assert "unenroll lena " not in done.stderr
    assert "3101" in more and stale.of("lena@corp").exists() and stale.of("lena").exists()
    question, told, status = asked(stale, "unenroll", "lena@corp", "--force", answer="y")
    assert "what is stored as lena@corp counts in no login. Go on with lena@corp?" in question
    assert status == 0 and "lena@corp is no longer enrolled" in told
    assert not stale.of("lena@corp").exists() and stale.of("lena").exists()


def test_the_uid_of_an_entry_is_as_good_as_a_terminal(stale):
    done = sallyport(
        "unenroll", "lena@corp", "--force", "--uid", "3100", "--store", stale.directory)
    assert done.returncode == 0 and "lena@corp is no longer enrolled" in done.stdout, done.stderr
    assert not stale.of("lena@corp").exists() and stale.of("lena").exists()


def test_a_code_is_that_of_the_entry_which_was_typed(stale):
    """Not of the account that the name leads to now."""
    child = Child([COMMAND, "unenroll", "lena@corp", "--store", stale.directory])
    child.expect_exact("[y/N]: ")
    child.sendline("y")
    child.expect_exact("Verification code: ")
    child.answer(stale.old.code())
    child.expect_exact("lena@corp is no longer enrolled")
    assert stale.of("lena").exists()


@pytest.mark.parametrize("verb", ["require", "exempt"])
def test_a_level_is_undone_of_the_entry_that_was_typed(directory, store, verb):
    edit("/etc/passwd", lambda text: text + "lena@corp:x:3100:3100::/:/bin/sh\n")
    for name in ("lena@corp", "lena"):
        assert sallyport(verb, name, "--store", store.directory, "--allow-missing").returncode == (
            0 if verb == "require" or name != "lena" else 67)
    edit("/etc/passwd", lambda text: text.replace("lena@corp:x:3100:3100::/:/bin/sh\n", ""))
    directory(passwd="files hidden", group="files")
    assert sallyport(verb, "lena", "--store", store.directory).returncode == 0
    assert sallyport(verb, "lena@corp", "--undo", "--store", store.directory).returncode == 64
    _, told, status = asked(store, verb, "lena@corp", "--undo", answer="y")
    assert status == 0 and "lena@corp: the policy's level applies" in told
    notes = store.directory / "unenrolled"
    assert [path.name for path in notes.iterdir()] == ["lena"]
    assert (store.directory / "required" / "3100").exists() == (verb == "require")


def test_an_exempt_note_of_who_had_the_name_before_can_be_undone(directory, store):
    """Which is what doctor advises."""
    assert sallyport("exempt", "carol", "--store", store.directory).returncode == 0
    edit("/etc/passwd", lambda text: text.replace("carol:x:3003:", "carol:x:3004:"))
    done = sallyport("exempt", "carol", "--undo", "--store", store.directory)
    edit("/etc/passwd", lambda text: text.replace("carol:x:3004:", "carol:x:3003:"))
    assert done.returncode == 0, done.stderr
    assert not (store.directory / "unenrolled" / "carol").exists()


def test_what_only_tells_says_both_names(directory, store):
    directory(passwd="files hidden", group="files")
    store.enroll("lena")
    for verb in ("status", "backup-codes"):
        done = sallyport(verb, "lena@corp", "--store", store.directory)
        assert done.returncode == 0 and "lena@corp is the account lena\n" in done.stderr
    told = sallyport("status", "lena@corp", "--store", store.directory).stdout
    assert told.startswith("lena, enrolled")


def test_an_import_for_another_spelling_changes_nothing_without_a_terminal(directory, store):
    directory(passwd="files hidden", group="files")
    store.enroll("carol")
    uri = "otpauth://totp/x:lena?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\n"
    done = sallyport(
        "import", "uri", "-", "--user", "lena@corp", "--store", store.directory, typed=uri)
    assert done.returncode == 64 and "lena@corp is the account lena" in done.stderr, done.stderr
    assert not store.of("lena").exists()
    homes = sallyport("import", "google-authenticator", "--all-homes", "--store", store.directory)
    assert homes.returncode == 75 and f"homes of {PEOPLE}" in homes.stderr


def without_ascii():
    """Another spelling of a name that is shown as j%C3%BCrgen, under which its files are."""
    HIDDEN.write_text("jürgen:x:3102:3100::/home/jürgen:/bin/sh\n", encoding="utf-8")
    return "jürgen@corp"


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: words[0])
def test_the_name_to_type_is_the_own_one_also_where_it_is_shown_otherwise(directory, store, words):
    directory(passwd="files hidden", group="files")
    typed = without_ascii()
    store.enroll("jürgen")
    before = content(store)
    done = sallyport(words[0], "--user", typed, *words[1:], "--store", store.directory)
    assert done.returncode == 64, done.stderr
    assert "is the account j%C3%BCrgen: nothing was changed" in done.stderr
    assert f"hint: sallyport {words[0]} 'jürgen' --store" in done.stderr
    assert content(store) == before


def test_who_is_agreed_to_is_the_account_that_was_shown(directory, store):
    directory(passwd="files hidden", group="files")
    typed, files = without_ascii(), {"j%C3%BCrgen"}

    def names(kind):
        return {path.name for path in (store.directory / kind).iterdir()}
    for verb in ("exempt", "require"):
        question, told, status = asked(store, verb, typed, answer="y")
        assert "is the account j%C3%BCrgen. Go on with j%C3%BCrgen?" in question
        assert status == 0 and "no user" not in told and names("unenrolled") == files
    _, told, status = asked(
        store, "enroll", typed, "--no-confirm", "--allow-missing", answer="y")
    assert status == 0 and names("users") == files, told
    for words in (("forget",), ("unlock",), ("status",)):
        done = sallyport(*words, "jürgen", "--store", store.directory)
        assert done.returncode == 0, done.stderr
    _, told, status = asked(store, "unlock", typed, answer="y")
    assert status == 0 and "j%C3%BCrgen" in told
    _, told, status = asked(store, "unenroll", typed, "--force", answer="y")
    assert status == 0 and not names("users"), told


def test_doctor_names_who_is_exempt_as_he_is_typed(directory, store):
    directory(passwd="files hidden", group="files")
    without_ascii()
    assert sallyport("exempt", "jürgen", "--store", store.directory).returncode == 0
    store.enroll("jürgen")
    told = sallyport("doctor", "--json", "--store", store.directory).stdout
    assert "note-enrolled" in told, told
    assert sallyport(
        "unenroll", "jürgen", "--force", "--store", store.directory).returncode == 0
    HIDDEN.write_text("")
    told = sallyport("doctor", "--json", "--store", store.directory).stdout
    assert "getent passwd 'jürgen'" in told, told


def test_a_group_to_look_up_is_no_option(directory, store):
    store.enroll()
    told = sallyport("require", "--group=-ops", "--store", store.directory).stderr
    assert "hint: getent group -- -ops\n" in told, told
