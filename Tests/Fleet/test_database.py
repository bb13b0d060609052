"""A database that answers, but not as it did: its role has lost rights, or rows of before are back.

test_while_a_role_lacks_rights_nobody_is_let_in_and_nothing_is_lost
test_an_enrollment_and_its_state_of_before_a_change_are_refused_even_together
"""

import base64
import struct

import pytest

from support.codes import totp
from support.fleet import (ACCEPTED, DONE, REFUSED, SECRET, TROUBLE, backup_codes, enrollment,
                           with_backup_codes)
from support.logins import code_of, secret_of
from support.service import request, soon

BASE32 = base64.b32encode(SECRET).decode()
EVERYTHING = "ALL ON ALL TABLES IN SCHEMA public"
CODES, NEW = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"], ["QQQQ2X9QD4TW0HZA"]
# Changes of an enrollment, by their numbers.
ADD, RENEW = 2, 5


def said(verifier, mark, text):
    """In its log, from there on."""
    lines = verifier.machine.log.since(mark)
    assert any(line.endswith(f"]: {text}") for line in lines), lines


@pytest.mark.parametrize("lost, table", [
    (EVERYTHING, "fleet"), ("SELECT ON state", "state"), ("UPDATE ON state", "state"), ("INSERT ON event", "event")],
    ids=["all", "read", "save", "note"])
def test_while_a_role_lacks_rights_nobody_is_let_in_and_nothing_is_lost(stage, lost, table):
    names = ["before", "meanwhile"]
    assert [stage.enroll(name, secret_of(name)) for name in names] == [DONE, DONE]
    before, meanwhile = [code_of(name) for name in names]
    assert stage.verifiers[0].type("before", before) == ACCEPTED
    rights = stage.sql("SELECT table_name, string_agg(privilege_type, ', ') FROM information_schema.role_table_grants "
                       "WHERE grantee = 'sallyport_verifier' GROUP BY 1")
    marks = [len(verifier.machine.log.lines) for verifier in stage.verifiers]
    stage.sql(f"REVOKE {lost} FROM sallyport_verifier")
    for typed in meanwhile, "000000":
        assert [verifier.type("meanwhile", typed) for verifier in stage.verifiers] == [TROUBLE, TROUBLE]
    for verifier, mark in zip(stage.verifiers, marks, strict=True):
        said(verifier, mark, f"refused: database error: user=meanwhile: ERROR:  permission denied for table {table} "
             "(SQLSTATE 42501)")
    assert stage.accepted() == ["before"] and all(verifier.process.alive for verifier in stage.verifiers)
    for name, words in rights:
        stage.sql(f"GRANT {words} ON {name} TO sallyport_verifier")
    for verifier in stage.verifiers:
        assert soon(lambda verifier=verifier: verifier.type("nobody", "000000") == REFUSED)
    assert [verifier.type("before", before) for verifier in stage.verifiers] == [REFUSED, REFUSED]
    assert [verifier.type("meanwhile", meanwhile) for verifier in stage.verifiers] == [ACCEPTED, REFUSED]
    assert stage.twice() == [] and stage.sql("SELECT distrust FROM fleet") == [["0"]]


def part(change):
    """What it brings, as an enrollment that has nothing else."""
    text = enrollment("alice", secret_of("second")).decode().replace("a1\nname = phone", "a2\nname = second")
    head, section = text.replace("[end]\n", "").split("[authenticator]")
    head = head.replace("created = 1700000000", "created = 0")
    sections = f"[authenticator]{section}" if change == ADD else backup_codes(0xB1, NEW) + "\n"
    return f"{head}{sections}[end]\n".encode()


@pytest.mark.parametrize("change", [ADD, RENEW], ids=["add", "renew"])
def test_an_enrollment_and_its_state_of_before_a_change_are_refused_even_together(stage, change):
    """By the verifier that made the change, and by one that has used it."""
    def rows():
        return stage.sql("SELECT encode(e.body, 'hex'), encode(s.body, 'hex'), version FROM enrollment e JOIN state s "
                         "USING (name) WHERE name = 'alice'")[0]

    def put_back(document, state, version):
        stage.sql(f"BEGIN; UPDATE enrollment SET body = '\\x{document}' WHERE name = 'alice'; "
                  f"UPDATE state SET body = '\\x{state}', version = {version} WHERE name = 'alice'; COMMIT")
    one, two = stage.verifiers
    assert one.enroll("alice", with_backup_codes("alice", 0xB0, CODES)) == DONE
    before = rows()
    assert one.ask(request(b"alice", 7, struct.pack("<QB", 0xE1, change), part(change))) == DONE
    [new] = totp(secret_of("second")) if change == ADD else NEW
    assert two.type("alice", new) == ACCEPTED, "the change was made"
    after, marks = rows(), [len(verifier.machine.log.lines) for verifier in stage.verifiers]
    put_back(*before)
    [typed] = totp(BASE32)
    for verifier, mark in zip(stage.verifiers, marks, strict=True):
        assert [verifier.type("alice", code) for code in (CODES[0], typed)] == [TROUBLE, TROUBLE]
        said(verifier, mark, "ALERT: user=alice: the rows were rolled back to before a change of the enrollment")
    assert stage.accepted() == ["alice"] and rows() == before
    put_back(*after)
    assert [verifier.type("alice", new) for verifier in stage.verifiers] == [REFUSED, REFUSED]
    assert [verifier.type("alice", typed) for verifier in stage.verifiers] == [ACCEPTED, REFUSED]
