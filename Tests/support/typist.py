"""A program on a pseudo-terminal, and somebody at its keyboard who answers at once."""

import os
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

    def read_nonblocking(self, size=1, timeout=-1):
        """A hang-up is no end while the program lives: util-linux's login hangs up its terminal, and
        opens it again."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return super().read_nonblocking(size, timeout)
            except pexpect.EOF:
                if self._has_ended() or time.monotonic() > deadline:
                    raise
                self.flag_eof = False
                time.sleep(0.002)

    def isalive(self):
        """After a hang-up pexpect waits here until the program has ended."""
        return not self._has_ended() or super().isalive()

    def _has_ended(self):
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def answer(self, line):
        """Types where nothing is shown: once the echo is off, since what came before is dropped."""
        deadline = time.monotonic() + 5
        while self.getecho() and time.monotonic() < deadline:
            time.sleep(0.002)
        self.sendline(line)
