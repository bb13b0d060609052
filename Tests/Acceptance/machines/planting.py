"""Faults that are planted in the forecast, to see that the comparison finds each.

1. Blindness. A forecast that overlooks one dimension says of a machine what it says of the same
   machine with the plain value there. So that one is built, the real doctor is asked about it, and
   its forecast is held against the logins of the machine as it was. No code is changed. Each value
   of each dimension is a fault of its own, planted on a machine where it decides a login
   (test_values.py).
2. Mutants of doctor's sources (Tests/Mutants/SallyportDoctor.txt): the command of that build, one
   mutant after the other switched on in its file, is asked about the machines by chance.
"""

import os
import shutil
import subprocess
from pathlib import Path

from comparing import faults
from dimensions import MACHINE, PERSON, SERVICES, plain
from forecast import doctor, forecast
from support.hosts import SCRATCH

# Values that change no result of a login of ours, whatever is drawn beside them, and why.
CHANGES_NOTHING = {
    ("match", "this port is another's"): "nobody comes by it",
    ("sudoers", "to some other service"): "sudo -i asks as sudo, and the two are mostly alike",
    ("enrolled", "a counter"): "asked like a phone",
    ("policy", "remembers"): "nobody is remembered before a code was right",
    ("policy", "no phones"): "who has a phone has backup codes",
    ("sshd", "keys by a command"): "it has the keys that the files have, which doctor cannot know",
    **{(f"stack of {name}", "the code first"): "both are asked for" for name in SERVICES},
    **{(f"stack of {name}", "one field"): "both are typed" for name in SERVICES if name != "sshd"},
    **{(f"stack of {name}", "demands"): "nothing leaves its auth phase out"
       for name in ("su", "login", "polkit-1")},
}

MIXED = {"bob": {"enrolled": "no", "group": "staff"}, "git": {"uid": "a program's"},
         "ansible": {"password": "none"}}
MUST = {"bob": {"enrolled": "must enroll"}}
UNENROLLED_ROOT = {"root": {"enrolled": "no"}}
# What a value needs beside it: values of the machine, of people.
BESIDE = {
    ("sshd", "prompts"): ({}, {"bob": {"enrolled": "a phone", "key": "no key"}}),
    ("sshd", "key and prompts, or prompts"): (
        {}, {"bob": {"enrolled": "a phone", "key": "no key"}}),
    ("sshd", "method password"): ({"stack of sshd": "not ours"}, {"bob": {"key": "no key"}}),
    ("match", "staff by key and prompts"): (
        {"sshd": "a key or prompts"}, {"bob": {"enrolled": "a phone"}}),
    ("match", "bob is denied"): ({}, {"bob": {"enrolled": "a phone"}}),
    ("root over ssh", "no"): ({"sshd": "a key or prompts"}, {}),
    ("root over ssh", "yes"): ({"sshd": "prompts"}, {}),
    **{(f"stack of {name}", "enrolls"): ({}, MUST) for name in SERVICES},
    **{(f"stack of {name}", "a misspelt word"): ({"policy": "nothing of alice"}, {})
       for name in SERVICES},
    ("stack of sshd", "demands"): ({"sshd": "a key or prompts"}, {}),
    ("stack of sshd", "one field"): ({"sshd": "method password"}, {}),
    ("stack of sudo", "demands"): ({}, {"alice": {"sudo": "NOPASSWD"}}),
    ("stack of doas", "demands"): ({"doas": "nopass"}, {"git": {"group": "staff"}}),
    ("sudoers", "the last rule counts"): ({}, {"alice": {"sudo": "no rule"}}),
    ("sudoers", "rootpw"): ({}, UNENROLLED_ROOT),
    ("sudoers", "targetpw"): ({}, UNENROLLED_ROOT),
    ("sudoers", "runaspw for one command"): ({}, {"alice": {"password": "none"}}),
    ("sudoers", "no account phase"): ({}, {"alice": {"expiry": "the account is over"}}),
    ("sudoers", "web by default"): ({}, {"alice": {"sudo": "without a target"}}),
    ("policy", "required"): ({"stack of sudo": "nullok"}, {}),
    ("policy", "required one day"): ({"stack of sudo": "nullok"}, {}),
    ("policy", "a mistake"): ({"stack of sudo": "nullok"}, {}),
    ("group", "staff"): ({"policy": "staff need not"}, {"alice": {"enrolled": "no"}}),
    ("uid", "a program's"): ({"stack of sudo": "programs go around it"}, {}),
}


def deciding(dimension, value):
    """A machine on which that value decides a login."""
    machine = plain().put({}, MIXED).put(*BESIDE.get((dimension, value), ({}, {})))
    if dimension in MACHINE:
        return machine.put({dimension: value})
    return machine.put({}, {name: {dimension: value} for name in ("alice", "git")})


def values():
    """All that a forecast can overlook."""
    return [(dimension, value) for dimension, known in (MACHINE | PERSON).items()
            for value in known[1:] if (dimension, value) not in CHANGES_NOTHING]


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
