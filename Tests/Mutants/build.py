"""One build of all mutants, in a copy of the repository; which one is on is a number in its files."""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from mutants import REPOSITORY, home, spliced

ROOT = REPOSITORY / ".build/mutants"
COPY = ROOT / "tree"
MARK = b"sallyport mutant number:"
SWITCH = """
#include <string.h>
/* The number of the mutant that is on, behind a mark that the runner looks for in the file. */
volatile struct { char mark[24]; int number; } sp_mutant_on = {"sallyport mutant number:", 0};
_Bool sp_mutant_c(int number) { return sp_mutant_on.number == number; }
_Bool sp_mutant_swift(int number) { return sp_mutant_on.number == number; }
"""
DECLARED = '@_silgen_name("sp_mutant_swift") func __mutant(_ number: Int32) -> Bool\n'
SWIFT = ["OneTimePassword", "SallyportCore", "SallyportSystem", "SallyportLogin", "PAMSallyport", "pam_sallyport",
         "SallyportAdministration", "SessionProtocol", "SallyportSession", "SallyportDoctor"]
# Where the build leaves what is tested.
TESTS = ".build/debug/sallyportPackageTests.xctest"
COMMAND = ".build/debug/sallyport"
SERVICE = ".build/debug/sallyportd"
MODULE = ".build/stage/lib/pam_sallyport.so"


class BuildError(Exception):
    """The mutants do not build; what the compiler says."""


def build(mutants):
    """Brings the copy up to date with the sources and the mutants, and builds it; a digest of it."""
    contents = {path: content(REPOSITORY / path) for path in tracked()}
    for path in sorted({mutant.path for mutant in mutants}):
        in_file = [mutant for mutant in mutants if mutant.path == path]
        contents[path] = spliced(path, in_file).encode()
    contents["Sources/Login/CLibcrypto/mutant.c"] = SWITCH.encode()
    for target in SWIFT:
        contents[f"{home(target).relative_to(REPOSITORY)}/Mutant.swift"] = DECLARED.encode()
    # A mutated branch may leave a value unused: no error here.
    manifest = contents["Package.swift"].decode()
    contents["Package.swift"] = re.sub(
        r" *\.(strictMemorySafety\(\)|treatAllWarnings\(as: \.error\)),\n", "", manifest).encode()
    update(contents)
    for command in (["swift", "build", "--build-tests"], ["pam/build", "module"]):
        done = subprocess.run(command, cwd=COPY, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(errors(done))
    return hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()


def parse(mutants):
    """Without a build: whether every source is still one with its mutants in it."""
    with tempfile.TemporaryDirectory() as scratch:
        sources = {True: [], False: []}
        for path in sorted({mutant.path for mutant in mutants}):
            copy = Path(scratch, path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(spliced(path, [mutant for mutant in mutants if mutant.path == path]))
            sources[path.endswith(".swift")].append(copy)
        include = [f"-I{directory}" for directory in sorted(REPOSITORY.glob("Sources/*/*/include"))]
        for command in (["swiftc", "-frontend", "-parse", *sources[True]],
                        ["clang", "-fsyntax-only", "-D_GNU_SOURCE", "-x", "c", *include,
                         *sources[False]]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise BuildError(errors(done).replace(f"{scratch}/", ""))


def errors(done):
    """What the compiler says is wrong."""
    said = [line for line in (done.stdout + done.stderr).splitlines() if "error:" in line]
    return "\n".join(dict.fromkeys(said)) or done.stdout + done.stderr


def tracked():
    """The files of the repository that exist, those not yet committed as well."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=REPOSITORY,
        capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and os.path.lexists(REPOSITORY / path)]


def content(path):
    """The bytes of a file, or as text where a link points: the copy has the same links."""
    return os.readlink(path) if path.is_symlink() else path.read_bytes()


def update(contents):
    """Writes what differs and removes what is no more: what stays as it is need not be built."""
    known = ROOT / "copied"
    before = set(known.read_text().splitlines()) if known.exists() else set()
    for path in before - set(contents):
        (COPY / path).unlink(missing_ok=True)
    for path, wanted in contents.items():
        copy = COPY / path
        if not os.path.lexists(copy) or content(copy) != wanted:
            copy.unlink(missing_ok=True)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(wanted) if isinstance(wanted, str) else copy.write_bytes(wanted)
        if isinstance(wanted, str):
            continue
        copy.chmod((REPOSITORY / path).stat().st_mode if (REPOSITORY / path).exists() else 0o644)
    known.write_text("\n".join(sorted(contents)) + "\n")


class Files:
    """The built files of one worker, in which one mutant after the other is switched on."""

    def __init__(self, index, jobs=1):
        directory = ROOT / f"worker-{index}"
        directory.mkdir(parents=True, exist_ok=True)
        self.tests, self.command, self.service, self.module = (
            self._copied(directory, path) for path in (TESTS, COMMAND, SERVICE, MODULE))
        self.machines = max(1, (os.cpu_count() + 1) // jobs)
        self._marks = [(path, offset(path))
                       for path in (self.tests, self.command, self.service, self.module)]

    def switch_on(self, number):
        for path, place in self._marks:
            with self._writable(path) as file:
                file.seek(place)
                file.write(number.to_bytes(4, "little"))

    @staticmethod
    def _writable(path):
        """Opens a program for writing once no process runs it: one that was killed may be ending."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return open(path, "r+b")
            except OSError as error:
                if error.errno != errno.ETXTBSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    @staticmethod
    def _copied(directory, path):
        copy = directory / Path(path).name
        copy.unlink(missing_ok=True)
        shutil.copy(COPY / path, copy)
        return copy


def offset(path):
    """Where the number stands in a built file."""
    content = path.read_bytes()
    if content.count(MARK) != 1:
        raise BuildError(f"{path} has the switch {content.count(MARK)} times")
    return content.index(MARK) + len(MARK)
