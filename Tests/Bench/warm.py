"""A login in a host that has libcrypto already, as sshd has."""

import re
from collections import Counter
from statistics import median

import callgrind
from machine import SCRATCH, Hosts, attempt, play
from modules import PERIOD, code
from report import OURS, THEIRS, paired

USER = "user000000"
WARMING = 4  # logins before those that count


def lines(module, start, count):
    ats = [start + PERIOD * number for number in range(count)]
    return [attempt(module, USER, code(at), at) for at in ats]


def counts(directory, module, now, many=8):
    """Instructions of `many` logins, those before them taken away."""
    runs = []
    for count in (WARMING, WARMING + many):
        module.enroll([USER], now)
        runs.append(callgrind.logins(directory, lines(module, now, count), BENCH_WARM="1"))
    return runs[1] - runs[0], many


def instructions(report, directory, modules, now):
    whole, inside, alone = {}, {}, {}
    for module in modules:
        found, many = counts(directory, module, now)
        path = str(module.module)
        whole[module.name] = found.total // many
        alone[module.name] = found.objects[path] // many
        inside[module.name] = found.inclusive[path, "pam_sm_authenticate"] // many
    report.row("instructions, whole transaction", whole, "<= 1.00")
    report.row("  of these pam_sm_authenticate and below", inside)
    report.row("  of these in the module's own object", alone)


def system_calls(report, directory, modules, now, many=8):
    calls, flushes = {}, {}
    for module in modules:
        trace = SCRATCH / "strace"
        module.enroll([USER], now)
        play(directory, lines(module, now, WARMING + many), ["strace", "-f", "-o", trace],
             BENCH_WARM="1", BENCH_MARK="1")
        logins = re.findall(r'access\("/mark/begin".*?\n(.*?)\d+ +access\("/mark/end"',
                            trace.read_text(), re.DOTALL)[WARMING:]
        found = Counter(re.findall(r"^\d+ +(\w+)\(", "".join(logins), re.MULTILINE))
        calls[module.name] = found.total() / many
        flushes[module.name] = sum(n for name, n in found.items() if "sync" in name) / many
    report.row("system calls", calls)
    report.row("flushes asked for", flushes, "ours: 1")


def microseconds(report, directory, modules, now, rounds):
    for module in modules:
        module.enroll([USER], now)
    hosts = Hosts(directory, modules, BENCH_WARM="1")
    for number in range(rounds + WARMING):
        at = now + PERIOD * number
        for module in modules:
            hosts.login(module, USER, code(at), at)
    taken, processor = {}, {}
    for name, times in hosts.close().items():
        assert all(one.good for one in times), name
        taken[name] = [(one.end - one.begin) / 1e3 for one in times[WARMING:]]
        processor[name] = [one.processor / 1e3 for one in times[WARMING:]]
    report.row(f"microseconds, median of {rounds} in turn",
               {name: median(values) for name, values in taken.items()}, "<= 0.65",
               paired(taken[OURS], taken[THEIRS]))
    report.row("  of these on the processor",
               {name: median(values) for name, values in processor.items()}, "",
               paired(processor[OURS], processor[THEIRS]))


def bytes_written(report, disk, directory, modules, now, rounds):
    for module in modules:
        module.enroll([USER], now)
    hosts = Hosts(directory, modules, BENCH_WARM="1")
    found = {module.name: [] for module in modules}
    for number in range(rounds + 2):
        at = now + PERIOD * number
        for module in modules:
            disk.settle()
            before = disk.written()
            hosts.login(module, USER, code(at), at)
            answered = disk.written()
            disk.settle()
            after = disk.written()
            found[module.name].append((answered[0] - before[0], after[0] - before[0],
                                       answered[1] - before[1]))
    hosts.close()
    columns = {name: list(zip(*values[2:])) for name, values in found.items()}
    for what, column, target in (("bytes to the disk until the answer", 0, "ours: 4,096"),
                                 ("bytes to the disk in all", 1, ""),
                                 ("flushes of the disk until the answer", 2, "ours: 1")):
        report.row(what, {name: int(median(values[column])) for name, values in columns.items()},
                   target)


def measure(report, disk, directory, modules, now, short):
    report.section("1. A login, warm")
    instructions(report, directory, modules, now)
    microseconds(report, directory, modules, now, 200 if short else 2000)
    system_calls(report, directory, modules, now)
    bytes_written(report, disk, directory, modules, now, 8 if short else 40)
