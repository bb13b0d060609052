"""Every way in of a machine, and what it does to an account when it is really tried."""

import re
from dataclasses import dataclass, field

import files
from dimensions import NAMED, NAMES
from ground import HERE, PROOF, THERE
from talk import WRONG, Stuck, Typist

ASKED, REFUSED, OPEN = "asked", "refused", "without-code"
SUDO = {"sudo": ("-u", "root"), "sudo -i": ("-i", "-u", "root"), "sudo -u web": ("-u", "web"),
        "sudo -i -u web": ("-i", "-u", "web"), "sudo NAMED": ("-u", "root")}
CALLED = (*SUDO, "doas", "pkexec")  # by the account itself, and root needs none of them
TARGET = {"sudo -u web": "web", "sudo -i -u web": "web"}
# doctor has these only where they let in more than the others.
VARIANT = {"sudo -i -u web": "sudo -u web", "sudo NAMED": "sudo"}
OF_HIS_SHELL = ("su", "su -", "login")
WAYS = {  # which of doctor's ways it is, by the service and by the name; those over ssh apart
    **{name: lambda service, called, name=name: called == name
       for name in ("sudo", "sudo -i", "su", "su -", "login", "doas")},
    "sudo -u web": lambda service, called: called == "sudo -u",
    "sudo -i -u web": lambda service, called: called == "sudo -i -u",
    "sudo NAMED": lambda service, called: called == "sudo, some commands",
    "pkexec": lambda service, called: called.startswith("pkexec"),
}
AGENT = HERE / "pkexec"
AGENT_TEXT = f"""#!/bin/sh
# The agent closes descriptor 3 once it is there.
fifo=$(mktemp -d)/fifo
mkfifo "$fifo"
pkttyagent --process $$ --notify-fd 3 3>"$fifo" &
cat "$fifo"
pkexec {PROOF}
kill $!
"""


@dataclass(frozen=True)
class Connection:
    """From where somebody comes over ssh; it stands at the end of the name of the way."""

    address: str

    @classmethod
    def of(cls, way):
        """None for another way."""
        found = re.fullmatch(r"sshd \S+(?: from (\S+))?", way)
        return cls(found[1] or "127.0.0.1") if found else None

    @property
    def mark(self):
        return "" if self.address == "127.0.0.1" else f" from {self.address}"

    @property
    def server(self):
        """The address that is called from there."""
        return "127.0.0.1" if self.address == "127.0.0.1" else THERE.server

    @staticmethod
    def methods_of(way):
        """"publickey,keyboard-interactive"; None for another way."""
        return way.split(" ")[1] if Connection.of(way) else None


HERE_AND_THERE = (Connection("127.0.0.1"), Connection(THERE.address))
FROM_THERE = ("alice", "git")  # who comes from both


@dataclass
class Cell:
    """What really happens to an account on a way. `talks`: the logins that were tried."""

    account: str
    way: str
    result: str
    why: str
    talks: list = field(default_factory=list)

    def evidence(self):
        return "\n".join(f"  login {number}: {talk.evidence()}"
                         for number, talk in enumerate(self.talks, 1))


