"""A user who looks after his own enrollment on a terminal, and the service that he asks."""

import os
import shutil
import signal
from pathlib import Path

import pexpect
import pytest

from support.hosts import PASSWORD, as_user
from support.sallyport import COMMAND, first_code
from support.service import SERVICE, Service, listens, soon
from support.typist import Child

SESSION = os.environ["SALLYPORT_SESSION"]
SOCKET = Path("/run/sallyport/session")
CONF = Path("/etc/security/sallyport.conf")
STACK = ["auth required pam_unix.so nodelay", "account required pam_unix.so"]
PASSWORD_PROMPT, CODE, FIRST = "[Pp]assword: ?$", r"Verification code to [^:]*: ?$", r"by the app: ?$"
STATUS = b"\x01\x11\x00"


def policy(*lines):
    CONF.write_text("\n".join(["[default]", "self_service = yes", "enrollment = offer", *lines]) + "\n")


@pytest.fixture
def running():
    shutil.rmtree("/run/sallyport", ignore_errors=True)
    policy()
    Path("/etc/pam.d/sallyport").write_text("\n".join(STACK) + "\n")
    with Service(SERVICE, "--session-program", SESSION) as started:
        assert soon(lambda: listens(SOCKET))
        yield started
    CONF.unlink()
    Path("/etc/pam.d/sallyport").unlink()


class Own:
    """A verb of the command, run by a user on a terminal."""

    def __init__(self, *words, user="alice"):
        self.child = Child([*as_user(user, COMMAND), *words], timeout=60)
        self.text, self.prompts = "", []

    def until(self, *patterns):
        """Reads on to the first of these, or the end; which one it was."""
        seen = self.child.expect([*patterns, pexpect.EOF])
        self.text += self.child.before + (self.child.after if seen < len(patterns) else "")
        return seen

    def finish(self, password=PASSWORD, code=None):
        """Answers what is asked; the exit status."""
        while (seen := self.until(PASSWORD_PROMPT, CODE, FIRST)) < 3:
            self.prompts.append(self.text.splitlines()[-1])
            if seen == 0:
                self.child.answer(password)
            elif seen == 1:
                self.child.answer(code)
            else:
                self.child.sendline(first_code(self.text))
        self.child.wait()
        return self.child.exitstatus

    def kill(self):
        self.child.kill(signal.SIGKILL)
        self.child.wait()


def files(store, user="alice"):
    """Everything that is kept of a user."""
    if not store.of(user).exists():
        return None
    return store.enrollment(user).read_bytes(), store.state(user).read_bytes()


def names(store):
    return [one["name"] for one in store.status()["authenticators"]]
