"""Hardware tokens: of a vendor's list, given to one person and then to the next, over the real sshd."""

import time

import pytest

from support.codes import totp
from support.sallyport import handed_out, sallyport

SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
AHEAD = 7 * 60


def shown(steps):
    """What a token shows whose clock is seven minutes ahead, that number of steps from now."""
    return totp(SECRET, 1, time.time() + AHEAD + 30 * steps, "sha1", 6, 30)[0]


def types(*words, typed=""):
    done = sallyport(*words, typed=typed)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


# shows: token-hands
@pytest.mark.decisive
def test_a_token_of_a_list_logs_in_and_its_used_code_is_nobodys(daemons, store, tmp_path):
    place = ["--store", store.directory]
    handed_out.append(SECRET)
    vendors = tmp_path / "list.csv"
    vendors.write_text(f"serial number,secret key,time interval\r\nFT-2600123,{SECRET},30\r\n")
    types("import", "csv", vendors, *place)
    codes = [shown(0), shown(1)]
    told = types("token", "assign", "FT-2600123", "alice", *place, typed="\n".join(codes) + "\n")
    assert "its clock is" in told and "ahead" in told, told
    host = daemons["keyboard-interactive"]
    used = shown(2)
    assert not host.enter("alice", codes[1])
    assert host.enter("alice", used)
    types("add", "alice", "--force", "--no-confirm", "--json", *place)
    types("token", "unassign", "FT-2600123", "--force", *place)
    assert not host.enter("alice", shown(3))
    # All that it may have shown is used, for bob as well; the codes after that are his.
    refused = sallyport("token", "assign", "FT-2600123", "bob", *place, typed=f"{codes[1]}\n{used}\n")
    assert refused.returncode == 1 and "used before" in refused.stdout, (refused.stdout, refused.stderr)
    types("token", "assign", "FT-2600123", "bob", *place, typed=f"{shown(9)}\n{shown(10)}\n")
    assert not host.enter("bob", used)
    assert host.enter("bob", shown(11))
