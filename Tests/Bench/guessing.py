"""A year of guessing: how many guesses each module verifies, and what chance that makes."""

import re
import tempfile

from machine import attempt, play, services
from modules import SECRET, code, contestants, users

YEAR = 365 * 86400
USER = users(1)[0]
REFUSED_UNJUDGED = re.compile(r"reason=throttled|Too many concurrent|[Tt]oo frequent|[Rr]ate limit")


def guesses(module, start, seconds, every, **more):
    """Wrong codes: one each `every` seconds for so long."""
    for number in range(seconds // every):
        at = start + number * every
        good = {code(at + 30 * step) for step in range(-20, 21)}
        wrong = next(text for n in range(42) if (text := f"{(number * 7919 + n) % 10**6:06}")
                     not in good)
        yield attempt(module, USER, wrong, at, **more)


def verified(sink, directory, lines):
    """How many of these guesses were verified, by what the module says in the log."""
    sink.flush()
    start, lines = len(sink.lines), list(lines)
    play(directory, lines)
    sink.flush()
    unjudged = sum(bool(REFUSED_UNJUDGED.search(line.text)) for line in sink.lines[start:])
    return len(lines) - unjudged


def fastest(sink, directory, module, now):
    """Theirs: guesses verified in a second, at whichever pace gets most of them verified."""
    found = []
    for every in (1, 10, 11):
        module.enroll([USER], now)
        found.append(verified(sink, directory, guesses(module, now, 300 * every, every)) / 300 / every)
    return max(found)


def measure(report, sink, now):
    report.section("6. A year of guessing, by somebody who has the password")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        ours, google, oath, _ = contestants(memory)
        for module in (ours, google, oath):
            module.enroll([USER], now)
        made = services(f"{memory}/pam.d", (ours, google, oath))
        made.write("login", f"auth {ours.line()}")  # the second budget: this machine's own
        # Ours: a year of tries, two an hour, one to each of the two budgets.
        known = verified(sink, made.directory, guesses(ours, now, YEAR, 3600, service="login"))
        ours.enroll([USER], now)
        other = verified(sink, made.directory, guesses(ours, now, YEAR, 3600,
                                                  rhost=b"192.0.2.7".hex()))
        rates = {module.name: fastest(sink, made.directory, module, now) for module in (google, oath)}
    accepted = {ours.name: 11, google.name: 3, oath.name: 11}
    tries = {ours.name: known + other} | {name: int(rate * YEAR) for name, rate in rates.items()}
    report.row("guesses verified in a year, one a second at most", tries, ratio=False)
    report.row("codes accepted at a moment", accepted, ratio=False)
    report.row("chance to be in after a year", {
        name: f"{100 * (1 - (1 - accepted[name] / 1e6) ** tries[name]):.3g} %" for name in tries},
        "ours: <= 1 %")
