"""What the sections measure with: a disk whose statistics nobody else touches, and the driver."""

import os
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from support.sallyport import Services

BUILT = Path(os.environ["SALLYPORT_BUILT"])
SCRATCH = Path(os.environ["SALLYPORT_SCRATCH"])
DRIVER = BUILT / "driver"


class Disk:
    """A fresh ext4 on a loop device; the file behind it lies on the machine's real disk."""

    def __init__(self, gigabytes):
        self.place, image = Path("/mnt-bench"), SCRATCH / "image"
        self.place.mkdir()
        with image.open("wb") as file:
            file.truncate(gigabytes << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-i", "8192", "-I", "256",
                        "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True)
        self.device = subprocess.run(["losetup", "--show", "-f", image], check=True, text=True,
                                     capture_output=True).stdout.strip()
        subprocess.run(["mount", "-o", "noatime", self.device, self.place], check=True)
        # Gone with the mount, and so with this machine, however it ends.
        subprocess.run(["losetup", "-d", self.device], check=True)
        self._statistics = Path("/sys/block", Path(self.device).name, "stat")

    def written(self):
        """Bytes written to the device and flushes asked of it since it exists."""
        fields = [int(field) for field in self._statistics.read_text().split()]
        return fields[6] * 512, fields[15] if len(fields) > 15 else 0

    def settle(self):
        subprocess.run(["sync", "-f", self.place], check=True)

    def close(self):
        subprocess.run(["umount", self.place], check=True)


def services(directory, modules):
    """`pam_start_confdir`'s directory with one service for each module, which stands alone in it."""
    made = Services(directory)
    for module in modules:
        made.write(module.name, f"auth {module.line()}", "account required pam_permit.so")
    return made


def attempt(module, user, answer, at, **more):
    """A line of the driver's: one login that prints no more than its verdict."""
    words = {"service": module.name, "user": user.encode().hex(), "at": int(at), "repeat": 1}
    if module.prompt is not None:
        words["answers"] = answer.encode().hex()
    return " ".join(f"{key}={value}" for key, value in (words | more).items()) + "\n"


def environment(times=None, **more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("BENCH_")}
    if times is not None:
        clean["BENCH_TIMES"] = str(times)
    return clean | more


def play(directory, lines, prefix=(), times=None, **more):
    """Runs these attempts in one fresh host to its end."""
    subprocess.run([*map(str, prefix), DRIVER, directory], input="".join(lines), text=True, check=True,
                   stdout=subprocess.DEVNULL,
                   env=environment(times, **more))


class Transaction(NamedTuple):
    begin: int
    end: int
    processor: int
    result: int  # PAM's

    @property
    def good(self):
        return self.result == 0


def read_times(path):
    """Each transaction, in nanoseconds; see meter.c."""
    return [Transaction(*fields) for fields in struct.iter_unpack("<qqqq", Path(path).read_bytes())]


class Hosts:
    """One host process for each module, for logins in turn: ours, theirs, ours, …"""

    def __init__(self, directory, modules, **more):
        self._times = {module.name: SCRATCH / f"times-{module.name}" for module in modules}
        self._processes = {
            module.name: subprocess.Popen(
                [DRIVER, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=environment(self._times[module.name], **more)) for module in modules}

    def login(self, module, user, answer, at):
        process = self._processes[module.name]
        process.stdin.write(attempt(module, user, answer, at))
        process.stdin.flush()
        process.stdout.readline()

    def close(self):
        """{name of the module: its times}."""
        for process in self._processes.values():
            process.stdin.close()
            process.stdout.close()
            process.wait()
        found = {name: read_times(path) for name, path in self._times.items()}
        for path in self._times.values():
            path.unlink()
        return found
