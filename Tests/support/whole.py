"""How much a run tries: all that the requirements ask for, before a release, or a part of the same."""

import os

WHOLE = os.environ.get("SALLYPORT_WHOLE", "") not in ("", "0")
# A command is broken at each of its system calls, or at each third one.
STRIDE = 1 if WHOLE else 3


def rounds(whole, short):
    return whole if WHOLE else short
