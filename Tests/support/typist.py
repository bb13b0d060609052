"""A program on a pseudo-terminal, and somebody at its keyboard who answers at once."""

import time

import pexpect


class Child(pexpect.spawn):
    """pexpect's child without pexpect's pauses: 50 ms before each line, 100 ms at each end, and as
    much between two looks for the echo. They are a quarter of what a login takes."""

    def __init__(self, command, timeout=20, **more):
        program, *words = map(str, command)
        super().__init__(program, words, timeout=timeout, encoding="utf-8", **more)
        self.delaybeforesend = None
        self.ptyproc.delayafterclose = 0

    def answer(self, line):
        """Types where nothing is shown: once the echo is off, since what came before is dropped."""
        deadline = time.monotonic() + 5
        while self.getecho() and time.monotonic() < deadline:
            time.sleep(0.002)
        self.sendline(line)
