"""What the service costs: a login that asks it, beside one that reads the files, in turn."""

import os
import resource
import subprocess
from pathlib import Path
from statistics import median

from support.codes import hotp
from support.hosts import as_user, service
from support.pam_driver import Driver
from support.sallyport import DEFAULT_STORE, MODULE, Services, Store
from support.service import ROOT, Service
from felt import USER, converse
from machine import SCRATCH
from report import OURS

UID = 3001
WARMING = 4


def on_disk(disk):
    """The usual store lies on the disk that is measured."""
    place = Path(disk.place, "service")
    place.mkdir(mode=0o700)
    DEFAULT_STORE.mkdir(mode=0o700, parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", place, DEFAULT_STORE], check=True)
    return Store(DEFAULT_STORE)


def started_by_user():
    """As su is: root's, but started by somebody else."""
    os.setresuid(UID, 0, 0)


def round_trips(report, store, rounds):
    """Microseconds from the answer to the verdict; codes that count, because a service has its own
    clock."""
    services = Services(SCRATCH / "pam.service")
    services.code("login", None, "nodelay")
    taken = {"files": [], "service": []}
    enrollment = store.enroll(USER, type="hotp", allow_missing=False)
    codes = iter(hotp(enrollment.secret, 2 * (rounds + WARMING), 0))
    with Driver(services) as files, Driver(services, preexec=started_by_user) as asking:
        for _ in range(rounds + WARMING):
            for name, driver in (("files", files), ("service", asking)):
                login = driver.login("login", USER, next(codes))
                assert login.result == "PAM_SUCCESS", name
                taken[name].append(login.seconds * 1e6)
    files, asked = (taken[name][WARMING:] for name in ("files", "service"))
    report.row(f"by files, microseconds, median of {rounds}", {OURS: median(files)})
    report.row("through the service, microseconds", {OURS: median(asked)})
    report.row("  to by files", {OURS: median(a / b for a, b in zip(asked, files))})


def on_processor(process):
    """Milliseconds that this process's children, and all threads of the service, have had."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    service_has = sum(int(file.read_text().split()[0]) for file in threads) / 1e6
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (mine.ru_utime + mine.ru_stime) * 1e3 + service_has


def sudo(store, line, process):
    """Milliseconds of a whole sudo, and those that it and the service were on a processor."""
    service("sudo", "required pam_unix.so nodelay", line)
    enrollment = store.enroll(USER, type="hotp", allow_missing=False)
    before = on_processor(process)
    command = as_user(USER, "sudo", "-k", "/bin/sh", "-c", "echo IN-$((6*7))")
    taken = converse(command, enrollment.code())
    return taken, on_processor(process) - before


def cold(report, store, rounds, process):
    """In turn with a service and without one: its socket is put away, since a service that has just
    started is not what a login finds."""
    away = ROOT.with_name("away")
    ours = f"required {MODULE} nodelay"
    found = {"permit": [], "files": [], "service": []}
    for _ in range(rounds):
        found["permit"].append(sudo(store, "required pam_permit.so", process))
        found["service"].append(sudo(store, ours, process))
        ROOT.rename(away)
        found["files"].append(sudo(store, ours, process))
        away.rename(ROOT)
    for place, what in ((0, "milliseconds"), (1, "ms on a processor")):
        values = {name: [one[place] for one in all] for name, all in found.items()}
        more = {name: median(a - b for a, b in zip(values[name], values["permit"]))
                for name in ("files", "service")}
        report.row(f"sudo by files, more than pam_permit, {what}", {OURS: more["files"]})
        report.row(f"sudo through the service, {what}", {OURS: more["service"]})
        if more["files"] > 0:
            report.row("  to by files", {OURS: more["service"] / more["files"]},
                       "ours: <= 0.65" if place == 0 else "")


def measure(report, disk, short):
    report.section("7. Through the service (su and sudo, where it is there)")
    store = on_disk(disk)
    try:
        with Service() as running:
            round_trips(report, store, 100 if short else 1000)
            cold(report, store, 12 if short else 60, running.process)
    finally:
        subprocess.run(["umount", DEFAULT_STORE], check=True)
