"""No memory: each allocation of a login fails once, and all from there on; small RLIMIT_AS.

Swift cannot take back a failed allocation: the host may end. It never succeeds for that, and never
leaves a damaged store.
"""

import os
import resource
from collections import Counter

from account_faults import Bed
from faults import DIED, Faulty, shut_out, twice
from support.pam_driver import AUTH_ERR, SUCCESS, Driver, HostDied, NotStarted
from record import when
from subjects import SERVICE, USER

NOMEM = f"{os.environ['SALLYPORT_BUILT']}/nomem.so"
STEP = 32 << 10  # bytes of address space between two limits


class Starved(Faulty):
    def play(self, answer, at, env=None, preexec=None):
        """The result; None where not even libpam or the loader came so far."""
        try:
            with Driver(self.services, env=env, preexec=preexec) as driver:
                driver.send(SERVICE, USER, answer, at=at, mark=1)
                return driver.verdict().result
        except NotStarted:
            return None
        except (HostDied, BrokenPipeError):
            return DIED

    def allocations(self):
        at, answer = self.answers.next()
        told = self.setting.scratch / "allocations"
        result = self.play(answer, at, {"LD_PRELOAD": NOMEM, "NOMEM_COUNT": str(told)})
        assert result == SUCCESS, result
        return int(told.read_text())

    def examine(self, section, what, env=None, preexec=None):
        at, answer = self.answers.next()
        first = self.play(answer, at, env, preexec)
        second, _ = self.again(answer, at)
        third, _ = self.again(answer, at)
        at, answer = self.answers.next()
        later, _ = self.again(answer, at)
        called_wrong = self.setting.ours and first == AUTH_ERR and second == SUCCESS
        damage = self.subject.fixed(self.answers, later == SUCCESS)
        section.case(f"{self.kind}, {what}: {first}", twice(first, second, third),
                     shut_out(second, later), when(damage, "damage", damage),
                     when(called_wrong, "a right code called wrong", "the log was not asked"))
        return first


def each_allocation(section, setting, starved):
    count = starved.allocations()
    places = range(1, count + 1)
    most = 150 if setting.short else 700
    if count > most:
        places = sorted(setting.dice("memory", starved.kind).sample(places, most))
    for word, more in (("once", {}), ("from there on", {"NOMEM_ON": "1"})):
        seen = Counter(
            starved.examine(section, f"allocation {place} fails {word}",
                            {"LD_PRELOAD": NOMEM, "NOMEM_AT": str(place)} | more)
            for place in places)
        section.note(f"{starved.kind}: {count} allocations, {len(places)} of them fail {word}: "
                     f"{dict(seen)}")


def each_limit(section, setting, starved):
    """From a limit under which the host cannot start to one that is enough."""
    seen, limit = Counter(), 2 << 20
    while limit < 64 << 20:
        def bound(limit=limit):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the loader's complaints
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        result = starved.examine(section, f"RLIMIT_AS {limit >> 10} kB", preexec=bound)
        seen[result] += 1
        if result == SUCCESS:
            break
        limit += STEP * (8 if setting.short else 1)
    assert SUCCESS in seen, "no limit was enough"
    section.note(f"{starved.kind}: RLIMIT_AS up to {limit >> 10} kB: {dict(seen)}")


def enrolling(section, setting, kind):
    """Each allocation of an account phase that enrolls, or completes an enrollment."""
    bed, told = Bed(setting, kind, "memory"), setting.scratch / "allocations"
    result, _, _ = bed.play(env={"LD_PRELOAD": NOMEM, "NOMEM_COUNT": str(told)})
    assert result == SUCCESS, result
    count = int(told.read_text())
    places = setting.dice("memory", kind).sample(
        range(1, count + 1), min(60 if setting.short else 300, count))
    for word, more in (("once", {}), ("from there on", {"NOMEM_ON": "1"})):
        seen = Counter(bed.starve(section, f"allocation {place} fails {word}",
                                  {"LD_PRELOAD": NOMEM, "NOMEM_AT": str(place)} | more)
                       for place in sorted(places))
        section.note(f"{kind}: {count} allocations, {len(places)} of them fail {word}: "
                     f"{dict(seen)}")
    bed.healthy.close()


def run(section, setting):
    for kind in setting.kind.kinds[:1] if setting.short else setting.kind.kinds:
        starved = Starved(setting, kind)
        each_allocation(section, setting, starved)
        each_limit(section, setting, starved)
        starved.finish(section)
    if setting.ours:
        enrolling(section, setting, "enrolling")
        enrolling(section, setting, "completing")
