"""A disk that keeps a record of what it was given, and what is on it after the power is cut."""

import os
import struct
import subprocess
from pathlib import Path

DISK = f"{os.environ['SALLYPORT_BUILT']}/disk"
FLUSH = (1 << 64) - 1
SECTOR = 512
EXT4 = ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
# name: (type, size in MiB, how it is made, how it is mounted)
KINDS = {
    "ext4 ordered": ("ext4", 48, EXT4, "data=ordered"),
    "ext4 writeback": ("ext4", 48, EXT4, "data=writeback"),
    "ext4 journal": ("ext4", 48, EXT4, "data=journal"),
    "xfs": ("xfs", 300, ["mkfs.xfs", "-q", "-f"], "noatime"),
    "btrfs": ("btrfs", 128, ["mkfs.btrfs", "-q", "-f", "-M"], "noatime"),
}


class MountFailed(Exception):
    pass


def mount(*arguments):
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise MountFailed(done.stderr.strip())


def unmount(place):
    subprocess.run(["umount", str(place)], check=True)


class RecordedDisk:
    """A file system on a loop device over tools/disk.c."""

    def __init__(self, directory, kind):
        self.type, size, make, self.options = KINDS[kind]
        self.directory = Path(directory)
        self.image, self.first = self.directory / "image", self.directory / "first"
        self.log, self.show = self.directory / "log", self.directory / "show"
        self.place = self.directory / "mounted"
        for one in (self.show, self.place):
            one.mkdir()
        with self.image.open("wb") as file:
            file.truncate(size << 20)
        subprocess.run([*make, str(self.image)], check=True, capture_output=True)
        self._copy(self.image, self.first)
        self.server = subprocess.Popen([DISK, self.image, self.log, self.show],
                                       stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline() != "ready\n":
            raise MountFailed("no FUSE here")
        mount("-t", self.type, "-o", f"loop,{self.options}", self.show / "disk", self.place)

    @staticmethod
    def _copy(source, target):
        subprocess.run(["cp", "--sparse=always", source, target], check=True)

    @property
    def written(self):
        """How far the record is: a moment in the life of the disk."""
        return self.log.stat().st_size

    def close(self):
        unmount(self.place)
        unmount(self.show)
        self.server.wait()
        self.server.stdout.close()


class Cutter:
    """Makes of the record what a disk holds after a power cut, moment by moment, in their order."""

    VARIANTS = ("all that was given", "what was flushed", "a part of the rest")

    def __init__(self, disk):
        self.disk = disk
        self.flushed, self.cut = disk.directory / "flushed", disk.directory / "cut"
        self.place = disk.directory / "after"
        self.place.mkdir()
        disk._copy(disk.first, self.flushed)
        self._log = disk.log.open("rb")
        self._pending, self._read = [], 0

    def _advance(self, moment):
        """Puts all records up to the moment in `flushed` (up to the last flush) and `_pending`."""
        with self.flushed.open("r+b") as image:
            while self._read + 12 <= moment:
                self._log.seek(self._read)
                offset, length = struct.unpack("<QI", self._log.read(12))
                if self._read + 12 + length > moment:
                    return
                self._read += 12 + length
                if offset == FLUSH:
                    for at, data in self._pending:
                        image.seek(at)
                        image.write(data)
                    self._pending = []
                else:
                    self._pending.append((offset, self._log.read(length)))

    def mounted(self, moment, variant, dice):
        """Mounts what is left after a cut at the moment; the moments come in order."""
        self._advance(moment)
        self.disk._copy(self.flushed, self.cut)
        with self.cut.open("r+b") as image:
            for at, data in self._survivors(variant, dice):
                image.seek(at)
                image.write(data)
        mount("-t", self.disk.type, "-o", f"loop,{self.disk.options}", self.cut, self.place)

    def _survivors(self, variant, dice):
        if variant == self.VARIANTS[1]:
            return []
        if variant == self.VARIANTS[0]:
            return self._pending
        # A disk may write in any order, and stop between any two sectors.
        left = [write for write in self._pending if dice.random() < 0.5]
        if left:
            at, data = left.pop()
            left.append((at, data[:dice.randrange(len(data) // SECTOR + 1) * SECTOR]))
        return left

    def unmount(self):
        unmount(self.place)

    def close(self):
        self._log.close()
