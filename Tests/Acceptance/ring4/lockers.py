"""Screen lockers that run as alice, on the private machine."""

import os
import subprocess

from programs import eventually, needs
from support.hosts import as_user


class I3lock:
    """The real i3lock on an X server of alice's, with somebody at its keyboard."""

    service = "i3lock"

    def __init__(self, directory):
        for program, package in (("i3lock", "i3lock"), ("Xvfb", "xvfb"), ("xdotool", "xdotool")):
            needs(program, package)
        os.makedirs("/tmp/.X11-unix", exist_ok=True)
        os.chmod("/tmp/.X11-unix", 0o1777)
        self.locker = None
        self.log = open(directory / "i3lock.log", "w+")
        start, end = os.pipe()
        self.server = subprocess.Popen(
            as_user("alice", "Xvfb", "-displayfd", str(end), "-nolisten", "local", "-nolisten",
                    "tcp"), pass_fds=[end], stderr=self.log)
        os.close(end)
        with open(start) as told:
            self.display = told.readline().strip()
        assert self.display, "no X server"

    def _alice(self, *command):
        return as_user("alice", "env", f"DISPLAY=:{self.display}", *command)

    def lock(self):
        """Until it has told, as to logind, that the screen is locked."""
        start, end = os.pipe()
        self.locker = subprocess.Popen(
            self._alice("env", f"XSS_SLEEP_LOCK_FD={end}", "i3lock", "--nofork", "--debug"),
            pass_fds=[end], stderr=self.log)
        os.close(end)
        with open(start) as told:
            told.read()

    @property
    def is_locked(self):
        status = self.locker.poll()
        assert status in (None, 0), f"i3lock ended with {status}"
        return status is None

    def _refusals(self):
        with open(self.log.name) as log:
            return log.read().count("Authentication failure")

    def enter(self, typed):
        """Whether it opens. A locker that did not is still there and asks again."""
        if self.locker is None or not self.is_locked:
            self.lock()
        before = self._refusals()
        for words in (("key", "Escape"), ("type", "--delay", "1", typed), ("key", "Return")):
            subprocess.run(self._alice("xdotool", *words), check=True)
        eventually(lambda: not self.is_locked or self._refusals() > before, "no answer")
        return not self.is_locked

    def stop(self):
        for process in (self.locker, self.server):
            if process is not None:
                process.terminate()
                process.wait(10)
        self.log.close()


class OneAnswer:
    """A program of alice's that gives one text to every prompt, as these lockers do."""

    def __init__(self, service):
        self.service = service

    def enter(self, typed):
        done = subprocess.run(
            as_user("alice", "pamtester", self.service, "alice", "authenticate"),
            input=f"{typed}\n" * 4, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode == 0

    def stop(self):
        pass


class XSecureLock:
    """The program of xsecurelock that has the conversation, in its protocol of packets."""

    service = "xsecurelock"

    def __init__(self, _directory):
        self.program = needs("authproto_pam", "xsecurelock")

    def enter(self, *answers):
        """Whether it opens with these answers, and the prompts that it showed."""
        process = subprocess.Popen(
            as_user("alice", "env", f"XSECURELOCK_PAM_SERVICE={self.service}", self.program),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        prompts, left = [], list(answers)
        try:
            while header := process.stdout.readline().split():
                kind, size = header[0], int(header[1])
                text = process.stdout.read(size).decode()
                assert process.stdout.read(1) == b"\n"
                if kind in (b"P", b"U"):
                    prompts.append(text)
                    answer = left.pop(0).encode() if left else None
                    process.stdin.write(b"x 0\n\n" if answer is None else
                                        b"p %d\n%s\n" % (len(answer), answer))
                    process.stdin.flush()
        finally:
            process.stdin.close()
            status = process.wait(20)
        assert status in (0, 1)
        return status == 0, prompts

    def stop(self):
        pass
