"""Driver: one process that plays logins through libpam, see driver/driver.c."""

import json
import os
import subprocess
from dataclasses import dataclass

SUCCESS, AUTH_ERR, TROUBLE = "PAM_SUCCESS", "PAM_AUTH_ERR", "PAM_AUTHINFO_UNAVAIL"
NAMES = {
    0: SUCCESS, 3: "PAM_SERVICE_ERR", 4: "PAM_SYSTEM_ERR", 5: "PAM_BUF_ERR", 6: "PAM_PERM_DENIED",
    7: AUTH_ERR, 8: "PAM_CRED_INSUFFICIENT", 9: TROUBLE, 10: "PAM_USER_UNKNOWN", 11: "PAM_MAXTRIES",
    12: "PAM_NEW_AUTHTOK_REQD", 13: "PAM_ACCT_EXPIRED", 14: "PAM_SESSION_ERR", 19: "PAM_CONV_ERR",
    20: "PAM_AUTHTOK_ERR", 25: "PAM_IGNORE", 26: "PAM_ABORT", 28: "PAM_MODULE_UNKNOWN",
}
ECHO_OFF, ECHO_ON, ERROR_TEXT, INFO_TEXT = 1, 2, 3, 4
BUILT = os.environ["SALLYPORT_BUILT"]
# A directory for valgrind's findings, where every host is to run under it; see Tests/sanitize.
VALGRIND = f"{os.environ['SALLYPORT_SCRATCH']}/valgrind" if "SALLYPORT_VALGRIND" in os.environ else ""
MEMCHECK = VALGRIND and [
    "valgrind", "--quiet", "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect,possible", f"--log-file={VALGRIND}/%p"]


@dataclass(frozen=True)
class Login:
    results: list  # names of the return codes, one for each phase
    prompts: list  # [style, text]
    seconds: float  # from the last answer to the verdict of the first phase
    env: dict  # PAM's own environment at the end
    unused: int  # answers nobody asked for
    unexpected: int  # prompts without an answer
    changed: str  # what the host found changed in itself: descriptors, ids, signals, …

    @property
    def result(self):
        return self.results[0]


def encoded(answer):
    """An answer as the driver reads it: text or bytes, or the Reply words below."""
    if isinstance(answer, Reply):
        return answer.word
    return (answer if isinstance(answer, bytes) else answer.encode()).hex()


class Reply:
    """Answers that are not strings, and answers that wait at the barrier."""

    def __init__(self, word):
        self.word = word

    @staticmethod
    def at_barrier(answer):
        return Reply("@" + encoded(answer))


NULL, NO_ARRAY, FAIL = Reply("null"), Reply("none"), Reply("fail")
LIVE = Reply("live")  # an answer made of what was shown: see Driver.login


class HostDied(Exception):
    """The driver ended by itself; the argument is its exit status, or the signal as -n."""


class NotStarted(Exception):
    """pam_start failed; the argument is the return code."""


class Driver:
    def __init__(self, services, barrier=None, prefix=(), preexec=None, env=None):
        command = [*(prefix or MEMCHECK), f"{BUILT}/driver", str(services.directory)]
        if barrier is not None:
            command.append(str(barrier.reader))
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=preexec,
            env=os.environ | (env or {}),
            pass_fds=[] if barrier is None else [barrier.reader])

    def send(self, service, user, *answers, phases=("auth",), **more):
        words = {"service": service, "user": encoded(user), "phases": ",".join(phases)}
        if answers:
            words["answers"] = ",".join(encoded(answer) for answer in answers)
        for key, value in more.items():
            if value is not None:
                words[key] = encoded(value) if key in ("rhost", "tty", "ruser", "sets") else str(int(value))
        self.process.stdin.write(" ".join(f"{k}={v}" for k, v in words.items()) + "\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise HostDied(self.process.wait())
        return json.loads(line)

    def wait_for_prompt(self):
        self.wait_for("prompt")

    def wait_for(self, event):
        read = self.read()
        assert read == {"event": event}, read

    def verdict(self, live=None):
        raw = self.read()
        while raw.get("event") == "live":
            self.process.stdin.write(encoded(live(raw["text"])) + "\n")
            self.process.stdin.flush()
            raw = self.read()
        if "start" in raw:
            raise NotStarted(NAMES[raw["start"]])
        return Login(
            [NAMES[code] for code in raw["rcs"]], raw["prompts"], raw["ns"] / 1e9,
            dict(entry.split("=", 1) for entry in raw["env"]), raw["unused"], raw["unexpected"],
            raw["changed"])

    def login(self, service, user, *answers, live=None, **more):
        """One attempt. The module must leave the host as it found it, in every single one.

        `live` makes the answers LIVE of the last text that shows a secret."""
        self.send(service, user, *answers, **more)
        login = self.verdict(live)
        assert login.changed == ""
        return login

    def summary(self, service, user, *answers, repeat, **more):
        """`repeat` attempts (in each of `threads`): {name of return code: count}, [resident kB]."""
        self.send(service, user, *answers, repeat=repeat, **more)
        raw = self.read()
        return {NAMES[int(code)]: count for code, count in raw["verdicts"].items()}, raw["rss"]

    def close(self):
        """Ends the host; its exit status."""
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close()


class Barrier:
    """Lets any number of drivers go in the same instant."""

    def __init__(self):
        self.reader, self._writer = os.pipe()

    def release(self, count):
        os.write(self._writer, b"x" * count)

    def close(self):
        os.close(self.reader)
        os.close(self._writer)


class Crowd:
    """Processes that give their answers in the same instant."""

    def __init__(self, services, count, preexec=None):
        self._barrier = Barrier()
        self.drivers = [Driver(services, self._barrier, preexec=preexec) for _ in range(count)]

    def race(self, attempts):
        """Plays attempts[i] = (arguments, options) of Driver.send in process i, all at once."""
        self.wait_at_prompts(attempts)
        return self.answer()

    def wait_at_prompts(self, attempts):
        """As `race`, up to the moment before the answers."""
        for driver, (arguments, options) in zip(self.drivers, attempts, strict=True):
            driver.send(*arguments[:-1], Reply.at_barrier(arguments[-1]), **options)
        for driver in self.drivers:
            driver.wait_for_prompt()

    def answer(self):
        """Lets all answer at once; their logins."""
        self.release()
        return [driver.verdict() for driver in self.drivers]

    def release(self):
        self._barrier.release(len(self.drivers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for driver in self.drivers:
            driver.__exit__()
        self._barrier.close()
