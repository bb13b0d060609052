"""Codes from an independent peer: oathtool."""

import subprocess


def totp(secret, count=1, at=None, algorithm="sha1", digits=6, period=30):
    """The codes of the time step at a time, or now, and of those after it. `secret`: in base32."""
    moment = [] if at is None else [f"--now=@{int(at)}"]
    return run(f"--totp={algorithm}", f"--time-step-size={period}s", *moment,
               f"--digits={digits}", f"--window={count - 1}", secret)


def hotp(secret, count=1, counter=0, digits=6):
    """The codes of a counter and of those after it."""
    return run(f"--counter={counter}", f"--digits={digits}", f"--window={count - 1}", secret)


def run(*words):
    done = subprocess.run(["oathtool", "--base32", *words],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()
