"""Whatever a machine is made of, doctor's forecast of who gets in is what real logins show."""

import json

import pytest

import planting
from comparing import facts, faults, told
from drawing import COUNT, SEED, drawn
from forecast import doctor, forecast
from ground import Daemon
from ways import Ways


@pytest.fixture(scope="session")
def machines():
    return drawn(SEED, COUNT)[0]


@pytest.fixture
def noted(record_property):
    """Notes a fact for the total of the run."""
    return lambda kind, value: record_property(kind, json.dumps(value))


@pytest.mark.first
@pytest.mark.decisive
@pytest.mark.parametrize("number", range(COUNT), ids=lambda number: f"machine{number}")
def test_the_forecast_of_a_machine_is_what_its_logins_show(
        ground, polkit, machines, noted, number):
    machine = machines[number]
    enrollments = ground.become(machine)
    said = doctor()
    daemon = Daemon(ground)
    try:
        ways = Ways(ground, machine, enrollments, daemon, polkit)
        real = list(ways.cells())
        left_out = {(name, way) for name, way, _ in ways.left_out}
    finally:
        daemon.stop()
    ground.renew_store()
    expected = forecast(said, [(cell.account, cell.way) for cell in real])
    found = list(faults(real, expected, left_out, machine))
    noted("machine", facts(real, expected, found))
    assert not found, told(machine, found)
    if planting.COMMAND:
        # Only where the forecast is right: a fault is found as a cell that becomes wrong.
        mutant = planting.Mutant()
        for number in planting.NUMBERS:
            noted("fault", [["mutant", number], mutant.found(machine, real, number)])
