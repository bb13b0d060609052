"""The tests of rings 1 to 3 against one mutant, up to the first that fails."""

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from build import COPY

# The tests nearest to a target: they run first.
NEAREST = {
    "OneTimePassword": "OneTimePasswordTests", "CLibcrypto": "OneTimePasswordTests",
    "SallyportCore": "SallyportCoreTests", "SallyportSystem": "SallyportSystemTests",
    "CSystem": "SallyportSystemTests", "CQRCodeGen": "SallyportCLITests",
    "SallyportLogin": "PAMSallyportTests", "PAMSallyport": "PAMSallyportTests", "pam_sallyport": None, "CLinuxPAM": None,
    "SallyportAdministration": "SallyportAdministrationTests", "SessionProtocol": "SessionProtocolTests",
    "SallyportSession": "SallyportSessionTests", "SallyportDoctor": "SallyportDoctorTests",
}
# Where the tests of a file are not in one of its name, its own are these.
OWN = {
    "PolicyFile": "PolicyTests", "PolicyRules": "PolicyTests", "PolicyValue": "PolicyTests",
    "PolicyKey": "PolicyTests", "NumericAddress": "PolicyTests", "UnixTime": "PolicyTests",
    "EnrollmentReader": "EnrollmentFormatTests", "EnrollmentWriter": "EnrollmentFormatTests",
    "OtpauthURIWriter": "OtpauthURITests",
    "StateFields": "StateRecordTests", "Match": "DecisionTests", "Origin": "LoginStateTests",
    "UnenrolledAction": "(Account|PolicyFlow)Tests", "Factors": "AccountTests", "Policy": "PolicyFlowTests",
    "Enroll": "AccountTests", "EnrollAuthenticator": "AccountTests", "RecordAuthority": "AuthenticateTests",
    "PendingLogin": "(Authenticate|ServiceAuthority)Tests", "Draft": "(Account|Draft)Tests",
    "ManageAccount": "AccountTests", "Login": "AuthenticateTests", "LogMessages": "AuthenticateTests",
    "StoreTransaction": "TransactionTests", "StoredFile": "TransactionTests",
    "QuestionFields": "LoginQuestionTests",
    "AnswerFields": "ServiceAnswerTests", "Shape": "ServiceAnswerTests",
    "WireFields": "(LoginQuestion|ServiceAnswer)Tests",
    "Permission": "PermissionTests", "HelpPermission": "PermissionTests", "BlockText": "BlockTextTests", "Redaction": "PersonRequestTests", "ChangeRequest": "FrameTests",
    "DaemonFindings": "DoctorDaemonTests",
    "StoreManagement": "(Management|LoginChanges)Tests",
    "StoreFiles": "(Management|LoginChanges|Preparation)Tests", "Descriptor": "ManagementTests",
}
# The tests among them that go through thousands of texts or years: after the others.
SLOW = ("(EnrollmentFormat|OtpauthURI|DamagedPolicy|Policy|Throttle|SlipYear|StateRecord|Name|Resync"
        "|Management|OneField)Tests")
# No mutant can fail these, which take half the time of rings 1 and 2: they walk PAM's stacks, and no
# code runs in them that enters the module.
STACKS = (r"/(StackTrial|EnableTrial|Reality|Distribution|Enable)Tests\.swift"
          r"|SallyportCLITests.*/OneFieldTests\.swift")
# Seconds; above the limit that most tests have of their own. The whole rings have one by what they
# take without a mutant.
LIMIT_OF_A_PART = 240
# Of ring 3 not the tests that compare times, that take longest, for their number of logins, or that
# install a release build.
LEFT_OUT = ["test_endurance.py", "test_import_many.py", "test_install.py"]
QUICK = ["-m", "not alone and not first",
         *(word for name in LEFT_OUT for word in ("--deselect", f"ring3/{name}"))]


@dataclass
class Outcome:
    """`by` names the ring, `test` what failed; both empty where nothing did."""

    by: str = ""
    test: str = ""
    seconds: float = 0.0


class RingError(Exception):
    """The rings could not be run, or say what they must not say."""


