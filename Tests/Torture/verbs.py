"""A fault at every system call of a command: the enrollment is the old or the new one, whole."""

import json
import shutil
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, Queue

import modules
from calls import FAULT, NUMBERS, faults_of, listed
from modules import BASE32, code
from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from record import when
from support.sallyport import COMMAND, Store, sallyport
from subjects import SERVICE, USER, Ours

OTHER = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # the second secret of RFC 6238's appendix B
OTHER_BYTES = b"12345678901234567890"
USUAL = ["--user", USER, "--allow-missing", "--no-confirm", "--json", "--secret-from", "-"]
USERS_OATH = "/tmp/torture/other.oath"
FRESH = ["--no-confirm", "--json", "--secret-from", "-"]
# verb: (its words, what is typed, what may stand afterwards beside what stood before)
VERBS = {
    "enroll": (["enroll", *USUAL], OTHER, "new"),
    "enroll --force": (["enroll", "--force", *USUAL], OTHER, "new"),
    "add": (["add", "--user", USER, "--name", "tablet", "--force", *FRESH], OTHER, "both"),
    "remove": (["remove", "--user", USER, "--name", "spare", "--force"], "", "without"),
    "backup-codes --regenerate": (
        ["backup-codes", "--regenerate", "--user", USER, "--json"], "", "codes"),
    "unenroll": (["unenroll", "--user", USER, "--force"], "", "none"),
    "import": (["import", "pam-oath", USERS_OATH, "--allow-missing", "--json"], "", "new"),
}
NEWCOMERS = {"enroll", "import"}  # the verbs for whom is not enrolled yet
# Where "from there on" is another fault than "once": the calls that are made again and again.
LASTING = {"fsync", "pwrite64", "openat", "renameat2", "flock", "fcntl"}
BEGIN = ["-b", str(NUMBERS["prctl"])]  # the command's first step: not dumpable


class Bed:
    """One store, put back before each case, and a healthy host beside it."""

    def __init__(self, setting, verb, number):
        self.setting, self.verb = setting, verb
        self.words, self.typed, self.after = VERBS[verb]
        place = setting.place(f"verbs-{verb.replace(' ', '')}-{number}")
        self.subject, self.template = Ours(place), place / "template"
        self.store = self.subject.store
        self._furnish()
        self.store.directory.rename(self.template)
        self.services = self.subject.services(setting.scratch / f"{place.name}.pam")
        self.healthy = Driver(self.services)
        self.at = int(time.time()) // 600 * 600 + 3600
        self.later = self.at + 600

    def _furnish(self):
        self.codes = []
        Store(self.store.directory).enroll("bystander", secret=BASE32)
        if self.verb not in NEWCOMERS:
            self.codes = self.store.enroll(USER, secret=BASE32).backup_codes
        if self.verb == "remove":
            self.store.add("spare", secret=OTHER)

    def put_back(self):
        shutil.rmtree(self.store.directory, ignore_errors=True)
        shutil.copytree(self.template, self.store.directory)

    def play(self, prefix):
        """(exit status or None, what it said) of the verb under a fault."""
        self.put_back()
        done = subprocess.run(
            [*prefix, COMMAND, *self.words, "--store", str(self.store.directory)],
            input=self.typed, capture_output=True, text=True, timeout=120)
        if done.returncode < 0:
            return ("hung" if done.returncode == -24 else None), ""
        return done.returncode, done.stdout if done.returncode == 0 else done.stderr + done.stdout

    def enters(self, answer, at=None):
        return self.healthy.login(SERVICE, USER, answer, at=at or self.later).result

    def examine(self, section, call, fault):
        status, said = self.play(fault.prefix(call, *BEGIN))
        stands, problems = self.standing(status, said)
        problems += self.next_verb(stands)
        problems.append(when(status == "hung", "hung", "more than 300,000 calls"))
        if status not in (0, None, "hung") and fault.error and not fault.kills:
            problems.append(silent(said, fault, call))
        section.case(f"{self.verb}, {call}, {fault}, exit {status}", *problems)
        return "died" if status is None else status

    # What stands, by logging in: the old secret, the new one, one backup code, each code once.

    def standing(self, status, said):
        # After it no slot of the state is torn, for which the codes of the moment count as used.
        wrong = self.enters("000000", self.at)
        problems = [when(wrong != AUTH_ERR, "locked out", f"a wrong code gives {wrong}")]
        old = self.enters(code(self.later))
        new = self.enters(code(self.later, OTHER_BYTES))
        backup = self.enters(self.codes[0]) if self.codes else AUTH_ERR
        for answer in (code(self.later), code(self.later, OTHER_BYTES), *self.codes[:1]):
            if self.enters(answer) == SUCCESS:
                problems.append(("accepted twice", "after the verb"))
        seen = tuple(result == SUCCESS for result in (old, new, backup))
        stands = {change: name for name, change in self.shapes().items()}.get(seen)
        if stands is None:
            problems.append(("half an enrollment", f"old, new, backup: {old}, {new}, {backup}"))
        if status == 0 and stands != "after":
            problems.append(("said done, was not", f"{stands} stands"))
        if status == 0 and self.after == "codes":
            fresh = json.loads(said)["backupCodes"][0]
            if self.enters(fresh) != SUCCESS:
                problems.append(("said done, was not", "a new backup code is refused"))
        return stands, problems

    def shapes(self):
        """(old code, new code, old backup code) are accepted: before the verb, and after it."""
        before = (self.verb not in NEWCOMERS, self.verb == "remove", bool(self.codes))
        after = {"new": (False, True, False), "both": (True, True, True),
                 "without": (True, False, True), "codes": (True, False, False),
                 "none": (False, False, False)}[self.after]
        return {"before": before, "after": after}

    def next_verb(self, stands):
        """The next verb works at once, and then nothing is left of what the fault left."""
        problems = []
        self.subject.age()
        done = sallyport("enroll", "--user", "newcomer", "--allow-missing", "--no-confirm",
                         "--json", "--store", self.store.directory)
        if done.returncode != 0:
            problems.append(("the next verb fails", done.stderr.strip()))
        litter = self.subject.litter()
        if litter:
            problems.append(("litter", ", ".join(litter[:3])))
        gone = {"new": BASE32, "without": OTHER, "none": BASE32}.get(self.after)
        mine = self.store.directory / "users" / USER
        text = "".join(path.read_bytes().decode("latin-1") for path in mine.glob("*"))
        if stands == "after" and self.verb not in NEWCOMERS and gone and gone in text:
            problems.append(("an old secret is left", str(mine)))
        return problems


