"""Many logins at once among many users: every one of them right, and durable when it succeeds."""

import subprocess
from collections import Counter
from statistics import median
from typing import NamedTuple

from machine import DRIVER, SCRATCH, attempt, environment, read_times
from modules import PERIOD, code, users
from support.pam_driver import SUCCESS, Barrier, Crowd
from report import OURS, THEIRS, percentile

PROCESSES = (1, 2, 8, 32)
USER = "user000000"


class Visits:
    """Gives each login of a user the next time step, so that every code is right and unused."""

    def __init__(self, now):
        self._now, self._seen = now, Counter()

    def next(self, user):
        self._seen[user] += 1
        return self._now + PERIOD * self._seen[user]


def play_at_once(directory, scripts):
    """Plays one script in each of a number of warm hosts, from one instant on; their times."""
    barrier, processes = Barrier(), []
    for number, script in enumerate(scripts):
        path, times = SCRATCH / f"script-{number}", SCRATCH / f"times-{number}"
        path.write_text("".join(script))
        times.unlink(missing_ok=True)
        with path.open() as file:
            processes.append(subprocess.Popen(
                [DRIVER, directory], stdin=file, stdout=subprocess.DEVNULL,
                pass_fds=[barrier.reader],
                env=environment(times, BENCH_WARM="1", BENCH_GATE=str(barrier.reader))))
    barrier.release(len(processes))
    assert all(process.wait() == 0 for process in processes)
    barrier.close()
    return [read_times(SCRATCH / f"times-{number}") for number in range(len(scripts))]


class Burst(NamedTuple):
    rate: float  # good logins per second
    taken: list  # milliseconds of each of them
    processor: list  # and milliseconds on the processor
    played: int
    refused: int
    twice: int


def burst(directory, module, names, visits, processes, count):
    """One measurement, in which each process plays its part of `count` right logins."""
    scripts, played = [], []
    for number in range(processes):
        own = names[number::processes]  # nobody logs in at two places at once
        logins = []
        for turn in range(count // processes):
            user = own[turn * 7919 % len(own)]
            at = visits.next(user)
            logins.append(attempt(module, user, code(at), at))
        scripts.append(logins)
    found = play_at_once(directory, scripts)
    begin, end = min(times[0].begin for times in found), max(times[-1].end for times in found)
    good = [one for times in found for one in times if one.good]
    for script, times in zip(scripts, found):
        played += list({line.split()[1]: line for line, one in zip(script, times)
                        if one.good}.values())[-8:]  # each user's last, at its own time
    again = play_at_once(directory, [played])[0] if played else []
    return Burst(len(good) / (end - begin) * 1e9, [(one.end - one.begin) / 1e6 for one in good],
                 [one.processor / 1e6 for one in good], sum(map(len, found)),
                 sum(map(len, found)) - len(good), sum(one.good for one in again))


def race(services, module, now, rounds, processes=8):
    """One user, one code, a number of processes: (rounds in which nobody got in, logins too many)."""
    nobody = too_many = 0
    module.enroll([USER], now)
    with Crowd(services, processes) as crowd:
        for number in range(rounds):
            at = now + PERIOD * (number + 1)
            one = ((module.name, USER, code(at)), {"at": at})
            won = sum(login.result == SUCCESS for login in crowd.race([one] * processes))
            nobody += won == 0
            too_many += max(0, won - 1)
    return nobody, too_many


def logins(report, directory, modules, names, now, count, repeats):
    visits = {module.name: Visits(now) for module in modules}
    for processes in PROCESSES if len(names) > 1 else (1,):
        found = {module.name: [] for module in modules}
        for _ in range(repeats):
            for module in modules:
                # oath copies the file of all users at each login
                many = max(4 * processes, count * 200 // (200 + len(names))) \
                    if module.name == "oath" else count
                found[module.name].append(burst(
                    directory, module, names, visits[module.name], processes, many))
        label = f"{len(names):,} users, {processes} processes: "
        rates = {name: median(run.rate for run in runs) for name, runs in found.items()}
        ratio = median(a.rate / b.rate for a, b in zip(found[OURS], found[THEIRS]))
        report.row(f"{label}logins/s", rates, ">= 2.00" if processes == 8 else "", ratio)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            report.row(f"  {name}, ms", {
                module: percentile([ms for run in runs for ms in run.taken], share)
                for module, runs in found.items()}, "< 1" if name == "p99" else "")
        report.row("  on the processor, ms", {
            name: percentile([ms for run in runs for ms in run.processor], 0.5)
            for name, runs in found.items()})
        report.row("  refused right codes", {
            name: f"{sum(run.refused for run in runs)} of {sum(run.played for run in runs)}"
            for name, runs in found.items()}, "ours: 0")
        report.row("  codes good a second time", {
            name: f"{sum(run.twice for run in runs)}" for name, runs in found.items()}, "ours: 0")


def measure(report, disk, services, modules, now, short):
    rivals = [module for module in modules if module.name != "pam_permit"]
    report.section("4. Many at once")
    rounds = 25 if short else 200
    raced = {module.name: race(services, module, now, rounds) for module in rivals}
    report.row(f"1 code, 8 processes, {rounds} times: nobody in",
               {name: f"{nobody}" for name, (nobody, _) in raced.items()}, "ours: 0")
    report.row("  logins too many",
               {name: f"{too_many}" for name, (_, too_many) in raced.items()}, "ours: 0")
    rates = {}
    for count in (1, 1_000, 10_000) if short else (1, 1_000, 10_000, 100_000):
        names = users(count)
        for module in rivals:
            module.enroll(names, now)
        disk.settle()
        logins(report, services.directory, rivals, names, now, 800 if short else 2000,
               2 if short else 3)
        if count > 1:
            rates[count] = report.find("4.", f"{count:,} users, 8 processes: logins/s")["values"]
    most = max(rates)
    report.row(f"logins/s of {most:,} users to those of 1,000",
               {name: rates[most][name] / rates[1_000][name] for name in rates[most]},
               "ours: 0.9 to 1.1", ratio=False)
