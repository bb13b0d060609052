"""System calls of a program, counted and broken by tools/fault.c."""

import errno
import os
import re
from pathlib import Path

FAULT = f"{os.environ['SALLYPORT_BUILT']}/fault"


def _numbers():
    header = next(Path("/usr/include").glob("**/asm/unistd_64.h")).read_text()
    return {int(number): name for name, number in
            re.findall(r"#define __NR_(\w+)\s+(\d+)", header)}


NAMES = _numbers()
NUMBERS = {name: number for number, name in NAMES.items()}

# What a disk or a machine in trouble says, and to which calls. A call that cannot fail so (the
# signal mask, a clock) is only killed at.
ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS", "EFBIG", "EINTR", "EMFILE")
MEMORY = {"mmap", "brk", "mremap", "mprotect", "munmap"}
FILES = set("""
    openat read pread64 write pwrite64 fdatasync fsync newfstatat statx fstatfs lseek fcntl flock
    getdents64 mkdirat unlinkat renameat renameat2 ftruncate fallocate fchmod fchown close access
    faccessat2 ioctl socket connect sendto sendmsg getrandom readlinkat rename unlink open creat link
    chown chmod signalfd4 clock_nanosleep""".split())
COUNTED = {"read", "pread64", "write", "pwrite64", "sendto", "getrandom"}
ENDS = {"exit", "exit_group"}


class Call:
    """One system call of a traced run: its place in the order, its name, what it was about."""

    def __init__(self, place, line):
        number, _, self.path = line.partition(" ")
        self.place, self.name = place, NAMES.get(int(number), number)

    def __str__(self):
        return f"{self.place} {self.name} {self.path}".rstrip()


def listed(path):
    return [Call(place, line) for place, line in
            enumerate(Path(path).read_text(errors="replace").splitlines(), 1)]


class Fault:
    """What is done to one call: the words for tools/fault.c, and the name of the error."""

    def __init__(self, label, action, count=1, error=None):
        self.label, self.action, self.count, self.error = label, action, count, error

    def prefix(self, call, *more):
        return [FAULT, *more, "-n", str(call.place), "-a", self.action, "-c", str(self.count)]

    @property
    def kills(self):
        return self.action.startswith("kill")

    def __str__(self):
        return self.label


def failing(name, repeats):
    """From there on means 50 times for EINTR: a caller that repeats an interrupted call is right."""
    words = [(f"{name} once", 1)]
    if repeats:
        words.append((f"{name} from there on", 50 if name == "EINTR" else 0))
    return [Fault(label, f"fail={getattr(errno, name)}", count, name) for label, count in words]


def faults_of(call, last=False, repeats=True):
    """All that is done to one call. A kill before a call is one after the call before it."""
    made = [Fault("killed before", "kill")]
    if last:
        made.append(Fault("killed after", "killed"))
    if call.name in ENDS:
        return made
    if call.name in FILES:
        for name in ERRORS:
            made += failing(name, repeats)
    if call.name in FILES | MEMORY:
        made += failing("ENOMEM", repeats)
    if call.name in COUNTED:
        made += [Fault(f"short to {size} {word}", f"short={size}", count)
                 for size in (1, 512) for word, count in (("once", 1), ("from there on", 0))]
    return made