def silent(said, fault, call):
    if "sallyport:" not in said:
        return "refused in silence", repr(said)
    if f"({fault.error})" not in said and "/store" in call.path:
        return "the message does not name it", said.strip().replace("\n", " / ")
    return None


def chosen(setting, verb, calls):
    """Every (call, fault): all of them at the store's files, some at what libraries do."""
    everything = []
    for call in calls:
        ours = "/verbs-" in call.path or call.name == "getrandom"
        faults = faults_of(call, call is calls[-1], repeats=call.name in LASTING)
        everything += [
            (call, fault) for fault in faults
            if ours or fault.kills or fault.label in ("EIO once", "EMFILE once", "ENOMEM once")]
    if not setting.short:
        return everything
    return setting.dice("verbs", verb).sample(everything, min(350, len(everything)))


def work(bed, section, queue, outcomes, lock):
    while True:
        try:
            call, fault = queue.get_nowait()
        except Empty:
            return bed.healthy.close()
        outcome = bed.examine(section, call, fault)
        with lock:
            outcomes[outcome] += 1


def run(section, setting):
    if not setting.ours:
        return section.skip("the commands are ours; the others have none that change one user")
    modules.put(Path(USERS_OATH), f"HOTP/T30/6\t{USER}\t-\t{OTHER_BYTES.hex()}\n")
    for verb in VERBS:
        if verb.split()[0] not in sallyport("--help").stdout:
            section.skip(f"this command has no {verb}")
            continue
        bed = Bed(setting, verb, "trace")
        trace = setting.scratch / "verb-calls"
        status, said = bed.play([FAULT, "-t", str(trace), *BEGIN])
        assert status == 0, said
        calls = listed(trace)
        bed.healthy.close()
        cases, outcomes = chosen(setting, verb, calls), Counter()
        queue, lock = Queue(), threading.Lock()
        for case in cases:
            queue.put(case)
        workers = [threading.Thread(target=work, args=(Bed(setting, verb, number), section, queue,
                                                       outcomes, lock)) for number in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        told = ", ".join(f"{count} exit {status}" for status, count in outcomes.most_common())
        section.note(f"{verb}: {len(calls)} system calls, {len(cases)} faults: {told}")
        assert queue.empty(), "the workers broke off"
