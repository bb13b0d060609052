"""A fault at every system call of a login; afterwards nothing is lost and no code is good twice."""

import errno
import os
import time
from collections import Counter

from calls import FAULT, faults_of, listed
from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver, HostDied
from record import when
from subjects import SERVICE, USER, Answers, result_of

DIED = "died"
AUDIT = "PAM_SYSTEM_ERR"  # libpam's answer, after the module's, where its audit record fails
SLOW = 4.0  # seconds; a lock that nobody holds any more is had at once


class Faulty:
    """One module and one kind of answer; a healthy host beside the ones that are broken."""

    def __init__(self, setting, kind):
        self.setting, self.kind, self.sink = setting, kind, setting.sink
        self.subject = setting.kind(setting.place(f"{type(self).__name__}-{kind}"))
        self.services = self.subject.services(setting.scratch / f"{type(self).__name__}-{kind}.pam")
        self.answers = Answers(self.subject, kind, int(time.time()) // 600 * 600 + 3600)
        self.healthy = Driver(self.services)

    def calls(self):
        """The calls of an undisturbed login, in a host that has just been started."""
        at, answer = self.answers.next()
        trace = self.setting.scratch / "calls"
        result, _, _ = self.play([FAULT, "-t", str(trace)], answer, at)
        assert result == SUCCESS, f"an undisturbed login gave {result}"
        return listed(trace)

    def play(self, prefix, answer, at):
        """(result, what was changed in the host, the log) of a login in a fresh host."""
        self.sink.flush()
        start = len(self.sink.lines)
        with Driver(self.services, prefix=prefix) as driver:
            try:
                driver.send(SERVICE, USER, answer, at=at, mark=1)
                login = driver.verdict()
                result, changed = login.result, login.changed
            except HostDied as death:
                result, changed = DIED, ""
                if death.args == (-24,):
                    result = "hung"
        self.sink.flush()
        lines = [line for line in self.sink.lines[start:]
                 if line.pid == driver.process.pid and self.subject.log in line.text]
        return result, changed, lines

    def again(self, answer, at):
        begun = time.monotonic()
        result = result_of(self.healthy, USER, answer, at)
        return result, time.monotonic() - begun

    def examine(self, section, call, fault, outcomes):
        at, answer = self.answers.next()
        result, changed, lines = self.play(fault.prefix(call), answer, at)
        second, slowest = self.again(answer, at)
        third, _ = self.again(answer, at)
        at, answer = self.answers.next()
        later, _ = self.again(answer, at)
        outcomes[result] += 1
        damage = self.subject.fixed(self.answers, later == SUCCESS)
        section.case(
            f"{self.kind}, {call}, {fault}",
            twice(result, second, third), shut_out(second, later),
            refused_in_silence(self.subject, result, second, call, fault, lines),
            host_changed(call, changed), when(damage, "damage", damage),
            when(result == "hung", "hung", "more than 300,000 calls"),
            when(slowest > SLOW, "stale lock", f"{slowest:.1f} s"))

    def finish(self, section):
        litter, damage = self.subject.litter(), self.subject.damage()
        section.case(f"{self.kind}, the files after all of it",
                     when(litter, "litter", ", ".join(litter[:3]) + f" ({len(litter)})"),
                     when(damage, "damage", damage))
        self.healthy.close()


def twice(first, second, third):
    if [first, second, third].count(SUCCESS) > 1:
        return "accepted twice", f"{first}, {second}, {third}"
    return None


def shut_out(second, later):
    """Nothing is broken any more."""
    if second not in (SUCCESS, AUTH_ERR):
        return "locked out", f"the same code, without a fault: {second}"
    if later != SUCCESS:
        return "locked out", f"the next right code: {later}"
    return None


def host_changed(call, changed):
    """libc itself closes the log's socket where sending fails."""
    if not changed or call.name == "sendto":
        return None
    before, _, after = changed.partition(" became ")
    differing = zip(before.split("\n"), after.split("\n"))
    return "changed the host", "; ".join(f"{a} became {b}" for a, b in differing if a != b)


def refused_in_silence(subject, result, second, call, fault, lines):
    """A right code that was refused is refused as trouble, and the log names it."""
    if result in (SUCCESS, DIED, "hung", AUDIT) or fault.kills:
        return None
    text = " / ".join(line.text for line in lines)
    if fault.error and (fault.error in text or os.strerror(getattr(errno, fault.error)) in text):
        return None
    if result == AUTH_ERR and second == SUCCESS and subject.calls_it_wrong(text):
        return "a right code called wrong", text or "and nothing in the log"
    if call.name in ("sendto", "sendmsg", "socket", "connect") and not lines:
        return None  # the log itself is what is broken
    if not lines:
        return "refused in silence", f"{result}, and nothing in the log"
    if fault.error and str(subject.root) in call.path:
        return "the log does not name it", f"{result}: {text}"
    return None


def chosen(setting, kind, calls):
    """Every (call, fault); in short a part of them, by the dice, kills first."""
    everything = [(call, fault) for call in calls for fault in faults_of(call, call is calls[-1])]
    if not setting.short:
        return everything
    part = 1500 if kind == "totp" else 250
    return setting.dice("faults", kind).sample(everything, min(part, len(everything)))


def run(section, setting):
    for kind in setting.kind.kinds:
        faulty = Faulty(setting, kind)
        calls, outcomes = faulty.calls(), Counter()
        cases = chosen(setting, kind, calls)
        for call, fault in cases:
            faulty.examine(section, call, fault, outcomes)
        faulty.finish(section)
        told = ", ".join(f"{count} {result}" for result, count in outcomes.most_common())
        section.note(f"{kind}: {len(calls)} system calls, {len(cases)} faults: {told}")
        assert TROUBLE in outcomes or not setting.ours, "no fault was felt"
