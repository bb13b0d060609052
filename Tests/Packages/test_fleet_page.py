"""The commands of docs/fleet.md, typed on two clean machines as they stand there, lead to a fleet.

test_at_most_ten_commands_of_the_page_lead_to_the_first_login_of_a_fleet
"""

import pytest

import fleet_journey
import journey
from clean import extended
from conftest import clean_debian
from support import fleet


@pytest.fixture
def machines(tmp_path):
    clean = clean_debian(lambda: extended(journey.CLEAN, journey.INCLUDED, "fleet", "libpq5"))
    if fleet.programs() is None:
        pytest.skip("postgresql is not installed: no database of a fleet")
    with fleet_journey.Fleet(clean, tmp_path) as made:
        yield made


def test_at_most_ten_commands_of_the_page_lead_to_the_first_login_of_a_fleet(machines):
    assert machines.set_up() <= 10
    host = machines.web1
    status = host.type("sallyport fleet status")
    assert "All of them verify codes." in status, status
    enrolled = host.type("ssh alice@localhost")
    assert "alice@web1:~$" in enrolled and "Backup codes" in enrolled, enrolled
    entered = host.type("ssh alice@localhost")
    assert "alice@web1:~$" in entered, entered
    used = host.codes[-1]
    again = host.type("ssh -o NumberOfPasswordPrompts=1 alice@localhost", code=used)
    assert "alice@web1:~$" not in again, again
    accepted = "SELECT encode(name, 'escape'), host FROM event WHERE outcome = 'accepted'"
    assert machines.pair.primary.sql(accepted, "sallyport") == [["alice", "web1"]]
    assert not (host.root / "var/lib/sallyport/users/alice").exists(), "no secret of hers is there"
