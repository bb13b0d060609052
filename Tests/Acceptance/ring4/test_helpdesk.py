"""A member of the helpdesk helps somebody without being root, on a terminal, by sallyport-session."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from own import CODE, SESSION, Own, files, policy, running
from support import recipes
from support.hosts import PASSWORD, SCRATCH, edit, service
from support.pam_driver import BUILT
from support.sallyport import COMMAND, sallyport
from support.typist import Child

pytestmark = [pytest.mark.skipif(
    not os.access(SESSION, os.X_OK), reason="sallyport-session is not built"),
    pytest.mark.usefixtures("running")]

SUDOERS = Path("/etc/sudoers")
MAY = "helpdesk_may = status, unlock, pass, pass-enroll, block"
PASS = r"\b[0-9A-Z]{4}(?:-[0-9A-Z]{4})+(?:-[0-9A-Z]+)?\b"


def logged(sink, words):
    """The lines of a session with these words."""
    sink.flush()
    return [line for line in sink.lines if "sallyport-session[" in line.text and words in line.text]


@pytest.fixture(autouse=True)
def desk(running):
    """alice helps, and bob is helped."""
    kept = {path: path.read_bytes() for path in [Path("/etc/group"), SUDOERS] if path.exists()}
    edit("/etc/group", lambda text: f"{text}helpers:x:4100:alice\nhelped:x:4101:alice,bob\n")
    SUDOERS.write_text("Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n")
    SUDOERS.chmod(0o440)
    policy("helpdesk = helpers", "helpdesk_for = helped", MAY)
    yield
    for path in [Path("/etc/group"), SUDOERS]:
        if path in kept:
            path.write_bytes(kept[path])
        else:
            path.unlink()


def spend(store, user):
    """Types wrong codes until none is checked."""
    for _ in range(22):
        sallyport("verify", user, typed="000000\n")


def test_a_helper_gives_a_pass_that_lets_in_once(store, sink):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    own = Own("pass", "bob")
    assert own.finish(code=alice.code()) == 0, own.text
    assert "For bob (uid 3002): a pass, good for one login within two hours." in own.text
    assert "Verification code to give a pass to bob:" in own.prompts[1]
    [code] = re.findall(PASS, own.text)
    # Today, or tomorrow by its date.
    assert code.startswith("P") and re.search(r"Good for one login, until .*\d\d:\d\d", own.text), own.text
    lines = [line.text for line in logged(sink, "act=pass by=alice for=bob")]
    assert [line.rsplit("stage=")[-1].split()[0] for line in lines] == ["will", "done"], lines
    assert all("via=session" in line and code not in line for line in lines)
    done = sallyport("verify", "bob", typed=f"{code}\n")
    assert done.returncode == 0, done.stderr
    assert sallyport("verify", "bob", typed=f"{code}\n").returncode != 0


def test_a_helper_sees_the_status_of_somebody(store):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    own = Own("status", "bob")
    assert own.finish(code=alice.code()) == 0, own.text
    assert "to see the status of bob:" in own.prompts[1]
    assert "phone" in own.text and "10 of 10 left" in own.text


def test_a_helper_lends_tries(store, sink):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    spend(store, "bob")
    own = Own("unlock", "bob")
    assert own.finish(code=alice.code()) == 0, own.text
    assert "bob may type 5 more codes" in own.text
    assert logged(sink, "act=unlock by=alice for=bob")
    own = Own("unlock", "bob")
    assert own.finish(code=alice.backup_codes[0]) == 1 and "one unlock in seven days" in own.text


def test_a_helper_gives_a_pass_that_enrolls(store, sink):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    own = Own("pass", "bob", "--enroll")
    assert own.finish(code=alice.code()) == 0, own.text
    assert "in which a new enrollment replaces all there is" in own.text
    assert "Verification code to give a pass that enrolls to bob:" in own.prompts[1]
    assert "Good for one login that enrolls again" in own.text and re.search(PASS, own.text)
    assert logged(sink, "act=pass by=alice for=bob")
    assert "enrolls again" in sallyport("status", "bob").stdout


# shows: climb-block
def test_a_helper_blocks_somebody_and_lifts_no_block_of_roots(store, sink):
    alice = store.enroll("alice", allow_missing=False)
    bob = store.enroll("bob", allow_missing=False)
    codes = iter([alice.code(), *alice.backup_codes])
    own = Own("block", "bob", "--until", "2099-01-31")
    assert own.finish(code=next(codes)) == 0, own.text
    assert "bob is blocked up to 2099-01-31" in own.text
    assert "For bob (uid 3002): nothing is accepted any more, up to 2099-01-31 00:00 UTC." in own.text
    assert logged(sink, "act=block by=alice for=bob until=2099-01-31T00:00:00Z")
    assert sallyport("verify", "bob", typed=f"{bob.code()}\n").returncode == 1
    assert "by the helper alice" in sallyport("status", "bob").stdout
    own = Own("pass", "bob")
    assert own.finish(code=next(codes)) == 1 and "a helper has blocked bob" in own.text
    own = Own("block", "bob", "--undo")
    assert own.finish(code=next(codes)) == 0 and "bob is not blocked any more" in own.text, own.text
    assert sallyport("verify", "bob", typed=f"{bob.code()}\n").returncode == 0
    # Over a helper's, root's is root's.
    own = Own("block", "bob")
    assert own.finish(code=next(codes)) == 0, own.text
    assert sallyport("block", "bob").returncode == 0
    for words in [["--undo"], []]:
        own = Own("block", "bob", *words)
        assert own.finish(code=next(codes)) == 77, own.text
        assert "root has blocked bob: ask root" in own.text
    assert sallyport("verify", "bob", typed=f"{bob.backup_codes[0]}\n").returncode == 1
    assert sallyport("block", "bob", "--undo").returncode == 0


# shows: climb-root
@pytest.mark.decisive
@pytest.mark.parametrize("rule, told", [
    ("bob ALL=(ALL) /bin/true", "may not help bob"), ("%helped ALL=(nobody) ALL", "may not help bob"),
    ("User_Alias X = bob", "may not help bob"), ("+net ALL=(ALL) ALL", "cannot be found out"),
    ("%no-such-group ALL=ALL\nx", "cannot be found out"),
])
def test_a_helper_helps_nobody_who_may_become_somebody_else(store, sink, rule, told):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    before = files(store, "bob")
    SUDOERS.chmod(0o640)
    SUDOERS.write_text(f"root ALL=(ALL:ALL) ALL\n{rule}\n")
    for verb, code in zip(["pass", "status", "unlock", "block"], alice.backup_codes):
        own = Own(verb, "bob")
        assert own.finish(code=code) == 77 and told in own.text, own.text
    assert logged(sink, "why=/etc/sudoers:2") or logged(sink, "why=/etc/sudoers:3")
    assert files(store, "bob") == before


# shows: climb-group
@pytest.mark.decisive
@pytest.mark.parametrize("group", ["docker", "disk", "shadow", "wheel", "lxd", "sudo"])
def test_a_helper_helps_nobody_in_a_group_that_is_root_by_another_name(store, group):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    edit("/etc/group", lambda text: "".join(
        line + "\n" for line in text.splitlines() if not line.startswith(f"{group}:"))
        + f"{group}:x:4200:bob\n")
    own = Own("pass", "bob")
    assert own.finish(code=alice.code()) == 77 and "may not help bob" in own.text, own.text


@pytest.fixture
def directory():
    """A directory beside the files that knows groups: of it, what they are."""
    shutil.copy(f"{BUILT}/libnss_hidden.so.2", SCRATCH / "lib")
    subprocess.run(["ldconfig", "-X"], check=True)
    conf, hidden = Path("/etc/nsswitch.conf"), Path("/etc/group.hidden")
    before = conf.read_text()
    conf.write_text(re.sub("(?m)^group:.*", "group: files hidden", before))
    yield hidden
    conf.write_text(before)
    hidden.unlink(missing_ok=True)


# shows: climb-group
@pytest.mark.decisive
@pytest.mark.parametrize("line, status, told", [
    # It says who else is in the group, or that there is none.
    ("board:x:5000:zoe\ndocker:x:5001:zoe", 0, "A pass for bob"),
    ("board:x:5000:zoe\ndocker:x:5001:zoe,bob", 77, "may not help bob"),
    ("board:x:5000:zoe,bob", 77, "may not help bob"),
    # It lists nobody: who is in it may be in no list but that of his own groups.
    ("board:x:5000:zoe\ndocker:x:5001:", 77, "cannot be found out"),
    ("board:x:5000:", 77, "cannot be found out"),
    ("other:x:5000:zoe", 77, "cannot be found out"),
])
def test_a_helper_helps_nobody_whom_a_directory_may_have_in_a_group(
        store, directory, line, status, told):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    directory.write_text(line + "\n")
    policy("helpdesk = helpers", "helpdesk_for = helped", "helpdesk_never = board")
    own = Own("pass", "bob")
    assert own.finish(code=alice.code()) == status and told in own.text, own.text


# shows: climb-nobody
@pytest.mark.decisive
def test_a_program_of_a_helpers_learns_nothing_of_others_before_his_code(store):
    store.enroll("alice", allow_missing=False)
    SUDOERS.chmod(0o640)
    told = set()
    for step in [lambda: None, lambda: store.enroll("bob", allow_missing=False), lambda: sallyport("block", "bob"),
                 lambda: SUDOERS.write_text("bob ALL=ALL\n")]:
        step()
        for words in [["pass", "bob"], ["unlock", "bob"], ["status", "bob"], ["block", "bob"],
                      ["block", "bob", "--undo"], ["pass", "bob", "--enroll"]]:
            # Who begins too many at once is turned away, and types it again.
            for _ in range(100):
                own = Own(*words)
                if (status := own.finish(password="wrong")) != 75:
                    break
            assert status == 1, own.text
            told.add(own.text)
    assert len(told) == 1 and "the password was not accepted" in told.pop()


# shows: climb-nobody
@pytest.mark.decisive
def test_who_is_no_helper_is_told_that_only_root_can(store):
    for user in ["alice", "bob"]:
        store.enroll(user, allow_missing=False)
    for verb in ["pass", "unlock", "status", "block"]:
        own = Own(verb, "alice", user="bob")
        assert own.finish() == 77 and not own.prompts, own.text
        assert f"sudo sallyport {verb} alice" in own.text
    # Not himself, and with no option.
    for words in [["pass", "alice"], ["pass", "bob", "--uses", "5"], ["pass", "bob", "--for", "7d"],
                  ["pass", "bob", "--revoke"], ["pass", "root"], ["block", "bob", "--force"],
                  ["block", "alice"]]:
        own = Own(*words)
        assert own.finish() == 77 and not own.prompts, own.text


# shows: climb-renamed
@pytest.mark.decisive
def test_a_policy_that_changes_while_the_code_is_typed_ends_it(store):
    alice = store.enroll("alice", allow_missing=False)
    store.enroll("bob", allow_missing=False)
    before = files(store, "bob")
    own = Own("pass", "bob")
    assert own.until("[Pp]assword: ?$") == 0
    own.child.answer("correct horse")
    if own.until(CODE) == 0:
        policy("helpdesk = helpers", "helpdesk_for = helped", "helpdesk_never = helped")
        own.child.answer(alice.code())
        own.until()
    own.child.wait()
    assert own.child.exitstatus == 77 and files(store, "bob") == before, own.text


@pytest.mark.decisive
def test_the_wrapper_of_the_recipe_takes_one_name_and_no_option(store):
    heading = "## A helpdesk by sudo"
    wrapper = Path("/usr/local/sbin/sallyport-pass")
    kept = Path("/etc/pam.d/sudo").read_bytes()
    for user in ["alice", "bob"]:
        store.enroll(user, allow_missing=False)
    before = files(store, "bob")
    edit("/etc/group", lambda text: text + "people:x:4102:bob\n")
    SUDOERS.chmod(0o640)
    SUDOERS.write_text("root ALL=(ALL:ALL) ALL\n" + recipes.block(heading, "visudo"))
    SUDOERS.chmod(0o440)
    service("sudo", "required pam_unix.so nodelay")
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        recipes.block(heading, "This one").replace("exec sallyport", f"exec {COMMAND}"))
    wrapper.chmod(0o755)

    def run(*words):
        become = ["setpriv", "--reuid", "3001", "--regid", "3001", "--init-groups", "--reset-env"]
        child = Child([*become, "sudo", "-k", str(wrapper), *words], timeout=60)
        child.expect("[Pp]assword.*: ?$")
        child.answer(PASSWORD)
        text = child.read()
        child.wait()
        return child.exitstatus, text

    try:
        for words in [[], ["--help"], ["bob", "--uses", "5"], ["--revoke", "bob"], ["-u"], ["root"],
                      ["alice"], ["no-such-user"], ["bob bob"], ["../bob"], ["$(id)"], ["Bob"], [""]]:
            status, text = run(*words)
            assert status == 77 and "sallyport-pass:" in text, (words, text)
        assert files(store, "bob") == before
        status, text = run("bob")
        assert status == 0 and re.search(PASS, text), text
    finally:
        Path("/etc/pam.d/sudo").write_bytes(kept)
        wrapper.unlink()
