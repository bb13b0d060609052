"""A login by a process made for it (pamtester), which has neither module nor libcrypto yet."""

import os
import re
import subprocess
import time
from pathlib import Path
from statistics import median

import callgrind
from machine import SCRATCH, attempt, play
from modules import code
from report import OURS, THEIRS, paired

USER = "user000000"


def prepare(modules):
    for module in modules:
        Path("/etc/pam.d", f"bench-{module.name}").write_text(
            f"auth {module.line()}\naccount required pam_permit.so\n")


def login(module, prefix=()):
    """One login with a fresh enrollment; milliseconds."""
    now = int(time.time())
    module.enroll([USER], now)
    command = [*map(str, prefix), "pamtester", f"bench-{module.name}", USER, "authenticate"]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    if module.prompt is not None:
        process.stdin.write(f"{code(now)}\n".encode())
        process.stdin.flush()
    process.wait()
    taken = time.monotonic() - begun
    process.stdin.close()
    assert process.returncode == 0, f"{module.name}: pamtester says {process.returncode}"
    return taken * 1e3


def libraries(path):
    dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
    return " ".join(re.findall(r"NEEDED.*\[lib([a-z]+)", dynamic))


def peak(directory, module, now):
    """The most memory that a host held which made one login and nothing else, in kB."""
    path = SCRATCH / "peak"
    module.enroll([USER], now)
    play(directory, [attempt(module, USER, code(now), now)], BENCH_PEAK=str(path))
    return int(path.read_text().split()[1])


def measure(report, directory, modules, now, short):
    report.section("2. A login, cold (pamtester)")
    prepare(modules)
    counted = {}
    for module in modules:
        path = SCRATCH / "callgrind"
        login(module, callgrind.command(path))
        counted[module.name] = callgrind.read(path).total
    report.row("instructions, whole process", counted)
    taken = {module.name: [] for module in modules}
    for _ in range(20 if short else 100):
        for module in modules:
            taken[module.name].append(login(module))
    report.row("milliseconds, whole process",
               {name: median(values) for name, values in taken.items()},
               ratio=paired(taken[OURS], taken[THEIRS]))
    report.row("  more than pam_permit, ms", {
        name: median(a - b for a, b in zip(values, taken["pam_permit"]))
        for name, values in taken.items() if name != "pam_permit"}, "ours: <= 2.0", ratio=False)
    report.row("peak memory of a host of one login, kB",
               {module.name: peak(directory, module, now) for module in modules})
    report.row("size of the module, bytes",
               {module.name: os.path.getsize(module.module) for module in modules})
    report.row("libraries it names",
               {module.name: libraries(module.module) for module in modules})
