"""One login on a terminal: what was asked, what was answered, whose shell began."""

import os
import re
import time
from dataclasses import dataclass, field

import pexpect

from support.sallyport import first_code
from support.typist import Child

# A backup code by its form, of nobody: refused as a wrong code, and costs nothing.
WRONG = "0000-0000-0000-000A"
LONGEST = 30  # seconds for one login
PROMPTS = {
    "change": r"[Cc]urrent password: ?$",
    "new": r"[Nn]ew password: ?$",
    "password": r"[Pp]assword(?: for ([^\s:]+))?: ?$",
    "both": r"Password & (?:verification|backup) code: ?$",
    "code": r"(?:Verification|Backup) code: ?$",
    "throttled": r"Too many wrong codes\.[^\n]*: ?$",
    "set up": r"Set it up now\? \[([^]]*)\]: ?$",
    "first": r"Code shown by the app: ?$",
    "written": r"Press Enter when you have them: ?$",
    "who": r"Choose identity to authenticate as \(1-\d+\): ?$",
    "again": r"(?m)^(?:\S+ )?login: ?$",
    "let in": r"Authenticated to \S+",  # as ssh says it; what follows needs no shell
    "in": r"IN-42 (\S+)",
}
HIDDEN = ("password", "both", "code")  # typed where nothing is shown


@dataclass
class Talk:
    """`asked`: the kinds of prompts, in order. `user`: whose shell began, if one did."""

    asked: list = field(default_factory=list)
    user: str | None = None
    text: str = ""
    note: str = ""  # what ended it, where that was no refusal of the program's

    @property
    def is_in(self):
        return self.user is not None

    @property
    def was_asked(self):
        return "code" in self.asked or "both" in self.asked

    def evidence(self):
        """In one line, and the last lines that were shown."""
        end = f"in as {self.user}" if self.is_in else self.note or "refused"
        shown = [line for line in self.text.replace("\r", "").splitlines() if line.strip()]
        head = f"{' > '.join(self.asked) or 'nothing asked'} > {end}"
        return "\n".join([head, *(f"    | {line[:110]}" for line in shown[-6:])])


class Stuck(Exception):
    """A prompt that nobody here knows: a fault of the harness, and no result of a cell."""


@dataclass
class Typist:
    """Answers as somebody who knows the passwords and has `code`; `enrolls`: sets up a phone where
    the login offers it. `name`: whose password is meant where the prompt names nobody.
    `has_shell`: whether anything begins after a new password, at which a login ends here."""

    name: str
    passwords: dict  # by account
    code: str = WRONG
    enrolls: bool = False
    has_shell: bool = True
    whose: str = ""  # whose password belongs before the code, in one field for both
    open_names: tuple = ()  # who has an empty password: anybody may choose to be one of them

    def log_in(self, command, **more):
        talk = Talk()
        child = Child(command, timeout=LONGEST, dimensions=(60, 200),
                      env={**os.environ, "TERM": "linux", "LC_ALL": "C.UTF-8"}, **more)
        try:
            self._until_the_end(child, talk, time.monotonic() + LONGEST)
        finally:
            child.close(force=True)
        return talk

    def _until_the_end(self, child, talk, deadline):
        kinds = list(PROMPTS)
        while True:
            seen = child.expect([*PROMPTS.values(), pexpect.EOF, pexpect.TIMEOUT])
            talk.text += child.before if isinstance(child.before, str) else ""
            if seen == len(kinds) or talk.is_in and seen > len(kinds):
                return
            if seen > len(kinds) or time.monotonic() > deadline:
                raise Stuck(f"{' > '.join(talk.asked)}: {talk.text[-400:]!r}")
            kind = kinds[seen]
            talk.text += child.after
            if kind == "in":
                talk.user = child.match[1]
            elif kind == "let in":
                # Nothing is forwarded before a new password is set: by who knows the old one.
                if "required to change your password" not in talk.text:
                    talk.user = self.name
                    return
            elif kind == "throttled":  # nothing that was typed here was charged
                raise Stuck(f"{' > '.join(talk.asked)}: throttled at once: {talk.text[-400:]!r}")
            elif kind == "again":
                if "incorrect" in talk.text:  # login's next try, and no `Last login: `
                    return
            elif self._is_over(kind, talk):
                return
            else:
                talk.asked.append(kind)
                send = child.answer if kind in HIDDEN else child.sendline
                send(self._answer(kind, child.match, talk))

    def _is_over(self, kind, talk):
        """Whether no answer of ours leads on from here."""
        if kind in ("change", "new"):  # only who has come in is asked; a blank one is not asked for
            talk.asked.append(kind)
            talk.note = "a new password is asked for"
            found = re.search(r"Changing password for (\S+?)\.?\s", talk.text)
            whose = found[1] if found else self.name  # root's, where sudo asks for root's
            if self.has_shell and (kind == "new" or whose in self.passwords):
                talk.user = self.name
            return True
        if kind == "who" and self._number(talk) is None:
            talk.note = "none of the identities is his"
        if kind == "password" and self._other(talk):
            talk.note = f"asks for {self._other(talk)}"
        return talk.note != ""

    def _answer(self, kind, match, talk):
        if kind == "password":
            return self.passwords.get(match[1] or self.name, "no horse at all")
        if kind == "code":
            # Once: a code is one login, and an empty answer ends sshd's further tries.
            return self.code if talk.asked.count("code") == 1 else ""
        if kind == "both":
            password = self.passwords.get(self.whose or self.name, "no horse at all")
            return f"{password}{self.code}" if talk.asked.count("both") == 1 else ""
        if kind == "set up":
            return "y" if self.enrolls else ("n" if match[1] == "y/n" else "")
        if kind == "first":
            return first_code(talk.text) if self.enrolls else ""
        return self._number(talk) if kind == "who" else ""

    def _other(self, talk):
        """Whom polkit's agent authenticates, if there is one to choose from and it is not us."""
        found = re.search(r"Authenticating as: (?:.*\()?([^\s()]+)\)?\s", talk.text)
        return found[1] if found and found[1] != self.name else None

    def _number(self, talk):
        """Ours among the identities that polkit's agent offers, or else one without a password."""
        rows = re.findall(r"(?m)^\s*(\d+)\.\s+(?:.*\()?([^\s()]+)\)?\s*$",
                          talk.text.replace("\r", ""))
        numbers = {name: number for number, name in rows}
        return next((numbers[name] for name in (self.name, *self.open_names) if name in numbers),
                    None)
