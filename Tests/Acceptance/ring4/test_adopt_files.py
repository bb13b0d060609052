"""Many accounts with other names and uids, and their enrollments go on by one file."""

import shutil
import time
from pathlib import Path

import pytest

from support.hosts import UIDS
from support.pam_driver import SUCCESS, Driver
from support.sallyport import sallyport
from test_adopt import OLD, files


def log_in(services, people):
    """Each by a backup code."""
    with Driver(services) as driver:
        for name, enrollment in people.items():
            assert driver.login("login", name, enrollment.backup_codes[0]).result == SUCCESS


def test_five_hundred_people_are_adopted_by_a_file(store, services, tmp_path, figure):
    """Each of them enrolled under another name and uid; one line is wrong, and the file is used
    again."""
    people, kept = [f"adopted{number}" for number in range(500)], {}
    passwd = Path("/etc/passwd")
    before = passwd.read_text()
    try:
        passwd.write_text(before + "".join(
            f"old-{name}:x:{20000 + number}:100::/:/bin/sh\n" for number, name in enumerate(people)))
        for name in people[:3]:
            kept[name] = store.enroll(user=f"old-{name}", allow_missing=False)
        users = store.directory / "users"
        for number, name in enumerate(people[3:], 3):
            shutil.copytree(users / f"old-{people[0]}", users / f"old-{name}")
            text = (users / f"old-{name}" / "enrollment").read_text()
            text = text.replace(f"old-{people[0]}", f"old-{name}").replace("20000", str(20000 + number))
            (users / f"old-{name}" / "enrollment").write_text(text)
        passwd.write_text(before + "".join(
            f"{name}:x:{30000 + number}:100::/:/bin/sh\n" for number, name in enumerate(people)))
        lines = [f"{name}:old-{name}:{20000 + number}" for number, name in enumerate(people)]
        lines[7] = f"{people[7]}:old-{people[7]}:1"
        listed = tmp_path / "people"
        listed.write_text("# new:old:uid\n" + "\n".join(lines) + "\n")
        begun = time.monotonic()
        done = sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
        figure(f"499 of 500 people adopted in {time.monotonic() - begun:.1f} s")
        assert done.returncode == 65, done.stderr
        assert f"{listed}:9: " in done.stderr and f"of uid {20007}" in done.stderr
        assert "499 enrollments moved, 0 needed no move, 1 failed" in done.stdout
        lines[7] = f"{people[7]}:old-{people[7]}:20007"
        listed.write_text("\n".join(lines) + "\n")
        done = sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "1 enrollment moved, 499 needed no move, 0 failed.\n"
        assert files(store) == sorted(people)
        log_in(services, kept)
    finally:
        passwd.write_text(before)


def test_a_file_with_a_line_that_is_none_changes_nothing(store, tmp_path):
    store.enroll(allow_missing=False)
    listed = tmp_path / "people"
    listed.write_bytes(b"bob:alice:3001\r\nbob alice\r\n")
    done = sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
    assert done.returncode == 65 and f"{listed}:2: expected NAME:BEFORE:UID" in done.stderr
    for line in ("bob:alice", "bob:alice:", "bob:alice:some"):
        listed.write_text(line)
        done = sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
        assert done.returncode == 65 and done.stderr == (
            f"sallyport: {listed}:1: no uid before, expected NAME:BEFORE:UID; nothing was changed\n"
            f"hint: sallyport adopt bob --store {store.directory} --from alice"
            "  # shows the uid, and asks\n")
    listed.unlink()
    done = sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
    assert done.returncode == 66 and "ENOENT" in done.stderr, done.stderr
    assert files(store) == ["alice"]


def test_the_people_of_a_file_are_shown_before_the_question(store, tmp_path):
    store.enroll(allow_missing=False)
    listed = tmp_path / "people"
    listed.write_text(f"bob:alice:{OLD}\nnobody-here::7\n")
    done = sallyport("adopt", "--all", listed, "--store", store.directory, typed="n\n")
    assert done.returncode == 1 and files(store) == ["alice"]
    assert done.stdout == (f"bob, uid {UIDS['bob']} now: before alice, uid {OLD}\n"
                           "nobody-here, no account now: before nobody-here, uid 7\n"), done.stdout


@pytest.mark.parametrize("uids", [(3011, 3012, 3013), (3011, 3012, 3011)], ids=["chain", "circle"])
def test_numbers_that_were_exchanged_are_adopted_by_a_file(store, services, tmp_path, uids):
    passwd = Path("/etc/passwd")
    before, listed = passwd.read_text(), tmp_path / "people"

    def become(anna, bert):
        passwd.write_text(f"{before}anna:x:{anna}:100::/:/bin/sh\nbert:x:{bert}:100::/:/bin/sh\n")

    def adopt_all(*lines):
        listed.write_text("\n".join(lines) + "\n")
        return sallyport("adopt", "--all", listed, "--yes", "--store", store.directory)
    try:
        become(*uids[:2])
        people = {name: store.enroll(user=name, allow_missing=False) for name in ("anna", "bert")}
        become(*uids[1:])
        kept = {name: store.enrollment(name).read_bytes() for name in people}
        anna, bert = f"anna::{uids[0]}", f"bert::{uids[1]}"
        # Who is anna is not told, or told otherwise than her enrollment has it.
        for more in ((), ("anna::3999",), (anna, "anna:bert:3012"), (f"anna:bert:{uids[1]}",)):
            done = adopt_all(bert, *more)
            assert done.returncode == 65 and f"uid {uids[1]} is anna's now" in done.stderr, done.stderr
            assert store.enrollment("bert").read_bytes() == kept["bert"]
            store.enrollment("anna").write_bytes(kept["anna"])
        done = adopt_all(bert, anna)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "2 enrollments moved, 0 needed no move, 0 failed.\n"
        done = adopt_all(bert, anna)
        assert done.stdout == "0 enrollments moved, 2 needed no move, 0 failed.\n"
        # As interrupted after the first.
        store.enrollment("bert").write_bytes(kept["bert"])
        done = adopt_all(bert, anna)
        assert done.stdout == "1 enrollment moved, 1 needed no move, 0 failed.\n", done.stderr
        log_in(services, people)
    finally:
        passwd.write_text(before)
