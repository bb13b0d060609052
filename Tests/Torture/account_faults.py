"""A fault at every system call of an account phase: one that enrolls, completes, remembers, asks.

Never half an enrollment, never a yes under `required` without one, no code twice, and the next
attempt works.
"""

import base64
import re
import shutil
import threading
import time
from collections import Counter

from calls import FAULT, faults_of, listed
from faults import DIED, SLOW, host_changed, refused_in_silence
from modules import BASE32, code
from support.pam_driver import AUTH_ERR, LIVE, SUCCESS, Driver, HostDied
from record import when
from support.sallyport import MODULE, Services, sallyport
from subjects import Ours, counter_code

USER, HERE, ELSEWHERE = "nobody", "192.0.2.7", "198.51.100.9"  # a real account
KEY = "SSH_AUTH_INFO_0=publickey ssh-ed25519 AAAA"
# kind: (policy, word of the account line, phases, what is answered; `code` stands for a right one)
KINDS = {
    "enrolling": ("enrollment = required", "", ("auth", "acct"), ("y", LIVE, "")),
    "completing": ("enrollment = required\nfactor_hotp = mandatory", "", ("auth", "acct"),
                   (code, "y", LIVE)),
    "remembering": ("remember = 30d", "", ("auth", "acct"), (code,)),
    "demanding": ("", "demand", ("acct",), (code,)),
}
BEDS = 2  # as many processors are used
LASTING = {"fsync", "fdatasync", "pwrite64", "openat", "renameat2", "flock", "fcntl"}


def raw(uri):
    return base64.b32decode(re.search(r"secret=([A-Z2-7]+)", uri).group(1))


class Bed:
    """One store, put back before each case, and a healthy host beside the broken ones."""

    def __init__(self, setting, kind, number):
        self.kind, self.number, self.sink, self.slowest = kind, number, setting.sink, 0.0
        policy, word, self.phases, self.answers = KINDS[kind]
        place = setting.place(f"account-{kind}-{number}")
        self.subject, self.template = Ours(place), place / "template"
        self.subject.store.enroll("bystander", secret=BASE32)
        if kind != "enrolling":
            self.subject.store.enroll(USER, secret=BASE32)
        conf = place / "policy.conf"
        conf.write_text(f"[default]\n{policy}\n")
        services = Services(place / "pam.d")
        ours = f"{self.subject.line()} conf={conf}"
        services.write("sshd", f"auth {ours} enroll", f"account {ours} {word}",
                       "account required pam_permit.so")
        self.services, self.healthy = services, Driver(services)
        self.at = int(time.time()) // 600 * 600 + 3600
        if kind != "enrolling" and number == 1:  # the other of the state's two slots
            assert self.tried(code(self.at - 600), self.at - 600, ELSEWHERE)[0] == SUCCESS
        shutil.copytree(self.subject.root, self.template)

    def put_back(self):
        shutil.rmtree(self.subject.root, ignore_errors=True)
        shutil.copytree(self.template, self.subject.root)

    def log_in(self, driver, answers, at, phases, rhost=HERE, mark=None):
        """The login; `uri` is then the one that was shown in it, if one was."""
        self.uri = None

        def live(uri):
            self.uri = uri
            return counter_code(0, raw(uri)) if "://hotp" in uri else code(at, raw(uri))
        typed = [answer(at) if answer is code else answer for answer in answers]
        driver.send("sshd", USER, *typed, at=at, phases=phases, rhost=rhost, mark=mark, sets=KEY)
        return driver.verdict(live)

    def play(self, prefix=(), env=None):
        """(result of the account phase, what was changed in the host, the log) in a fresh host."""
        self.put_back()
        start = len(self.sink.lines)
        with Driver(self.services, prefix=prefix, env=env) as driver:
            try:
                login = self.log_in(driver, self.answers, self.at, self.phases,
                                    mark=len(self.phases))
                result, changed = login.results[-1], login.changed
            except (HostDied, BrokenPipeError):
                status = driver.process.wait()
                result, changed = "hung" if status == -24 else DIED, ""
        self.sink.flush()
        lines = [line for line in self.sink.lines[start:]
                 if line.pid == driver.process.pid and self.subject.log in line.text]
        return result, changed, lines

    def tried(self, answer, at, rhost=HERE):
        """The answer of a healthy auth phase."""
        begun = time.monotonic()
        login = self.log_in(self.healthy, (answer,), at, ("auth",), rhost)
        self.slowest = max(self.slowest, time.monotonic() - begun)
        return login.results[0], login.prompts

    def examine(self, section, call, fault):
        result, changed, lines = self.play(fault.prefix(call))
        saves = call.name in ("pwrite64", "fdatasync")
        section.case(
            f"{self.kind}, {call}, {fault}: {result}", *self.verified(result, saves),
            refused_in_silence(self.subject, result, None, call, fault, lines),
            host_changed(call, changed))
        return result

    def starve(self, section, what, env):
        """The same when out of memory."""
        result, changed, _ = self.play(env=env)
        section.case(f"{self.kind}, {what}: {result}", *self.verified(result, False),
                     when(changed, "changed the host", changed))
        return result

    def verified(self, result, saves):
        """What is wrong afterwards. `saves`: it was a save that was broken."""
        self.slowest = 0.0
        problems = {"enrolling": self.enrolled, "completing": self.completed,
                    "remembering": self.granted, "demanding": self.asked}[self.kind](result, saves)
        return [*problems, self.half(), self.next_verb(),
                when(result == "hung", "hung", "more than 300,000 calls"),
                when(self.slowest > SLOW, "stale lock", f"{self.slowest:.1f} s")]

    # What stands afterwards, by logging in.

    def half(self):
        place = self.subject.root / "users" / USER
        names = sorted(path.name for path in place.iterdir()) if place.exists() else []
        return when(names not in ([], ["enrollment", "state"]), "half an enrollment", str(names))

    def enrolled(self, result, _):
        uri, there = self.uri, (self.subject.root / "users" / USER).exists()
        yield when(result == SUCCESS and not there, "a yes without an enrollment", result)
        if there:
            yield from self.used(lambda at: code(at, raw(uri)))
            return
        again = self.log_in(self.healthy, self.answers, self.at + 600, self.phases)
        yield when(again.results != [SUCCESS] * 2, "locked out", f"enrolling again: {again.results}")

    def completed(self, result, _):
        uri = self.uri
        yield from self.used(code)
        if uri is None:
            yield when(result == SUCCESS, "a yes without a second kind", result)
            return
        again, _ = self.tried(counter_code(0, raw(uri)), self.at)
        later, _ = self.tried(counter_code(1, raw(uri)), self.at)
        yield when(again == SUCCESS, "accepted twice", "the first HOTP code")
        yield when(result == SUCCESS and later != SUCCESS, "said done, was not", later)
        if later != SUCCESS:
            again = self.log_in(self.healthy, self.answers, self.at + 1200, self.phases)
            yield when(again.results != [SUCCESS] * 2, "locked out", f"completing: {again.results}")

    def granted(self, result, saves):
        """What cannot be saved is asked again: nobody is refused for that."""
        yield when(saves and result not in (SUCCESS, DIED), "refused for a grant", result)
        yield from self.used(code, ELSEWHERE)
        here, prompts = self.tried("000000", self.at)
        yield when(here == SUCCESS and prompts, "a wrong code accepted", here)

    def asked(self, result, _):
        again = self.log_in(self.healthy, (code,), self.at, ("acct",)).results[0]
        third, _ = self.tried(code(self.at), self.at)
        found = [result, again, third]
        yield when(found.count(SUCCESS) > 1, "accepted twice", str(found))
        later, _ = self.tried(code(self.at + 600), self.at + 600)
        yield when(later != SUCCESS, "locked out", f"the next right code: {later}")

    def used(self, right, rhost=HERE):
        """The code of this login is used up, the next one is good."""
        again, _ = self.tried(right(self.at), self.at, rhost)
        later, _ = self.tried(right(self.at + 600), self.at + 600, rhost)
        yield when(again == SUCCESS, "accepted twice", "the code of the login")
        yield when(again not in (SUCCESS, AUTH_ERR), "locked out", f"the same code: {again}")
        yield when(later != SUCCESS, "locked out", f"the next right code: {later}")

    def next_verb(self):
        """The next verb works at once, and wipes what a kill has left."""
        self.subject.age()
        done = sallyport("enroll", "--user", "newcomer", "--allow-missing", "--no-confirm",
                         "--json", "--store", self.subject.root)
        if done.returncode != 0:
            return "the next verb fails", done.stderr.strip()
        litter = self.subject.account_litter(USER)
        return when(litter, "litter", ", ".join(litter[:3]))


