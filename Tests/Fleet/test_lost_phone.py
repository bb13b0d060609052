"""A person of the fleet whose phone is gone: on all hosts she is blocked, enrolls another by a pass, and root takes
that back.

test_a_block_on_one_host_holds_on_all_until_it_is_lifted
test_a_pass_that_enrolls_replaces_the_phone_on_all_hosts_until_it_is_restored
"""

import json
import time

import pytest
from support.codes import totp
from support.host import PASSWORD
from support.service import soon


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
