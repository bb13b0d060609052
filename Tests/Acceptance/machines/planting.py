"""Faults that are planted in the forecast, to see that the comparison finds each.

1. Blindness. A forecast that overlooks one dimension says of a machine what it says of the same
   machine with the plain value there. So that one is built, the real doctor is asked about it, and
   its forecast is held against the logins of the machine as it was. No code is changed, and each
   value of each dimension is a fault of its own.
2. Mutants of doctor's sources (Tests/Mutants/SallyportDoctor.txt): the command of that build, one
   mutant after the other switched on in its file, is asked about the machine.
"""

import os
import shutil
import subprocess
from pathlib import Path

from comparing import faults
from dimensions import MACHINE, PERSON
from forecast import doctor, forecast
from support.hosts import SCRATCH

# Values that change no cell of ours, whatever is drawn beside them, and why.
CHANGES_NOTHING = {
    ("match", "this port is another's"): "nobody comes by it",
    ("sudoers", "to some other service"): "sudo -i asks as sudo, and the two are mostly alike",
    ("enrolled", "a counter"): "asked like a phone",
    ("policy", "remembers"): "nobody is remembered before a code was right",
    ("sshd", "keys by a command"): "it has the keys that the files have, which doctor cannot know",
}


def blind_spots(machine):
    """The dimensions in which this machine is not a plain one."""
    return [name for name in (*MACHINE, *PERSON) if machine.has(name)]


def seen_of_blindness(ground, machine, real, dimension):
    """Whether a forecast without that dimension has a wrong cell here. The files are then those of
    the plain machine."""
    plain = machine.blind_to(dimension)
    ground.become(plain)
    keys = [(cell.account, cell.way) for cell in real]
    return any(faults(real, forecast(doctor(), keys)))


# MARK: mutants

COMMAND = os.environ.get("SALLYPORT_MUTANT_COMMAND")  # .build/mutants/tree/.build/debug/sallyport
NUMBERS = [int(word) for word in os.environ.get("SALLYPORT_MUTANTS", "").split()]
MARK = b"sallyport mutant number:"  # of Tests/Mutants/build.py


class Mutant:
    """A copy of the command with the switch, of this process alone."""

    def __init__(self):
        self.path = Path(SCRATCH, "mutant")
        shutil.copy(COMMAND, self.path)
        content = self.path.read_bytes()
        assert content.count(MARK) == 1, f"{COMMAND} has no switch"
        self.place = content.index(MARK) + len(MARK)

    def switch_on(self, number):
        # A new file each time: one that runs cannot be written.
        other = self.path.with_suffix(".next")
        content = bytearray(self.path.read_bytes())
        content[self.place:self.place + 4] = number.to_bytes(4, "little")
        other.write_bytes(content)
        other.chmod(0o755)
        other.replace(self.path)

    def found(self, machine, real, number):
        """Whether the forecast with that fault has a wrong cell on the machine as it stands."""
        self.switch_on(number)
        keys = [(cell.account, cell.way) for cell in real]
        try:
            said = doctor(self.path)
        except (AssertionError, ValueError, subprocess.TimeoutExpired):
            return True  # it trapped, or answered with no JSON
        return any(faults(real, forecast(said, keys), machine=machine))