def chosen(setting, bed, calls):
    """Every (call, fault): all of them at the store's files, some at what libraries do. Each bed
    has the half of them."""
    everything = []
    for call in calls:
        ours = "/account-" in call.path or call.name == "getrandom"
        everything += [
            (call, fault)
            for fault in faults_of(call, call is calls[-1], repeats=call.name in LASTING)
            if ours or fault.kills or fault.label in ("EIO once", "EMFILE once", "ENOMEM once")]
    half = everything[(setting.seed + bed.number) % BEDS::BEDS]
    if not setting.short:
        return half
    return setting.dice("account", bed.kind).sample(half, min(300 // BEDS, len(half)))


def play(section, setting, kind, number, counts, outcomes):
    """Beds differ in the slot of the state that is written, and so in their calls."""
    bed = Bed(setting, kind, number)
    trace = setting.scratch / f"account-calls-{number}"
    result, _, lines = bed.play([FAULT, "-t", str(trace)])
    assert result == SUCCESS, f"an undisturbed {kind} gave {result}: {lines}"
    calls = listed(trace)
    found = [bed.examine(section, call, fault) for call, fault in chosen(setting, bed, calls)]
    bed.healthy.close()
    counts[number] = len(calls)
    outcomes.update(found)


def run(section, setting):
    if not setting.ours:
        return section.skip("the others have no account phase")
    for kind in KINDS:
        counts, outcomes = {}, Counter()
        workers = [threading.Thread(target=play, args=(section, setting, kind, number, counts,
                                                       outcomes)) for number in range(BEDS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(counts) == BEDS, "a worker broke off"
        told = ", ".join(f"{count} {result}" for result, count in outcomes.most_common())
        section.note(f"account phase, {kind}: {max(counts.values())} system calls, "
                     f"{outcomes.total()} faults: {told}")
