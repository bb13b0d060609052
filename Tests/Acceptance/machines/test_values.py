"""A forecast that overlooks a value of a dimension is found, for each value that can decide."""

import json

import pytest

from comparing import faults, told
from forecast import UNSEEN, doctor, forecast
from ground import Daemon
from planting import deciding, values
from ways import Ways

TRIED = 2  # logins, of those of which the two forecasts do not say the same


@pytest.mark.decisive
@pytest.mark.parametrize("dimension, value", values(), ids=": ".join)
def test_a_forecast_that_overlooks_a_value_is_found(
        ground, polkit, record_property, dimension, value):
    if dimension == "stack of polkit-1" and polkit is None:
        pytest.skip("polkit is not installed: nobody can try pkexec")
    machine = deciding(dimension, value)
    ground.become(machine.blind_to(dimension))
    said_of_plain = doctor()
    enrollments = ground.become(machine)
    daemon = Daemon(ground)
    try:
        ways = Ways(ground, machine, enrollments, daemon, polkit)
        keys = [(person.name, way) for person in machine.people for way in ways.names(person)]
        right, blind = forecast(doctor(), keys), forecast(said_of_plain, keys)
        decided = [key for key in keys if key in right and right[key].result != UNSEEN
                   and (key not in blind or not blind[key].agrees(right[key].result))]
        assert decided, f"no login depends on it on {machine}"
        real = [ways.cell(machine.person(name), way) for name, way in decided[:TRIED]]
    finally:
        daemon.stop()
        ground.renew_store()
    wrong = list(faults(real, only(right, real), machine=machine))
    assert not wrong, told(machine, wrong)
    assert any(faults(real, only(blind, real))), f"the fault is not found on {machine}"
    record_property("fault", json.dumps([[dimension, value], True]))


def only(said, real):
    """What a forecast says of the logins that were tried."""
    keys = {(cell.account, cell.way) for cell in real}
    return {key: one for key, one in said.items() if key in keys}
