"""Many at once: what happened is written down, and must fit some order of one after the other."""

import os
import signal
import subprocess
import time
from collections import Counter

import meanwhile
from managed import SECRETS, Managed, check, code_of
from support.pam_driver import AUTH_ERR, SUCCESS, Crowd, Driver, HostDied
from record import when
from support.sallyport import COMMAND
from subjects import SERVICE, USER, Answers, Ours, result_of

CROWD = 64


def same_answer(section, setting, kind, rounds):
    """64 processes, one answer."""
    subject = setting.kind(setting.place(f"races-{kind}"))
    answers = Answers(subject, kind, int(time.time()) // 600 * 600 + 3600)
    slowest, entered = 0.0, Counter()
    with Crowd(subject.services(setting.scratch / f"races-{kind}.pam"), CROWD) as crowd:
        for turn in range(rounds):
            at, answer = answers.next()
            logins = crowd.race([((SERVICE, USER, answer), {"at": at})] * CROWD)
            found = Counter(login.result for login in logins)
            slowest = max([slowest, *(login.seconds for login in logins)])
            entered[found[SUCCESS]] += 1
            others = {result: count for result, count in found.items()
                      if result not in (SUCCESS, AUTH_ERR)}
            section.case(
                f"{kind}, {CROWD} at once, round {turn}",
                when(found[SUCCESS] > 1, "accepted twice", f"{found[SUCCESS]} of {CROWD}"),
                when(found[SUCCESS] == 0, "locked out", "nobody got in"),
                when(others, "trouble", str(others)))
            if kind == "hotp":
                subject.forgive(USER)
    damage, litter = subject.damage(), subject.litter()
    section.case(f"{kind}, the files afterwards", when(damage, "damage", damage),
                 when(litter, "litter", ", ".join(litter[:3])))
    section.note(f"{kind}: {rounds} rounds of {CROWD}: entered {dict(entered)}, "
                 f"slowest {slowest:.2f} s")


def signalled(section, setting, rounds):
    """Of 24 processes with one code some are killed or stopped for a while, at any moment."""
    subject = setting.kind(setting.place("races-signals"))
    answers = Answers(subject, "totp", int(time.time()) // 600 * 600 + 3600)
    dice, seen = setting.dice("signals"), Counter()
    services = subject.services(setting.scratch / "races-signals.pam")
    for turn in range(rounds):
        at, answer = answers.next()
        victims = dice.sample(range(24), 12)
        with Crowd(services, 24) as crowd:
            crowd.wait_at_prompts([((SERVICE, USER, answer), {"at": at})] * 24)
            crowd.release()
            for victim in victims[:8]:
                os.kill(crowd.drivers[victim].process.pid, signal.SIGKILL)
            for word in (signal.SIGSTOP, signal.SIGCONT):
                for victim in victims[8:]:
                    os.kill(crowd.drivers[victim].process.pid, word)
            results = Counter(verdict_of(driver) for driver in crowd.drivers)
        with Driver(services) as driver:
            again = result_of(driver, USER, answer, at)
            at, answer = answers.next()
            later = result_of(driver, USER, answer, at)
        seen.update(results)
        successes = results[SUCCESS] + (again == SUCCESS)
        section.case(
            f"signals, round {turn}",
            when(successes > 1, "accepted twice", f"{successes} times"),
            when(later != SUCCESS, "locked out", f"the next code: {later}"))
    section.note(f"24 at once, 8 killed, 4 stopped for a while, {rounds} rounds: {dict(seen)}")


def verdict_of(driver):
    try:
        return driver.verdict().result
    except HostDied:
        return "died"


def two_enrolls(section, setting, rounds):
    """Two at once: one enrolls, the other is told so; or with force, and the later one stays."""
    subject = Ours(setting.place("races-enroll"))
    services = subject.services(setting.scratch / "races-enroll.pam")
    at = int(time.time()) // 600 * 600 + 3600
    fresh = ["--no-confirm", "--json", "--allow-missing", "--secret-from", "-"]
    with Driver(services) as driver:
        for turn in range(rounds):
            force = ["--force"] if turn % 2 else []
            user = f"user{turn}"
            words = [COMMAND, "enroll", "--user", user, *force, *fresh, "--store", subject.root]
            running = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True) for _ in range(2)]
            for process, name in zip(running, ("first", "second")):
                process.stdin.write(SECRETS[name][0])
                process.stdin.close()
            exits = sorted(process.wait() for process in running)
            for process in running:
                process.stdout.close()
                process.stderr.close()
            results = sorted(result_of(driver, user, code_of(name, at), at)
                             for name in ("first", "second"))
            # Whom the second found not enrolled, and then enrolled, it leaves as he is.
            wanted = ([0, 0], [0, 73]) if force else ([0, 73],)
            section.case(f"two enrolls{' --force' if force else ''}, round {turn}",
                         when(exits not in wanted, "exit status", str(exits)),
                         when(results != [AUTH_ERR, SUCCESS], "not one of two", str(results)))
    litter = subject.litter()
    section.case("two enrolls, the files", when(litter, "litter", str(litter)))


def run(section, setting):
    rounds = {"totp": 150, "hotp": 50, "backup": 100}
    for kind in setting.kind.kinds:
        same_answer(section, setting, kind, 25 if setting.short else rounds[kind])
    signalled(section, setting, 30 if setting.short else 150)
    if not setting.ours:
        return section.skip("the commands are ours: logins during changes are not raced")
    two_enrolls(section, setting, 20 if setting.short else 60)
    meanwhile.due_at_once(section, setting, 30 if setting.short else 90)
    meanwhile.imports(section, setting, 5 if setting.short else 25)
    managed = Managed(setting)
    managed.play(20 if setting.short else 120)
    entered = check(section, managed.events)
    verbs = Counter(event.what for event in managed.events)
    section.note(f"managed meanwhile: {dict(verbs)}, {entered} logins entered")
    assert entered > 0
