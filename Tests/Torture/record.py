"""What the sections find: cases, failures by kind, and the table at the end."""

import json
import time
import traceback
from collections import Counter

SHOWN = 3  # failures of one kind that are told in full


def when(wrong, kind, detail):
    """A problem of a case, or None."""
    return (kind, detail) if wrong else None


class Section:
    """One line of the table. A case is one thing done to a module and everything asked after it."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.cases, self.failed = 0, 0
        self.failures = []  # (kind, what happened where)
        self.notes, self.skipped = [], []
        self.seconds = 0.0

    def case(self, what, *problems):
        """`problems`: (kind, detail) each, or None; the case passes where all are None."""
        self.cases += 1
        found = [problem for problem in problems if problem is not None]
        self.failed += bool(found)
        for kind, detail in found:
            self.failures.append((kind, f"{what}: {detail}"))

    def note(self, text):
        """A figure that was seen; nothing hangs on it."""
        print(f"  {text}", flush=True)
        self.notes.append(text)

    def skip(self, reason):
        print(f"  skipped: {reason}", flush=True)
        self.skipped.append(reason)


class Record:
    def __init__(self, subject, seed, short):
        self.subject, self.seed, self.short = subject, seed, short
        self.sections = []

    def run(self, name, title, body):
        """Plays one section; what it throws is a failure of it, and the next one goes on."""
        section = Section(name, title)
        self.sections.append(section)
        print(f"\n== {name}: {title}", flush=True)
        start = time.monotonic()
        try:
            body(section)
        except Exception as error:
            section.case("the section itself", ("broke off", f"{type(error).__name__}: {error}"))
            traceback.print_exc()
        finally:
            section.seconds = time.monotonic() - start
            self.tell(section)

    def tell(self, section):
        for kind, count in Counter(kind for kind, _ in section.failures).items():
            print(f"  FAILED {kind}: {count}")
            for text in [text for one, text in section.failures if one == kind][:SHOWN]:
                print(f"    {text}")
        print(f"  {section.cases} cases, {section.failed} failed, {section.seconds:.0f} s",
              flush=True)

    def table(self):
        print(f"\n== {self.subject}, seed {self.seed}{', short' if self.short else ''}")
        print(f"{'section':<9}{'cases':>8}{'failures':>10}{'seconds':>9}  what")
        for one in self.sections:
            print(f"{one.name:<9}{one.cases:>8}{one.failed:>10}{one.seconds:>9.0f}  {one.title}")
        cases = sum(one.cases for one in self.sections)
        failed = sum(one.failed for one in self.sections)
        seconds = sum(one.seconds for one in self.sections)
        print(f"{'all':<9}{cases:>8}{failed:>10}{seconds:>9.0f}")
        for one in self.sections:
            for kind, count in Counter(kind for kind, _ in one.failures).items():
                print(f"{one.name}: {kind}: {count}")
            for reason in one.skipped:
                print(f"{one.name}: skipped: {reason}")

    def write(self, path):
        path.write_text(json.dumps({
            "module": self.subject, "seed": self.seed, "short": self.short,
            "sections": [vars(one) for one in self.sections]}, indent=1) + "\n")

    @property
    def good(self):
        return bool(self.sections) and not any(one.failed for one in self.sections)
