"""`sallyport config edit` with real editors: scripts that do what a person would."""

import os
import signal
import stat
import subprocess
import time

import pexpect
import pytest

from support.sallyport import COMMAND, REAL_ROOT, sallyport

GOOD = "[default]\nlook_ahead = 7\n"
BAD = "[default]\nlook_ahead = 700\n"


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "sallyport.conf").write_text(GOOD)
    return tmp_path / "etc"


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Makes a program the editor: a shell script, `$1` the file."""
    def editor(script, variable="EDITOR"):
        path = tmp_path / "an editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        for name in ("VISUAL", "EDITOR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(variable, f"'{path}' -x")
    return editor


def edit(directory, *more, **options):
    return sallyport("config", "edit", "--conf", directory / "sallyport.conf", *more, **options)


def only_the_file(directory):
    return [path.name for path in directory.iterdir()] == ["sallyport.conf"]


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
def test_the_editor_is_a_command_with_words_and_works_on_a_copy(directory, editor, variable):
    editor(f'''[ "$1" = -x ] || exit 9; shift
        [ "$(stat -c %a "$1")" = 600 ] || exit 8
        grep -q 'look_ahead = 7' "$1" || exit 7
        sed -i 's/7/9/' "$1"''', variable)
    done = edit(directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert (directory / "sallyport.conf").read_text() == GOOD.replace("7", "9")
    assert only_the_file(directory)


@pytest.mark.parametrize("changed", [False, True])
def test_the_copy_of_an_edit_that_was_killed_goes_unless_it_has_changes(
        changed, directory, editor, tmp_path):
    mark = tmp_path / "open"
    change = 'echo "# mine" >> "$1"' if changed else ":"
    editor(f'shift; {change}; touch {mark}; exec sleep 60')
    killed = subprocess.Popen([COMMAND, "config", "edit", "--conf", directory / "sallyport.conf"],
                              start_new_session=True)
    deadline = time.monotonic() + 20
    while not mark.exists():
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    os.killpg(killed.pid, signal.SIGKILL)
    [copy] = directory.glob("*.edit-*")
    editor(":")
    done = edit(directory)
    assert done.returncode == 0
    assert copy.exists() == changed
    left = (f"sallyport: warning: {copy}: changes of an earlier edit, which are not installed; "
            f"see: sallyport config install {copy} --conf {directory}/sallyport.conf\n")
    assert done.stderr == (left if changed else "")


def test_owner_and_mode_stay(directory, editor):
    path = directory / "sallyport.conf"
    path.chmod(0o640)
    if REAL_ROOT:
        os.chown(path, 0, 12)
    editor('shift; echo "# more" >> "$1"')
    assert edit(directory).returncode == 0
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert not REAL_ROOT or (after.st_uid, after.st_gid) == (0, 12)


@pytest.mark.parametrize("answers,wanted,status", [("e\n", GOOD + "# fixed\n", 0), ("d\n", GOOD, 1)])
def test_errors_are_asked_about_on_a_terminal(directory, editor, answers, wanted, status, tmp_path):
    mark = tmp_path / "second"
    editor(f'''shift; if [ -e {mark} ]; then printf '{GOOD}# fixed\\n' > "$1"
        else touch {mark}; printf '{BAD}' > "$1"; fi''')
    child = pexpect.spawn(COMMAND, ["config", "edit", "--conf", str(directory / "sallyport.conf")],
                          encoding="utf-8", timeout=20)
    child.expect_exact(f"{directory}/sallyport.conf:2: look_ahead: expected a whole number from 0 "
                       "to 100, found \"700\"")
    child.expect_exact("1 error. Edit again, or drop the changes? [e/d]: ")
    child.send(answers)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == status
    assert (directory / "sallyport.conf").read_text() == wanted
    assert only_the_file(directory)


@pytest.mark.parametrize("script,told,is_kept", [
    ("exit 3", "the editor exited with status 3", False),
    ("kill -9 $$", "exited with status 137", False),
    ('shift; rm "$1"', "No such file", False),
    ('shift; rm "$1"; mkdir "$1"', "not a regular file", True),
    (f"shift; printf '{BAD}' > \"$1\"", "nothing was changed", True),
    ('shift; head -c 70000 /dev/zero > "$1"', "longer than 64 KiB", True)])
def test_whatever_else_an_editor_leaves_changes_nothing(directory, editor, script, told, is_kept):
    editor(script)
    done = edit(directory)
    assert done.returncode != 0 and told in done.stderr
    assert (directory / "sallyport.conf").read_text() == GOOD
    left = [path for path in directory.iterdir() if path.name != "sallyport.conf"]
    assert [f"sallyport config check {path} " in done.stderr for path in left] == [True] * is_kept
    assert ("your changes are kept" in done.stderr) == is_kept


def test_what_an_editor_saved_stays_where_it_fails_afterwards(directory, editor):
    editor('shift; echo "# mine" >> "$1"; exit 3')
    done = edit(directory)
    assert done.returncode != 0 and "status 3: nothing was changed" in done.stderr
    [copy] = directory.glob("*.edit-*")
    assert copy.read_text() == GOOD + "# mine\n"
    install = f"sallyport config install {copy} --conf {directory}/sallyport.conf"
    assert f"{install}  # your changes are kept there\n" in done.stderr
    assert sallyport(*install.split()[1:]).returncode == 0
    assert (directory / "sallyport.conf").read_text() == GOOD + "# mine\n"


def test_without_an_editor_of_ones_own_there_is_vi(directory, monkeypatch, tmp_path):
    """Of two programs in PATH: editor if it is there, else vi."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("vi", "editor"):
        (path / name).write_text(f'#!/bin/sh\necho "# {name}" >> "$1"\n')
        (path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(path))
        assert edit(directory).returncode == 0
        assert (directory / "sallyport.conf").read_text().endswith(f"# {name}\n")


def test_two_do_not_edit_at_once_and_a_killed_one_is_no_hindrance(directory, editor, tmp_path):
    os.mkfifo(tmp_path / "go")
    editor(f'read line < {tmp_path}/go; shift; echo "# first" >> "$1"')
    first = subprocess.Popen([COMMAND, "config", "edit", "--conf", directory / "sallyport.conf"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    with open(tmp_path / "go", "w") as go:  # opened once the editor runs
        second = edit(directory)
        assert second.returncode == 75
        assert second.stderr.endswith("is being edited by somebody else\n")
        first.send_signal(signal.SIGKILL)
        first.wait()
        first.stdout.close()
        go.write("on\n")
    assert (directory / "sallyport.conf").read_text() == GOOD
    editor('shift; echo "# third" >> "$1"')
    assert edit(directory).returncode == 0
    assert (directory / "sallyport.conf").read_text().endswith("# third\n")


def test_install_keeps_the_mode_and_is_on_disk_with_its_name(directory, tmp_path):
    new, path = tmp_path / "new.conf", directory / "sallyport.conf"
    new.write_text(GOOD + "#\n")
    path.chmod(0o600)
    trace = tmp_path / "trace"
    done = subprocess.run(
        ["strace", "-f", "-o", trace, "-e", "trace=rename,renameat,renameat2,fsync,openat", COMMAND,
         "config", "install", new, "--conf", path], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == GOOD + "#\n" and stat.S_IMODE(path.stat().st_mode) == 0o600
    calls = [line.split(maxsplit=1)[1].split("(")[0] for line in trace.read_text().splitlines()
             if "fsync" in line or "rename" in line]
    assert calls == ["fsync", "rename", "fsync"]
    assert only_the_file(directory)
