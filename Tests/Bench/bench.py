"""Runs all sections on the private machine; started by `run`. Nothing here can fail for slowness."""

import os
import platform
import sys
import time

import chart
import cold
import costs
import felt
import fleets
import guessing
import handling
import scale
import through
import warm
from machine import BUILT, SCRATCH, Disk, services
from modules import BASE32, PERIOD, code, contestants
from report import Report
from support.codes import totp
from support.logsink import LogSink


def about(short):
    packages = os.environ["BENCH_PACKAGES"].split()  # the private machine has no list of them
    return {"mode": "short" if short else "long", "processors": os.cpu_count(),
            "load at the start": os.getloadavg()[0], "kernel": platform.release(),
            "packages": dict(zip(packages[::2], packages[1::2]))}


def check_codes(now):
    """Our shortcut for codes says what an independent program says."""
    assert totp(BASE32, at=now) == [code(now)]


def main(wanted):
    short = os.environ.get("SHORT", "") not in ("", "0")
    now = (int(time.time()) // PERIOD + 1) * PERIOD
    check_codes(now)
    report, sink = Report(about(short)), LogSink()
    disk = Disk(2 if short else 8)
    try:
        modules = contestants(disk.place)
        made = services(SCRATCH / "pam.d", modules)
        felt.prepare()
        sections = {
            "warm": lambda: warm.measure(report, disk, made.directory, modules, now, short),
            "cold": lambda: cold.measure(report, made.directory, modules, now, short),
            "felt": lambda: felt.measure(report, modules, short),
            "scale": lambda: scale.measure(report, disk, made, modules, now, short),
            "handling": lambda: handling.measure(report, disk, modules, now, short),
            "guessing": lambda: guessing.measure(report, sink, now),
            "through": lambda: through.measure(report, disk, short),
            "fleet": lambda: fleets.measure(report, disk, short)}
        if "profile" in wanted:
            return costs.measure(made.directory, modules[0], now)
        for name, section in sections.items():
            if not wanted or name in wanted:
                section()
    finally:
        disk.close()
    report.about["load at the end"] = os.getloadavg()[0]
    report.write(BUILT)
    (BUILT / "chart.svg").write_text(chart.draw(report))
    print(f"\nalso in {BUILT}: result.json, tables.md, chart.svg")


main(sys.argv[1:])
