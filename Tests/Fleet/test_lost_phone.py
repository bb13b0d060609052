"""A person of the fleet whose phone is gone: on all hosts she is blocked, enrolls another by a pass, and root takes
that back.

test_a_block_on_one_host_holds_on_all_until_it_is_lifted
test_a_pass_that_enrolls_replaces_the_phone_on_all_hosts_until_it_is_restored
test_a_helper_of_one_host_helps_her_on_all_of_them
"""

import json
import re
import time
from pathlib import Path

import pexpect
import pytest
from support.codes import totp
from support.host import PASSWORD, POLICY, SERVICE
from support.service import listens, soon
from support.typist import Child

DESK = """self_service = yes
helpdesk = helpers
helpdesk_for = helped
helpdesk_may = status, unlock, pass, block
"""


def done(said):
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.mark.decisive
def test_a_block_on_one_host_holds_on_all_until_it_is_lifted(cast):
    one, _, three = cast.hosts
    secret, _, backup = one.enroll("alice")
    done(one.sallyport("block", "alice"))
    assert "blocked" in done(one.sallyport("status", "alice"))
    [listed] = json.loads(done(three.sallyport("list", "--fleet", "--blocked", "--json")))["users"]
    assert listed["user"] == "alice" and listed["place"] == "enrolled" and listed["blocked"]["since"]
    [code] = totp(secret, at=time.time() + 30)
    assert not any(host.enters("alice", typed) for host in cast.hosts for typed in (code, backup[0]))
    done(one.sallyport("block", "alice", "--undo"))
    assert three.enters("alice", backup[0]) and one.enters("alice", code), "a refused code is not used"
    whole = json.loads(done(three.sallyport("log", "alice", "--json")))
    assert [(act["act"], act["by"]) for act in whole["acts"] if act["via"] == "verifier"] == [
        (act, f"host({one.name})") for act in ("enroll", "block", "unblock")]
    told = json.loads(done(one.sallyport("log", "alice", "--json")))["logins"]
    assert [login["host"] for login in told if login["result"] == "accepted"] == [three.name, one.name]
    assert {login["host"] for login in told if login["reason"] == "blocked"} == {host.name for host in cast.hosts}
    assert cast.twice() == []


@pytest.mark.decisive
def test_a_pass_that_enrolls_replaces_the_phone_on_all_hosts_until_it_is_restored(cast):
    one, two, three = cast.hosts
    secret, _, backup = one.enroll("alice")
    given = json.loads(done(one.sallyport("pass", "alice", "--enroll", "--json")))["pass"]
    other, first, codes = one.enroll("alice", given)
    [old] = totp(secret, at=time.time() + 30)
    for host, typed in zip(cast.hosts, (old, backup[0], given)):
        assert not host.enters("alice", typed)
    assert not two.enters("alice", first), "it was used to enroll"
    assert three.enters("alice", codes[0])
    enrolled = time.time()
    # She is told of what comes after the second in which she enrolled.
    assert soon(lambda: time.time() > enrolled + 1, 5)
    done(one.sallyport("restore", "alice", "--yes"))
    [new] = totp(other, at=time.time() + 30)
    for host, typed in zip(cast.hosts, (new, codes[1], given)):
        assert not host.enters("alice", typed)
    [old] = totp(secret, at=time.time() + 30)
    told = done(two.machine.run(
        "pamtester", "-I", "rhost=192.0.2.9", "first", "alice", "authenticate", "acct_mgmt", input=f"{PASSWORD}\n{old}\n",
        check=False))
    assert "Since your last login:" in told and "what a pass had replaced was restored" in told, told
    assert cast.twice() == []


def with_a_helpdesk(host):
    """bob helps alice there."""
    host.stop()
    machine = host.machine
    groups = [line for line in machine.read("/etc/group").decode().splitlines() if not line.startswith("help")]
    machine.write("/etc/group", "\n".join([*groups, "helpers:x:4100:bob", "helped:x:4101:alice", ""]))
    machine.write("/etc/sudoers", "root ALL=(ALL:ALL) ALL\n", 0o440)
    machine.write("/etc/security/sallyport.conf", POLICY + DESK, 0o644)
    machine.write("/etc/pam.d/sallyport", "auth required pam_unix.so nodelay\naccount required pam_unix.so\n")
    host.service = machine.start(SERVICE, "--session-program", Path(SERVICE).with_name("sallyport-session"))
    assert soon(lambda: listens(machine.path("/run/sallyport/session")) and listens(machine.path("/run/sallyport/root")))


def as_bob(host, uid, code, *words):
    """The exit status, and what was shown."""
    child = Child([*host.machine.enter(), "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--reset-env",
                   host.command, *words], timeout=60)
    shown = ""
    while (seen := child.expect(["[Pp]assword: ?$", r"code to [^:]*: ?$", pexpect.EOF])) < 2:
        shown += child.before + child.after
        child.answer([PASSWORD, code][seen])
    child.wait()
    return child.exitstatus, shown + child.before


@pytest.mark.decisive
def test_a_helper_of_one_host_helps_her_on_all_of_them(cast):
    one, two, three = cast.hosts
    _, _, backup = one.enroll("alice")
    _, _, own = one.enroll("bob")
    codes = iter(own)
    with_a_helpdesk(one)
    status, shown = as_bob(one, 4001, "", "status")
    assert status == 0 and "phone" in shown, f"his own: {shown}"
    status, shown = as_bob(one, 4001, next(codes), "status", "alice")
    assert status == 0 and "phone" in shown, shown
    for _ in range(2):
        status, shown = as_bob(one, 4001, next(codes), "pass", "alice")
        assert status == 0 and "on all hosts of the fleet" in shown, shown
        [given] = re.findall(r"\bP[0-9A-Z]{3}(?:-[0-9A-Z]+)+\b", shown)
        assert two.enters("alice", given) and not three.enters("alice", given)
    status, shown = as_bob(one, 4001, next(codes), "pass", "alice")
    assert status == 1 and "two passes in seven days" in shown, shown
    status, shown = as_bob(one, 4001, next(codes), "block", "alice")
    assert status == 0, shown
    assert not any(host.enters("alice", backup[0]) for host in cast.hosts)
    assert "bob" in done(one.sallyport("status", "alice"))
    status, shown = as_bob(one, 4001, next(codes), "block", "alice", "--undo")
    assert status == 0 and three.enters("alice", backup[0]), shown
    done(one.sallyport("block", "alice"))
    status, shown = as_bob(one, 4001, next(codes), "block", "alice", "--undo")
    assert status == 77 and "root has blocked alice" in shown
    assert not two.enters("alice", backup[1])
