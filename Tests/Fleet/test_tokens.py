"""A hardware token of a list, given to a person of the fleet and then to another one.

test_a_token_logs_in_on_all_hosts_and_is_taken_back_by_what_the_fleet_says
"""

import time

import pytest
from support.codes import totp
from support.machines import together

SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
SERIAL = "FT-2600123"


def shown(steps):
    """What the token shows that number of steps from now."""
    return totp(SECRET, 1, time.time() + 30 * steps, "sha1", 6, 30)[0]


def done(said):
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def assigned(host, name, *codes):
    return host.sallyport("token", "assign", SERIAL, name, input="".join(f"{code}\n" for code in codes))


@pytest.mark.decisive
def test_a_token_logs_in_on_all_hosts_and_is_taken_back_by_what_the_fleet_says(cast):
    one, two, three = cast.hosts
    one.machine.write("/root/list.csv", f"serial number,secret key,time interval\n{SERIAL},{SECRET},30\n", 0o600)
    done(one.sallyport("import", "csv", "/root/list.csv"))
    done(assigned(one, "alice", shown(0)))
    used = shown(1)
    assert two.enters("alice", used)
    assert not three.enters("alice", used) and not one.enters("alice", used)
    # The files of this host know of no alice, and are not asked.
    other = one.sallyport("token", "unassign", SERIAL, "--force", "--store", "/var/lib/sallyport")
    assert other.returncode == 1 and "the fleet verifies" in other.stderr, other.stdout + other.stderr
    last = one.sallyport("token", "unassign", SERIAL, "--force")
    assert last.returncode == 1 and "last authenticator" in last.stderr, last.stdout + last.stderr
    # Who cannot ask changes nothing: she may have it still.
    for verifier in cast.verifiers:
        verifier.stop()
    away = one.sallyport("token", "unassign", SERIAL, "--force")
    assert away.returncode != 0 and "alice" in done(one.sallyport("token", "list")), away.stdout + away.stderr
    # Who was stopped first waits for the other.
    together(*[verifier.start for verifier in cast.verifiers])
    assert SERIAL in done(one.sallyport("unenroll", "alice", "--force"))
    assert "did not have it" in done(one.sallyport("token", "unassign", SERIAL))
    again = assigned(one, "bob", used, shown(2))
    assert again.returncode == 1 and "or used before" in again.stdout, again.stdout + again.stderr
    done(assigned(one, "bob", shown(12), shown(13)))
    assert not two.enters("bob", used) and not two.enters("alice", shown(14))
    assert three.enters("bob", shown(14))
    assert cast.twice() == []
