"""The mutants as data: read, found in the sources, and spliced into a copy of them."""

import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
# One data file for each target that enters the module, and for four beside it: what root changes of
# enrollments, what a user may change himself, what a helper does, and what doctor says of the service.
TARGETS = ["OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin",
           "PAMSallyport", "pam_sallyport", "SallyportAdministration", "SessionProtocol",
           "SallyportSession", "SallyportDoctor",
           "CLibcrypto", "CLinuxPAM", "CSystem", "CQRCodeGen"]
OPEN, CLOSE = "«", "»"


class DataError(Exception):
    """A mutant that does not fit the sources; says which one and why."""


def home(target):
    """The directory of a target, in whichever part of the sources it lies."""
    return next(REPOSITORY.glob(f"Sources/*/{target}"), REPOSITORY / "Sources" / target)


@dataclass
class Mutant:
    name: str
    target: str
    file: str
    where: str  # the line of the data, for messages
    context: list = field(default_factory=list)
    original: list = field(default_factory=list)
    mutated: list = field(default_factory=list)
    seen_by: list = field(default_factory=list)  # tests that run before all others
    reason: str = ""  # why no test can see it; empty where one does

    @cached_property
    def path(self):
        """The file in whichever directory of the target it lies: names are unique there."""
        target = home(self.target)
        found = sorted(target.rglob(self.file)) or [target / self.file]
        return str(found[0].relative_to(REPOSITORY))

    @property
    def number(self):
        """The same however many others there are, so that one more leaves the rest built."""
        return zlib.crc32(self.name.encode()) & 0x7FFFFFFF

    @property
    def is_expression(self):
        return any(OPEN in line for line in self.original)

    def fail(self, why):
        raise DataError(f"{self.where}: {self.name}: {why}")


def read(target):
    """The mutants of one data file; see README.md for its form."""
    path = HERE / f"{target}.txt"
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.relative_to(REPOSITORY)}:{number}"
        head = re.fullmatch(r"\[([a-z0-9][a-z0-9-]*)\] (\S+)", line)
        if not line.strip() or line.startswith("#"):
            continue
        if head:
            found.append(Mutant(head[1], target, head[2], where))
            continue
        if not found or line[:1] not in "@-+*=" or line[1:2] not in ("", " "):
            raise DataError(f"{where}: neither [name] file nor a line that begins with @ - + * =")
        mutant, text = found[-1], line[2:].strip()
        if line[0] == "=":
            mutant.reason = f"{mutant.reason} {text}".strip()
        else:
            {"@": mutant.context, "-": mutant.original, "+": mutant.mutated,
             "*": mutant.seen_by}[line[0]].append(text)
    return found


def read_all():
    """All mutants, each checked against the sources."""
    mutants = [mutant for target in TARGETS for mutant in read(target)]
    names, numbers = set(), set()
    for mutant in mutants:
        if mutant.name in names or mutant.number in numbers:
            mutant.fail("the name is taken")
        names.add(mutant.name)
        numbers.add(mutant.number)
    wrong, tests = [], names_of_tests()
    for mutant in mutants:
        try:
            span(mutant, (REPOSITORY / mutant.path).read_text())
            for test in mutant.seen_by:
                if test not in tests:
                    mutant.fail(f"there is no test {test}")
        except (DataError, FileNotFoundError) as error:
            wrong.append(str(error))
    if wrong:
        raise DataError("\n".join(wrong))
    for path in sorted({mutant.path for mutant in mutants}):
        spliced(path, [mutant for mutant in mutants if mutant.path == path])
    return mutants


def names_of_tests():
    """What the data may name: the tests of ring 3, and the files of Swift's."""
    files = (REPOSITORY / "Tests").glob("Acceptance/ring3/*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)} | {
        file.stem for file in (REPOSITORY / "Tests").glob("*/*Tests/**/*.swift")}


def span(mutant, source):
    """Where the original stands in the source, as offsets of its first and after its last byte."""
    lines, offsets, offset = source.split("\n"), [], 0
    for line in lines:
        offsets.append(offset)
        offset += len(line) + 1
    stripped = [line.strip() for line in lines]
    first = 0
    for context in mutant.context:
        if context not in stripped[first:]:
            mutant.fail(f"{mutant.path} has no line: {context}")
        first = stripped.index(context, first) + 1
    wanted = [line.replace(OPEN, "").replace(CLOSE, "") for line in mutant.original]
    places = [index for index in range(first, len(lines) - len(wanted) + 1)
              if stripped[index:index + len(wanted)] == wanted]
    if not wanted or not places:
        mutant.fail(f"{mutant.path} has no line: {wanted[0] if wanted else '(none given)'}")
    if len(places) > 1 and not mutant.context:
        mutant.fail(f"{mutant.path} has it {len(places)} times: name a line above it with @")
    start = places[0]

    def position(mark):
        """The offset of the mark, counted without marks."""
        for index, line in enumerate(mutant.original):
            if mark in line:
                column = len(line[:line.index(mark)].replace(OPEN, "").replace(CLOSE, ""))
                indent = len(lines[start + index]) - len(lines[start + index].lstrip())
                return offsets[start + index] + indent + column
        return mutant.fail(f"no {mark}")

    text = "".join(mutant.original)
    if not mutant.is_expression:
        if mutant.path.endswith(".swift") and wanted[0].startswith(("let ", "var ")):
            mutant.fail(f"a declaration: enclose its value in {OPEN} {CLOSE}")
        last = start + len(wanted) - 1
        return offsets[start], offsets[last] + len(lines[last])
    if text.count(OPEN) != 1 or text.count(CLOSE) != 1 or not mutant.mutated:
        mutant.fail(f"one {OPEN} and one {CLOSE}, and what takes the place of what they enclose")
    return position(OPEN), position(CLOSE)


def spliced(path, mutants):
    """The source with every one of the mutants in it, each behind its number."""
    source = (REPOSITORY / path).read_text()
    chosen = "__mutant" if path.endswith(".swift") else "sp_mutant_c"
    spans = sorted(((*span(mutant, source), mutant) for mutant in mutants),
                   key=lambda entry: (entry[0], -entry[1]))

    def render(start, end, inside):
        """The text from start to end, with the spans that lie in it rewritten."""
        text, position = "", start
        while inside:
            first, last, mutant = inside.pop(0)
            within = []
            while inside and inside[0][0] < last:
                if inside[0][1] > last:
                    inside[0][2].fail(f"it overlaps with {mutant.name}")
                within.append(inside.pop(0))
            text += source[position:first] + wrapped(mutant, render(first, last, within), chosen)
            position = last
        return text + source[position:end]

    text = render(0, len(source), spans)
    if path.endswith(".swift"):
        return text
    declared = "_Bool sp_mutant_c(int number);\n"
    once = "#pragma once\n"
    return text.replace(once, once + declared, 1) if once in text else declared + text


def wrapped(mutant, original, chosen):
    """Original and mutated text as one text that takes the one or the other."""
    mutated, test = "\n".join(mutant.mutated), f"{chosen}({mutant.number})"
    if mutant.is_expression:
        return f"({test} ? ({mutated}) : ({original}))"
    if mutant.path.endswith(".swift"):
        return (f"if {test} {{\n{mutated}\n}} else {{\n{original}\n}}" if mutated
                else f"if !{test} {{\n{original}\n}}")
    return f"if ({test}) {{\n{mutated}\n}} else {{\n{original}\n}}"
