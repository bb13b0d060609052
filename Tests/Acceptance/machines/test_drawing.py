"""The machines that are drawn: the same from the same seed, and with the pairs that matter."""

from dimensions import HIDING, MACHINE, PERSON
from drawing import drawn
from files import policy, services, sshd_config, sudoers
from support.hosts import DEBIAN


def test_a_seed_draws_the_same_machines_again():
    assert drawn(7, 4) == drawn(7, 4)
    assert drawn(7, 4)[0] != drawn(8, 4)[0]


def test_a_longer_run_begins_with_the_machines_of_a_shorter_one():
    assert drawn(7, 6)[0][:4] == drawn(7, 4)[0]


def test_few_machines_have_every_value_and_more_have_most_pairs():
    machines, _ = drawn(1, 40)
    values = {item for machine in machines for person in machine.people
              for item in (*machine.values, *person.values)}
    everything = MACHINE | PERSON
    assert values >= {(name, value) for name in everything for value in everything[name]} - HIDING
    assert drawn(1, 96)[1] > 0.7


def test_nobody_has_two_things_that_hide_the_rest_too_often():
    machines, _ = drawn(1, 24)
    people = [person for machine in machines for person in machine.people]
    twice = [person for person in people if len(HIDING.intersection(person.values)) > 1]
    assert len(twice) * 10 < len(people)


def test_every_machine_has_files():
    debian = {name: text.decode() for name, text in DEBIAN.items()}
    for machine in drawn(3, 12)[0]:
        made = services(machine, debian)
        assert {"sshd", "sudo", "sudo-i", "su", "su-l", "login", "common-auth"} <= set(made)
        assert "UsePAM" in sshd_config(machine, "/keys") and "root ALL" in sudoers(machine)
        assert policy(machine) is None or policy(machine).startswith("[")


def test_a_machine_seen_blindly_differs_in_that_dimension_alone():
    machine = drawn(5, 3)[0][2]
    for name in (*MACHINE, *PERSON):
        seen = machine.blind_to(name)
        assert of(seen, name) == {(MACHINE | PERSON)[name][0]}
        others = [other for other in (*MACHINE, *PERSON) if other != name]
        assert all(of(seen, other) == of(machine, other) for other in others)


def of(machine, dimension):
    """The values that a machine or its people have there."""
    if dimension in MACHINE:
        return {machine[dimension]}
    return {person[dimension] for person in machine.people}