class Ways:
    """Of one machine. Each cell begins with the store as the machine was built."""

    def __init__(self, ground, machine, enrollments, daemon, polkit=None):
        self.ground, self.machine, self.daemon, self.polkit = ground, machine, daemon, polkit
        self.enrollments = enrollments
        self.passwords = {person.name: files.password_of(person) for person in machine.people
                          if person.has_password}
        self.left_out = []  # (account, way, why)
        self.target = files.WEB[0]  # whom sudo -u becomes

    def cells(self):
        for person in self.machine.people:
            for way in self.names(person):
                self.ground.renew_store()
                yield self.cell(person, way)

    def names(self, person):
        over_ssh = [way for place in HERE_AND_THERE if not place.mark or person.name in FROM_THERE
                    for way in self._over_ssh(person, place)]
        called = [] if person.name == "root" else [
            way for way in CALLED if way != "pkexec" or self.polkit]
        return [*over_ssh, *called, "su", "su -", "login"]

    def _over_ssh(self, person, place):
        """Without the lists of which a shorter one is enough: its methods are offered as well."""
        lists = self.daemon.lists(person.name, place)
        for methods in lists:
            way = f"sshd {methods}{place.mark}"
            if any(set(other.split(",")) < set(methods.split(",")) for other in lists):
                self.left_out.append((person.name, way, "a shorter list lets in"))
            else:
                yield way

    # MARK: one cell

    def cell(self, person, way):
        """Where sudo asks for the code of the target, the worst of all targets."""
        cells = []
        for self.target in self._targets(person, way):
            self.ground.renew_store()
            cells.append(self._cell(person, way))
        return max(cells, key=lambda cell: (REFUSED, ASKED, OPEN).index(cell.result))

    def _targets(self, person, way):
        if way in TARGET and self.machine["sudoers"] == "targetpw":
            return [files.WEB[0], *(name for name in NAMES if name != person.name)]
        return [files.WEB[0]]

    def _cell(self, person, way):
        """First as somebody who has all but the code; then, if a code was asked for, with it."""
        stranger = self._log_in(person, way, WRONG)
        talks = [stranger]
        if stranger.is_in:
            why = "a wrong code was taken" if stranger.was_asked else "no code was asked for"
            return Cell(person.name, way, OPEN, why, talks)
        if "both" in stranger.asked:  # who needs no code types the password alone
            talks.append(self._log_in(person, way, ""))
            if talks[-1].is_in:
                return Cell(person.name, way, OPEN, "the password alone is enough", talks)
        if "set up" in stranger.asked:
            talks.append(self._log_in(person, way, WRONG, enrolls=True))
            if talks[-1].is_in:
                return Cell(person.name, way, OPEN, "who has no phone sets one up", talks)
        if stranger.was_asked:
            for code in self._codes(person, way):
                talks.append(self._log_in(person, way, code))
                if talks[-1].is_in:
                    return Cell(person.name, way, ASKED, "in with the code", talks)
        if Connection.methods_of(way) == "password":  # one field, which ends up at our prompt too
            for code in self._codes(person, way):
                # A code alone would be accepted once by a line that passes the password on.
                for typed in (f"{self.passwords.get(person.name, '')}{code}", code):
                    talks.append(self._log_in(person, way, WRONG, password=typed))
                    if talks[-1].is_in:
                        return Cell(person.name, way, ASKED, "in with the code in its field", talks)
        return Cell(person.name, way, REFUSED, talks[-1].note or "no code helps", talks)

    def _log_in(self, person, way, code, enrolls=False, password=None):
        """`password`: what is typed in its place."""
        shells = {one.name: one["shell"] for one in self.machine.people}
        whose = {way: person.name for way in OF_HIS_SHELL} | {"sudo -i -u web": self.target}
        has_shell = shells.get(whose.get(way), "/bin/sh") == "/bin/sh"
        passwords = self.passwords | ({person.name: password} if password else {})
        typist = Typist(person.name, passwords, code, enrolls, has_shell,
                        whose=self._asked_for(person, way),
                        open_names=tuple(one.name for one in self.machine.people
                                         if one["password"] == "empty"))
        talk = typist.log_in(self.command(person, way))
        if way in SUDO and {"change", "new"} & {*talk.asked} and not self._has_rule(person, way):
            # sudo looks for a rule after that.
            talk.user, talk.note = None, "no rule, whatever the new password is"
        if talk.is_in and talk.user not in self._users(person, way):
            raise Stuck(f"{person.name} by {way} became {talk.user}:\n{talk.evidence()}")
        return talk

    def _has_rule(self, person, way):
        if person.name == "alice" and self.machine["sudoers"] == "the last rule counts":
            return True
        target = self.target if way in TARGET else "root"
        usual = files.WEB[0] if self.machine["sudoers"] == "web by default" else "root"
        return {"no rule": False, "as web alone": target == files.WEB[0],
                "without a target": target == usual}.get(person["sudo"], True)

    def _users(self, person, way):
        """Whose shell may begin; his own where only a new password is in the way."""
        target = "root" if way in CALLED else person.name
        return {self.target if way in TARGET else target, person.name}

    def _codes(self, person, way):
        """One of each kind that he has whose code is asked for: the policy may turn a kind off."""
        enrollment = self.enrollments.get(self._asked_for(person, way))
        if enrollment is not None:
            yield from enrollment.backup_codes[:1]
            yield enrollment.code()

    def _asked_for(self, person, way):
        by = {"rootpw": "root", "targetpw": self.target if way in TARGET else "root",
              "runaspw for one command": "root" if way == "sudo NAMED" else person.name}
        return by.get(self.machine["sudoers"], person.name) if way in SUDO else person.name

    # MARK: commands

    def command(self, person, way):
        if place := Connection.of(way):
            return self._ssh(person.name, Connection.methods_of(way).split(","), place)
        if way in SUDO:
            words = (self.target if word == files.WEB[0] else word for word in SUDO[way])
            program = NAMED if way == "sudo NAMED" else PROOF
            return [*self._as(person.uid), "sudo", "-k", *words, program]
        if way == "doas":
            return [*self._as(person.uid), "doas", PROOF]
        if way == "pkexec":  # which refuses where SHELL is none of /etc/shells
            return [*self._as(person.uid), "env", "SHELL=/bin/sh", AGENT]
        if way == "login":  # as root started it, like getty
            return ["login", person.name]
        dash = ["-"] if way == "su -" else []
        return [*self._as(files.CALLER[1]), "su", *dash, person.name, "-c", PROOF]

    @staticmethod
    def _as(uid):
        """A process of that account, with its groups: sudo goes by those of the process."""
        return ["setpriv", "--reuid", uid, "--regid", uid, "--init-groups", "--reset-env"]

    def _ssh(self, name, methods, place):
        """The client offers these methods, and no other."""
        def on(method):
            return "yes" if method in methods else "no"
        options = [
            "IdentitiesOnly=yes", "StrictHostKeyChecking=no", "LogLevel=VERBOSE",
            f"UserKnownHostsFile={self.daemon.directory}/known", "NumberOfPasswordPrompts=1",
            f"PreferredAuthentications={','.join(dict.fromkeys(methods))}",
            f"PubkeyAuthentication={on('publickey')}",
            f"PasswordAuthentication={on('password')}",
            f"KbdInteractiveAuthentication={on('keyboard-interactive')}"]
        there = THERE.enter() if place.mark else []
        return [*there, "ssh", "-F", "none", "-tt", "-p", self.daemon.port, "-i", self.ground.key,
                *(word for option in options for word in ("-o", option)),
                f"{name}@{place.server}", PROOF]