def stages(mutant):
    """(name, command of Files) of each step against a mutant: the nearest and quickest tests first."""
    nearest, stem = NEAREST[mutant.target], Path(mutant.file).stem
    named = [named_in_data(tests) for tests in mutant.seen_by]
    if nearest is None:
        return [*named, RING_3, RINGS_1_AND_2]
    own = OWN.get(stem, f"{stem}Tests")
    of_file = (own, lambda files: swift(files, "--filter", rf"/{own}\.swift"))
    is_there = stem in OWN or any((COPY / "Tests").glob(f"*/*Tests/{own}.swift"))
    return [*named, *([of_file] if is_there and not named else []),
            (nearest, lambda files: swift(files, "--filter", nearest, "--skip", SLOW)),
            (f"{nearest}, the slow ones",
             lambda files: swift(files, "--filter", rf"{nearest}.*{SLOW}")),
            (RINGS_1_AND_2[0], lambda files: swift(files, "--skip", nearest)), RING_3]


def named_in_data(tests):
    """The step of the tests that the data names: of ring 3 by pytest's -k, else a file of Swift's."""
    if tests.startswith("test_"):
        return (tests, lambda files: acceptance("-k", tests))
    return (tests, lambda files: swift(files, "--filter", rf"/{tests}\.swift"))


def swift(files, *more):
    """Rings 1 and 2, or a part; as root with a /tmp of their own, for a run that is cut short."""
    tests = [str(files.tests), "--testing-library", "swift-testing", "--skip", STACKS, *more]
    if os.geteuid() != 0:
        return tests
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
            'mount -t tmpfs -o mode=1777 tests /tmp && exec "$@"', "sh", *tests]


RINGS_1_AND_2 = ("rings 1 and 2", swift)
# Most of it is waiting: with few mutants at a time there are several machines for one.
RING_3 = ("ring 3", lambda files: [
    "env", f"SALLYPORT_JOBS={files.machines}", *acceptance(*QUICK)])


def acceptance(*tests):
    return [str(COPY / "Tests/Acceptance/run"), "ring3", "-x", "-q", *tests]


def run(mutant, files, limits):
    """One mutant: the first failure, or none."""
    start = time.monotonic()
    for name, command in stages(mutant):
        limit = limits.get(name, LIMIT_OF_A_PART)
        failed = step(command(files), files, limit)
        if failed is not None:
            by = "the limit" if failed == HUNG else name
            return Outcome(by, name if failed == HUNG else failed, time.monotonic() - start)
    return Outcome(seconds=time.monotonic() - start)


HUNG = "not done within the limit"
FAILED = re.compile(r"^(?:✘ Test (.*?) (?:with .* )?(?:failed|recorded an issue)|"
                    r"(?:FAILED|ERROR) (\S+)|.*Fatal error: (.*))")


def step(command, files, limit):
    """What failed first, or None. Ends the step as soon as one test has failed."""
    environment = os.environ | {
        "SALLYPORT_MODULE": str(files.module), "SALLYPORT_COMMAND": str(files.command),
        "SALLYPORT_SERVICE": str(files.service), "SALLYPORT_JOBS": "1",
        "SWIFT_BACKTRACE": "enable=no"}
    process = subprocess.Popen(
        command, cwd=COPY, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    hung = threading.Event()

    def end():
        hung.set()
        stop(process)

    timer = threading.Timer(limit, end) if limit else None
    if timer:
        timer.start()
    said, failed = [], None
    for line in map(plain, process.stdout):
        said.append(line)
        match = FAILED.match(line)
        if match and not hung.is_set():
            failed = next(text for text in match.groups() if text is not None)
            break
    if timer:
        timer.cancel()
    stop(process)
    status = process.wait()
    process.stdout.close()
    if failed is not None or status == 0:
        return failed
    if hung.is_set():
        return HUNG
    if status in (4, 5, 64, 66, 69, 77, 127):  # 4, 5 and 69: no such test
        raise RingError("".join(said[-20:]))
    return f"status {status}: {''.join(said[-3:]).strip()}"


def plain(line):
    """The line without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def stop(process):
    """Ends the process and all of its own; `run` of ring 3 takes its scratch away meanwhile."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
