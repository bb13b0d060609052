"""Instruction counts: runs a program under callgrind and reads the file it leaves."""

import re
from collections import Counter
from dataclasses import dataclass, field

from machine import SCRATCH, play

LOGIN = ["pam_start_confdir", "pam_authenticate", "pam_end"]
NAME = re.compile(r"(c?(?:ob|fn))=\((\d+)\)(?: (.*))?")


@dataclass
class Counts:
    """Instructions: all, by object, by (object, function), and with what they call."""

    total: int = 0
    objects: Counter = field(default_factory=Counter)
    functions: Counter = field(default_factory=Counter)
    inclusive: Counter = field(default_factory=Counter)  # of calls from other objects
    below: Counter = field(default_factory=Counter)  # of all calls; recursion counts twice
    calls: Counter = field(default_factory=Counter)

    def __sub__(self, other):
        """The difference of two runs: the counts are exact, so what both did falls out."""
        kept = Counts(self.total - other.total)
        for part in ("objects", "functions", "inclusive", "below", "calls"):
            mine = Counter(getattr(self, part))
            mine.subtract(getattr(other, part))
            setattr(kept, part, mine)
        return kept


def read(path):
    """Reads callgrind's format, names compressed, one event (Ir)."""
    names, counts = {}, Counts()
    here = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    called = 0
    for line in open(path, encoding="utf-8", errors="replace"):
        match = NAME.match(line)
        if match:
            kind = match[1][-2:]
            if match[3]:
                names[kind, match[2]] = match[3].strip()
            here[match[1]] = names[kind, match[2]]
        elif line.startswith("calls="):
            called = int(line[6:].split()[0])
        elif line[0].isdigit() or line[0] in "+-*":
            cost = int(line.split()[1])
            if called:
                target = here["cob"] or here["ob"]
                if target != here["ob"]:
                    counts.inclusive[target, here["cfn"]] += cost
                counts.below[target, here["cfn"]] += cost
                counts.calls[target, here["cfn"]] += called
                called, here["cob"] = 0, ""
            else:
                counts.total += cost
                counts.objects[here["ob"]] += cost
                counts.functions[here["ob"], here["fn"]] += cost
    return counts


def command(path, *within):
    return ["valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={path}",
            *[f"--toggle-collect={name}" for name in within]]


def logins(directory, lines, **more):
    """Counts of the whole transactions of these attempts, and of nothing else."""
    path = SCRATCH / "callgrind"
    play(directory, lines, prefix=command(path, *LOGIN), **more)
    return read(path)
