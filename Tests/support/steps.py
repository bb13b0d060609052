"""Which system calls of a program touch a store, so that a fault can be injected at each."""

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
