"""Runs the sections on the private machine; started by `run`."""

import os
import random
import sys
import time
from pathlib import Path

import account_faults
import faults
import guests
import memory
import power
import races
import service
import timing
import torn
import verbs
from support.logsink import LogSink
from record import Record
from subjects import SUBJECTS

RESULTS = Path(os.environ["SALLYPORT_REPOSITORY"], ".build/torture")
SECTIONS = {
    "faults": ("a fault at every system call of a login", faults.run),
    "account": ("a fault at every system call of an account phase", account_faults.run),
    "verbs": ("a fault at every system call of a command", verbs.run),
    "memory": ("no memory: each allocation, each limit", memory.run),
    "power": ("power cuts on ext4, xfs and btrfs", power.run),
    "torn": ("torn and destroyed records", torn.run),
    "races": ("many at once, managed meanwhile", races.run),
    "guest": ("the host is left as it was", guests.run),
    "service": ("the service killed, without room, and among thousands", service.run),
    "timing": ("the time to a refusal tells nothing", timing.run),
}


class Setting:
    """What every section gets."""

    def __init__(self, kind, seed, short, sink):
        self.kind, self.seed, self.short, self.sink = kind, seed, short, sink
        self.scratch = Path("/tmp/torture")
        self.scratch.mkdir()

    @property
    def ours(self):
        return self.kind is SUBJECTS["sallyport"]

    def dice(self, *words):
        return random.Random(f"{self.seed} {' '.join(words)}")

    def place(self, name):
        """An empty directory on a tmpfs."""
        directory = self.scratch / name
        directory.mkdir()
        return directory


def main(wanted):
    unknown = set(wanted) - set(SECTIONS)
    if unknown:
        print(f"no such section: {' '.join(sorted(unknown))}", file=sys.stderr)
        return 64
    short = os.environ.get("SHORT", "") not in ("", "0")
    seed = int(os.environ.get("SEED") or time.time())
    kind = SUBJECTS[os.environ.get("MODULE") or "sallyport"]
    setting = Setting(kind, seed, short, LogSink())
    record = Record(kind.name, seed, short)
    print(f"testing {kind.name}, SEED={seed}{' SHORT=1' if short else ''}", flush=True)
    for name, (title, body) in SECTIONS.items():
        if not wanted or name in wanted:
            record.run(name, title, lambda section: body(section, setting))
    record.table()
    record.write(RESULTS / f"{kind.name}.json")
    return 0 if record.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
