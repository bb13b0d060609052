"""Real cells beside those of a forecast, and what is said of the differences."""

import collections
import re
from dataclasses import dataclass
from pathlib import Path

from dimensions import NAMES, ON_PURPOSE
from forecast import MOST_UNSEEN, UNSEEN
from reasons import expected
from ways import CALLED, OPEN, REFUSED, WAYS, Connection

WRONG, MISSING, UNSEEN_BADLY, INVENTED = "wrong", "missing", "unseen for no reason", "invented"
WHY, PURPOSE = "for another reason", "on purpose or not"
SERVICE = {"sudo -i": "sudo-i", "sudo -u web": "sudo", "sudo -i -u web": "sudo-i",
           "sudo NAMED": "sudo", "su -": "su-l", "pkexec": "polkit-1"}


def service_of(way):
    return "sshd" if Connection.of(way) else SERVICE.get(way, way)


@dataclass(frozen=True)
class Fault:
    """A cell that the forecast has wrong. `real` is None where no such cell exists."""

    kind: str
    account: str
    way: str
    real: object
    forecast: object

    def __str__(self):
        evidence = f"\n{self.real.evidence()}" if self.real else ""
        return f"{self.short}{evidence}"

    @property
    def short(self):
        said = "nothing" if self.forecast is None else (
            f"{self.forecast.result} ({self.forecast.why}; {self.forecast.line or 'no line'})")
        done = "there is no such way" if self.real is None else (
            f"{self.real.result} ({self.real.why})")
        return f"{self.kind}: {self.account} by {self.way}\n  said: {said}\n  real: {done}"


def faults(real, forecast, left_out=(), machine=None):
    """`real`: Cells; `forecast`: {(account, way): Forecast}; `left_out`: what nobody can try.
    `machine`: what it is made of, where reasons are compared too."""
    known = {(cell.account, cell.way): cell for cell in real}
    for key, cell in known.items():
        said = forecast.get(key)
        if said is None:
            # Who has nothing to get in by has no row.
            if cell.result != REFUSED or cell.account in {account for account, _ in forecast}:
                yield Fault(MISSING, *key, cell, None)
        elif said.result == UNSEEN:
            if not said.is_unseen_for_a_reason:
                yield Fault(UNSEEN_BADLY, *key, cell, said)
        elif not said.agrees(cell.result):
            yield Fault(WRONG, *key, cell, said)
        elif machine is not None and not said.is_bound:
            yield from faults_of_the_reason(machine, cell, said)
    services = {service_of(way) for _, way in known}
    for key, said in forecast.items():
        # Of a way that is not there it is true that nobody gets in.
        if said.result != REFUSED and key not in known and key not in left_out and could_be_tried(
                *key, services):
            yield Fault(INVENTED, *key, None, said)


def faults_of_the_reason(machine, cell, said):
    key = cell.account, cell.way
    wanted = expected(machine, cell)
    if wanted and said.why not in wanted:
        yield Fault(WHY, *key, cell, said)
    family = service_of(cell.way).removesuffix("-i")
    means_it = machine["policy"] == "on purpose" and (cell.account, family) in ON_PURPOSE
    if (said.on_purpose is not None) != (means_it and cell.result == OPEN):
        yield Fault(PURPOSE, *key, cell, said)


def could_be_tried(account, way, services):
    """A forecast has more people than are tried here (the machine's own); root needs no sudo."""
    if account not in (*NAMES, "root") or account == "root" and way in CALLED:
        return False
    return (Connection.of(way) or way in WAYS) and service_of(way) in services


# MARK: what is shown


def files_of(fault):
    """The files of the machine that decide this cell; they are gone with the next machine."""
    service = service_of(fault.way)
    paths = [Path("/etc/pam.d", service), Path("/etc/security/sallyport.conf")]
    paths += [Path("/etc/ssh/sshd_config")] if service == "sshd" else []
    paths += [Path("/etc/sudoers")] if service.startswith("sudo") else []
    text = [f"--- {path}\n{without_comments(path)}" for path in paths if path.exists()]
    for name in ("passwd", "shadow", "group"):
        lines = re.findall(rf"(?m)^.*\b{re.escape(fault.account)}\b.*$",
                           Path("/etc", name).read_text())
        text.append(f"--- /etc/{name}\n" + "\n".join(lines))
    return "\n".join(text)


def without_comments(path):
    return "\n".join(line for line in path.read_text().splitlines()
                     if line.strip() and not line.startswith("#"))


def told(machine, found, most=5):
    """All that is needed to see it again: the seed, the machine, each cell, its files."""
    lines = [f"{len(found)} cells are wrong on {machine}",
             f"again: SEED={machine.seed} Tests/Acceptance/machines/run "
             f"-k machine{machine.number}]"]
    # What is wrong before what is missing.
    found = sorted(found, key=lambda fault: fault.kind == MISSING)
    for fault in found[:most]:
        lines += [str(fault), files_of(fault)]
    return "\n".join([*lines, *(fault.short for fault in found[most:])])


class Total:
    """Of all machines of a run: how many cells of each way and result, how many unseen."""

    def __init__(self):
        self.cells = collections.Counter()
        self.machines = self.wrong = 0
        self.reasons = collections.Counter()  # of what is unseen

    def add(self, facts):
        self.machines += 1
        self.wrong += facts["wrong"]
        self.reasons.update(facts["unseen"])
        self.cells.update({tuple(key): count for key, count in facts["cells"]})

    @property
    def count(self):
        return sum(self.cells.values())

    @property
    def unseen(self):
        return sum(self.reasons.values())

    def lines(self):
        ways = sorted({way for way, _ in self.cells})
        results = sorted({result for _, result in self.cells})
        yield f"{'way':36}" + "".join(f"{result:>14}" for result in results)
        for way in ways:
            counts = (self.cells[way, result] for result in results)
            yield f"{way:36}" + "".join(f"{count:14}" for count in counts)
        yield (f"{self.machines} machines, {self.count} cells, {self.wrong} wrong, "
               f"{self.unseen} unseen {dict(self.reasons) or ''}".rstrip())

    def complaints(self, whole):
        """What is too little or too much of a run; of a part only the unseen count."""
        if self.unseen > MOST_UNSEEN * self.count:
            yield f"{self.unseen} of {self.count} cells are unseen: more than {MOST_UNSEEN:.0%}"
        if whole and (self.machines < 60 or self.count < 1000):
            yield f"{self.machines} machines and {self.count} cells: wanted 60 and 1000"


def facts(real, forecast, found):
    """Of one machine, for the total."""
    counted = collections.Counter((cell.way, cell.result) for cell in real)
    said = [forecast.get((cell.account, cell.way)) for cell in real]
    unseen = collections.Counter(one.why for one in said if one and one.result == UNSEEN)
    return {"cells": sorted((list(key), count) for key, count in counted.items()),
            "wrong": len(found), "unseen": unseen}
