"""`sallyport-verifier backup check` on dumps of a real database, and the drill of docs/fleet.md, as the page has it.

test_a_dump_tells_who_is_in_it_and_how_old_it_is
test_a_dump_that_is_not_whole_is_not_complete
test_the_drill_and_the_restore_of_the_page_bring_everybody_back
"""

import base64
import os
import re
import subprocess

import pytest
from support.codes import totp
from support.fleet import ACCEPTED, DONE, REFUSED, SECRET, VERIFIER
from support.machines import ROOT
from support.service import soon


@pytest.fixture
def dumped(fleet):
    """A fleet in which alice and bob are enrolled and carol was, and how its database is dumped."""
    one = fleet.verifier("one")
    for name in "alice", "bob":
        assert one.enroll(name) == DONE
    assert one.type("alice", totp(base64.b32encode(SECRET).decode())[0]) == ACCEPTED

    dumps = fleet.directory / "dumps"
    dumps.mkdir()

    def dump(name, *more, zone="UTC"):
        path = dumps / name
        subprocess.run(["pg_dump", "-h", fleet.cluster.directory, "-U", "postgres", "-f", path, *more, fleet.database],
                       check=True, timeout=60, env=os.environ | {"PGTZ": zone})
        return path
    return fleet, dump


def check(fleet, path):
    done = subprocess.run([VERIFIER, "backup", "check", path, "--directory", fleet.directory], capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("form, zone", [(("-Fc",), "Asia/Kolkata"), ((), "America/St_Johns")], ids=["custom", "SQL"])
def test_a_dump_tells_who_is_in_it_and_how_old_it_is(dumped, form, zone):
    fleet, dump = dumped
    databases = "SELECT datname FROM pg_database ORDER BY 1"
    before = fleet.sql(databases)
    status, told, faults = check(fleet, dump("copy", *form, zone=zone))
    assert (status, faults) == (0, ""), faults
    [[schema]] = fleet.sql("SELECT schema FROM fleet")
    for line in ("people: 2 enrolled, 0 not", "hosts: 2", f"schema: {schema}", "policy: 1", "complete"):
        assert f"{line}\n" in told, told
    assert re.search(r"^last save: 20\S+Z, [01] minutes ago$", told, re.MULTILINE), told
    assert fleet.sql(databases) == before


def test_a_dump_that_is_not_whole_is_not_complete(dumped):
    fleet, dump = dumped
    sql, custom = dump("copy.sql"), dump("copy", "-Fc")
    text = sql.read_bytes()

    def faults(name, content):
        path = sql.with_name(name)
        path.write_bytes(content)
        status, told, said = check(fleet, path)
        assert status == 1 and "complete\n" not in told.splitlines(keepends=True), told
        return said

    def rows(table):
        return re.search(rb"^COPY public\.%s \(.*?\n\\\.\n" % table, text, re.DOTALL | re.MULTILINE)[0]
    alice = b"\\\\x" + b"alice".hex().encode()
    state, enrollment = rows(b"state"), rows(b"enrollment")
    [own] = [line for line in enrollment.splitlines(True) if line.startswith(alice)]
    [kept] = [line for line in state.splitlines(True) if line.startswith(alice)]
    [other] = [line for line in state.splitlines(True) if line.startswith(b"\\\\x" + b"bob".hex().encode())]
    fleet_row = rows(b"fleet").splitlines(True)[1]
    planted = {
        "cut": (text[:len(text) // 2], "it was cut off"),
        "no-state": (text.replace(kept, b""), "the row of the state is missing: alice"),
        "no-enrollment": (text.replace(own, b""), "the row of the enrollment is missing: alice"),
        "swapped": (text.replace(kept, kept[:len(alice)] + other[other.index(b"\t"):]), "another user: alice"),
        "changed": (text.replace(own, own[:-3] + (b"00\n" if own[-3:-1] != b"00" else b"11\n")), "another user: alice"),
        "no-table": (text.replace(b"CREATE TABLE public.host ", b"CREATE TABLE public.guest "),
                     "the table host is missing"),
        "no-rows": (text.replace(rows(b"policy"), b""), "the rows of the table policy are missing"),
        "odd-fleet": (text.replace(fleet_row, fleet_row.replace(b"\t0\t", b"\t\\N\t", 1)),
                      "its row of the fleet cannot be read"),
        "changed-fleet": (text.replace(fleet_row, fleet_row.replace(b"\t0\t", b"\t1\t", 1)), "the row of the fleet"),
        "no-fleet": (text.replace(rows(b"fleet"), b""), "0 rows of the fleet"),
        "host": (re.sub(rb"^web1\t", b"web9\t", text, flags=re.MULTILINE), "in the table host: web9"),
        "none": (b"hello\n", "neither SQL of pg_dump nor its custom form"),
        "empty": (b"", "neither SQL of pg_dump nor its custom form"),
        "endless": (text + b"x" * (17 << 20), "neither SQL of pg_dump nor its custom form"),
        "damaged": (custom.read_bytes()[:-2000], "pg_restore ended with status 1"),
    }
    for name, (content, wanted) in planted.items():
        assert content != text
        assert wanted in faults(name, content), (name, wanted)
    # Of another fleet.
    key = fleet.directory / "key"
    right = key.read_bytes()
    key.write_bytes(bytes(4) + right[4:])
    assert "its key is not the one here" in faults("foreign", text)
    key.write_bytes(right)
    assert check(fleet, sql.with_name("gone"))[0] == 1


def test_the_drill_and_the_restore_of_the_page_bring_everybody_back(fleet):
    """Each line as it stands there: but the role that owns the tables is another one here, the directory too, and
    systemctl is this test."""
    page = (ROOT / "docs/fleet.md").read_text()
    chapter = page[page.index("## Backup and restore"):page.index("## Upgrading")]
    backup, drill, restore = re.findall(r"^```sh\n(.*?)^```$", chapter, re.DOTALL | re.MULTILINE)
    one, code = fleet.verifier("one"), totp(base64.b32encode(SECRET).decode())[0]
    programs = fleet.directory / "programs"
    programs.mkdir()
    place = f'--directory {fleet.directory} --database "{fleet.words("postgres")}"'
    (programs / "sallyport-verifier").write_text(
        f'#!/bin/sh\ncase "$*" in *--database*) exec {VERIFIER} "$@" --directory {fleet.directory} ;; esac\n'
        f'exec {VERIFIER} "$@" {place}\n')
    (programs / "sallyport-verifier").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    said = []

    def type_all(block):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.replace("/etc/sallyport-verifier", str(fleet.directory)).replace("sallyport_owner", "postgres")
            if line == "systemctl stop sallyport-verifier":
                assert one.stop() == 0
            elif line == "systemctl start sallyport-verifier":
                one.start()
            else:
                done = subprocess.run(["sh", "-c", line], cwd=programs, env=os.environ | {"PATH": path},
                                      capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, (line, done.stdout, done.stderr)
                said.append(done.stdout)
    assert [one.enroll(name) for name in ("alice", "bob")] == [DONE] * 2
    type_all(backup)
    assert "complete\n" in said[-1], said
    assert one.type("alice", code) == ACCEPTED and one.enroll("late") == DONE
    databases = fleet.cluster.sql("SELECT datname FROM pg_database ORDER BY 1")
    type_all(drill)
    assert any("users: 2\n" in text for text in said), said
    assert fleet.cluster.sql("SELECT datname FROM pg_database ORDER BY 1") == databases, "the drill left a database"
    assert fleet.accepted() == ["alice"], "the live one is as it was"
    type_all(restore)
    assert fleet.accepted() == [] and fleet.sql("SELECT distrust > 0 FROM fleet") == [["t"]]
    assert one.type("alice", code) == REFUSED, "what was used before the restore"
    assert soon(lambda: one.enroll("new") == DONE and one.type("new", code) == ACCEPTED)
