"""What the command takes among many users, and how fast they get in."""

import os
import shutil
import subprocess
import time
from statistics import median

from modules import users
from report import OURS
from support.sallyport import COMMAND


def timed(*arguments):
    begun = time.monotonic()
    subprocess.run([COMMAND, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def blocks(directory):
    """Bytes on disk of all below, directories included."""
    return sum(os.lstat(place).st_blocks * 512 for parent, _, files in os.walk(directory)
               for place in (parent, *(os.path.join(parent, file) for file in files)))


def command(ours, names):
    """Rows of what the command takes with this number of users."""
    label, largest = f"{len(names):,} users: ", len(names) == 100_000
    store = ("--store", ours.root)
    status = 1e3 * median(timed("status", "--user", names[-1], *store) for _ in range(9))
    listing = median(timed("list", *store) for _ in range(3))
    return [(f"{label}status of one, ms", {OURS: status}, "ours: < 20" if largest else ""),
            (f"{label}list, s", {OURS: listing}, "ours: < 2" if largest else ""),
            (f"{label}bytes on disk of each", {OURS: blocks(ours.root / "users") // len(names)})]


def importing(disk, oath, names):
    """A row of how fast the other module's file of this number of users, all new, gets into a store."""
    seconds = timed("import", "pam-oath", oath.root / "users.oath", "--allow-missing",
                    "--store", disk.place / "imported")
    made = len(os.listdir(disk.place / "imported" / "users"))
    assert made == len(names), f"{made} of {len(names)} users imported"
    return (f"{len(names):,} users: import pam-oath, users/s", {OURS: len(names) / seconds},
            "ours: >= 2000")


def enrolling(report, disk, count):
    store = disk.place / "enrolled"
    begun = time.monotonic()
    for user in users(count):
        timed("enroll", "--user", user, "--no-confirm", "--allow-missing", "--json",
              "--store", store)
    report.row("sallyport enroll --no-confirm, per second",
               {OURS: count / (time.monotonic() - begun)})


def measure(report, disk, modules, now, short):
    ours, oath = (next(module for module in modules if module.name == name)
                  for name in (OURS, "oath"))
    report.section("5. Handling users")
    counts = (1_000, 10_000) if short else (1_000, 10_000, 100_000)
    # Other sections leave as many users as they had.
    shutil.rmtree(ours.root, ignore_errors=True)
    for count in counts:
        names = users(count)
        ours.enroll(names, now)
        disk.settle()
        for row in command(ours, names):
            report.row(*row)
    oath.enroll(users(counts[-1]), now)
    report.row(*importing(disk, oath, users(counts[-1])))
    enrolling(report, disk, 50 if short else 400)
