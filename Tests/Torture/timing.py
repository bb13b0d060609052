"""The time to a refusal is the same for every state a user can be in; equal runs are the control.

The measuring is that of ring 3 (Tests/support/sameness.py), longer, and repeated where another
program disturbed it: a real difference is there every time.
"""

from support import sameness
from support.pam_driver import Driver
from record import when
from support.sallyport import Services, Store

TRIES = 4


def run(section, setting):
    if not setting.ours:
        return section.skip("the others treat strangers as their setting says")
    place = setting.place("timing")
    store, services = Store(place / "store"), Services(place / "pam.d")
    services.code("sshd", store, "nodelay")
    rounds = 300 if setting.short else 2000
    with Driver(services) as driver:
        now, states = sameness.furnish(driver, store)
        for attempt in range(1, TRIES + 1):
            found = sameness.medians(driver, store, now, states, rounds,
                                     setting.dice("timing", str(attempt)).random())
            difference, noise = sameness.spread(found)
            section.note(f"medians of {rounds} in µs, two equal runs each: {sameness.told(found)}")
            section.note(f"states differ by {difference:.1%}, equal runs by {noise:.1%}")
            if sameness.is_the_same(difference, noise):
                break
    tells = when(not sameness.is_the_same(difference, noise), "tells the state",
                 f"the states differ by {difference:.1%}, equal runs by {noise:.1%}")
    for state in states:
        section.case(state, tells)
