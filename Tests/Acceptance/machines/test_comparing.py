"""The comparison finds a fault of each kind, and the total says when a run shows too little."""

import pytest

from comparing import (
    INVENTED, MISSING, PURPOSE, UNSEEN_BADLY, WHY, WRONG, Total, facts, faults, told)
from dimensions import plain
from forecast import UNSEEN, UNSEEN_FOR, Forecast, forecast
from talk import Talk
from ways import ASKED, OPEN, REFUSED, Cell

IN, OUT = Talk(["password", "code"], "root", "Password: \r\n"), Talk(["password"])
REAL = [Cell("alice", "sudo", ASKED, "in with the code", [OUT, IN]),
        Cell("git", "sshd publickey", OPEN, "no code was asked for", [IN]),
        Cell("bob", "su -", REFUSED, "no code helps", [OUT])]
REASON = sorted(UNSEEN_FOR)[0]


def right():
    return {(cell.account, cell.way): Forecast(cell.account, cell.way, cell.result)
            for cell in REAL}


def without(key):
    return {other: cell for other, cell in right().items() if other != key}


def put(account, way, result, why=""):
    return right() | {(account, way): Forecast(account, way, result, why)}


PLANTED = {  # the forecast with one fault: the kinds that are found
    "nothing": (right(), []),
    "asked for refused": (put("bob", "su -", ASKED), [WRONG]),
    "refused for in without a code": (put("git", "sshd publickey", REFUSED), [WRONG]),
    "a cell is left out": (without(("git", "sshd publickey")), [MISSING]),
    "somebody who gets in nowhere is left out": (without(("bob", "su -")), []),
    "unseen, for a reason": (put("bob", "su -", UNSEEN, REASON), []),
    "unseen, for another": (put("bob", "su -", UNSEEN, "no time"), [UNSEEN_BADLY]),
    "a way that is not there": (put("bob", "sshd password", ASKED), [INVENTED]),
    "a way that is not tried here": (put("bob", "lightdm", ASKED), []),
    "a way that is not there, and lets nobody in": (put("bob", "sshd password", REFUSED), []),
    "one of the machine's own": (put("daemon", "su", OPEN), []),
    "root by sudo": (put("root", "sudo", OPEN), []),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_in_a_forecast(name):
    said, kinds = PLANTED[name]
    found = list(faults(REAL, said))
    assert [fault.kind for fault in found] == kinds
    assert all(fault.account in str(fault) and fault.way in str(fault) for fault in found)


def test_a_way_that_nobody_can_take_is_not_missed():
    said = put("alice", "sshd password", ASKED)
    assert not list(faults(REAL, said, {("alice", "sshd password")}))


def test_what_is_told_has_seed_machine_and_what_was_shown():
    found = list(faults(REAL, put("alice", "sudo", OPEN, "NOPASSWD")))
    text = told(plain(), found)
    for part in ("of seed 0", "machine0]", "alice by sudo", "NOPASSWD", "| Password:",
                 "password > code > in as root", "--- /etc/passwd"):
        assert part in text, text


def test_a_reason_is_compared_where_one_thing_alone_can_be_it():
    machine = plain().put({}, {"bob": {"expiry": "the account is over"}})
    [bob] = [cell for cell in REAL if cell.account == "bob"]
    key = bob.account, bob.way

    def found(said):
        return [fault.kind for fault in faults([bob], {key: said}, machine=machine)]
    assert found(Forecast(*key, REFUSED, "expired")) == []
    assert found(Forecast(*key, REFUSED, "noPassword")) == [WHY]
    two = machine.put({}, {"bob": {"shell": "/usr/sbin/nologin"}})
    assert not list(faults([bob], {key: Forecast(*key, REFUSED, "noPassword")}, machine=two))
    assert found(Forecast(*key, REFUSED, "expired", on_purpose="sallyport.conf:3")) == [PURPOSE]


def test_what_is_meant_is_looked_for_where_the_policy_names_it():
    machine = plain().put({"policy": "on purpose"}, {"git": {"enrolled": "no"}})
    git = Cell("git", "sshd publickey", OPEN, "", [IN])
    key = git.account, git.way
    assert [fault.kind for fault in faults([git], {key: Forecast(*key, OPEN, "keyAlone")},
                                           machine=machine)] == [PURPOSE]
    meant = Forecast(*key, OPEN, "keyAlone", on_purpose="/etc/security/sallyport.conf:3")
    assert not list(faults([git], {key: meant}, machine=machine))


# MARK: the table of doctor

PROMPTS = "keyboard-interactive"
COLUMNS = [("sshd", "sshd", None), ("sshd", "sshd", "address 192.0.2.0/24"),
           ("sshd", "sshd", "this machine"), ("sudo", "sudo", None), ("sudo", "sudo -u", None),
           ("polkit-1", "pkexec and run0", None), ("lightdm", "lightdm", None)]
THERE = f"sshd {PROMPTS} from 192.0.2.7"


def table(*cells):
    """Of alice: (column, verdict, methods)."""
    rows = [{"way": way, "verdict": verdict, "reason": "noPasswd", "file": "/etc/sudoers",
             "line": 9, "methods": methods, "onPurpose": None} for way, verdict, methods in cells]
    return {"access": {
        "ways": [{"service": service, "name": name, "from": place, "root": True}
                 for service, name, place in COLUMNS],
        "accounts": [{"user": "alice", "uid": 3001, "cells": rows}], "unlisted": []}}


def read(said, *ways):
    keys = [("alice", way) for way in ways]
    return {way: cell for (_, way), cell in forecast(said, keys).items()}


def test_a_cell_of_the_table_is_read_with_its_reason_and_line():
    verdicts = {3: "withoutCode", 4: "asked", 5: "refused", 6: "asked"}
    cells = read(table(*((way, verdict, []) for way, verdict in verdicts.items())))
    assert cells == {
        "sudo": Forecast("alice", "sudo", OPEN, "noPasswd", "/etc/sudoers:9"),
        "sudo -u web": Forecast("alice", "sudo -u web", ASKED, "noPasswd", "/etc/sudoers:9"),
        "pkexec": Forecast("alice", "pkexec", REFUSED, "noPasswd", "/etc/sudoers:9")}


def test_a_list_of_methods_is_read_from_the_column_of_its_connections():
    said = table((0, "refused", [PROMPTS]), (1, "asked", [PROMPTS]), (2, "unseen", [PROMPTS]))
    here, there = read(said, f"sshd {PROMPTS}", THERE).values()
    assert (here.result, there.result) == (UNSEEN, ASKED)
    elsewhere = read(table((0, "refused", [PROMPTS])), f"sshd {PROMPTS}", THERE).values()
    assert [cell.result for cell in elsewhere] == [REFUSED, REFUSED]


def test_the_one_cell_of_several_lists_bounds_what_each_of_them_lets_happen():
    [cell] = read(table((0, "asked", ["publickey"])), f"sshd {PROMPTS}").values()
    assert cell.is_bound and cell.agrees(REFUSED) and cell.agrees(ASKED) and not cell.agrees(OPEN)
    exact = read(table((0, "asked", [PROMPTS])), f"sshd {PROMPTS}")[f"sshd {PROMPTS}"]
    assert not exact.is_bound and not exact.agrees(REFUSED)


def test_of_several_lists_one_that_nobody_tried_is_shown_and_one_that_is_lacking_is_missed():
    said = table((0, "asked", ["publickey"]), (0, "asked", ["password"]))
    assert set(read(said, f"sshd {PROMPTS}")) == {"sshd publickey", "sshd password"}


def test_a_table_with_a_cell_or_a_row_twice_is_none():
    with pytest.raises(AssertionError):
        read(table((3, "asked", []), (3, "refused", [])))
    said = table((3, "asked", []))
    said["access"]["accounts"] *= 2
    with pytest.raises(AssertionError):
        read(said)


def test_without_a_table_nothing_is_said():
    assert read({"findings": []}, "sudo") == {}


def test_a_run_with_too_few_machines_or_too_much_unseen_is_a_failure():
    def total(machines, unseen=0):
        found = Total()
        for _ in range(machines):
            found.add(facts(REAL * 10, right(), []) | {"unseen": {REASON: unseen}})
        return found
    assert list(total(60).complaints(True)) == []
    assert list(total(8).complaints(False)) == []
    assert "wanted 60" in "".join(total(8).complaints(True))
    assert "unseen" in "".join(total(8, unseen=1).complaints(False))
    assert any("60 machines, 1800 cells" in line for line in total(60).lines())


# MARK: what really happens, as doctor would write it down

VERDICTS = {ASKED: "asked", REFUSED: "refused", OPEN: "withoutCode"}
HAPPENS = [Cell("alice", "sudo -u web", ASKED, ""), Cell("alice", "pkexec", REFUSED, ""),
           Cell("alice", "sshd publickey", OPEN, ""), Cell("alice", f"sshd {PROMPTS}", ASKED, ""),
           Cell("alice", THERE, REFUSED, "")]
PLACES = {"sudo -u web": (4, []), "pkexec": (5, []), "sshd publickey": (0, ["publickey"]),
          f"sshd {PROMPTS}": (0, [PROMPTS]), THERE: (1, [PROMPTS])}


def found_in(verdicts):
    said = table(*((PLACES[way][0], verdict, PLACES[way][1]) for way, verdict in verdicts.items()))
    return [fault.kind for fault in faults(
        HAPPENS, forecast(said, [(cell.account, cell.way) for cell in HAPPENS]))]


def test_a_table_of_what_really_happens_has_no_fault_and_any_other_has():
    right = {cell.way: VERDICTS[cell.result] for cell in HAPPENS}
    assert found_in(right) == []
    for way, verdict in right.items():
        for other in set(VERDICTS.values()) - {verdict}:
            assert found_in(right | {way: other}) == [WRONG], (way, other)
        # The one list that is left tells the worst of all.
        lacking = found_in({one: right[one] for one in right if one != way})
        assert (lacking == []) == (way == f"sshd {PROMPTS}"), way
