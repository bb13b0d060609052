"""Which system calls of a program touch a store, and a fault that is injected at one."""

import re


def steps(report, directory, calls):
    """[(call, how many-th of that name)] of those among `calls` that name the directory in a report of
    `strace -y`."""
    counts, found = {}, []
    for line in report.read_text().splitlines():
        if call := re.match(r"(\w+)\(", line):
            counts[call[1]] = counts.get(call[1], 0) + 1
            if str(directory) in line and call[1] in calls:
                found.append((call[1], counts[call[1]]))
    return found


def broken_at(call, nth, fault="signal=KILL"):
    """The words before a command for a fault at its nth call of that name, counted for each of its threads. strace
    that looks at all calls, not at these alone, makes a run a quarter longer."""
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={nth}"]
