"""A good guest: whatever the host is and whatever the outcome, the host is left as it was."""

import os
import shutil
import subprocess
import time
from collections import Counter

import visits
from modules import code
from support.pam_driver import AUTH_ERR, NAMES, SUCCESS, TROUBLE
from record import when
from support.sallyport import Services
from subjects import SERVICE, USER, wrong_code

GUEST, FRAME = (f"{os.environ['SALLYPORT_BUILT']}/{name}" for name in ("guest", "frame.so"))
CONDITIONS = """
    plain closed no-home no-environment full room-for-1 room-for-2 room-for-3 room-for-4 room-for-8
    alarm-pending alarm-storm all-handled all-ignored all-blocked umask-0 umask-777 set-uid locale
    no-directory no-writing threads threads-of-set-uid little-stack reloaded""".split()
STARVED = {"full", "room-for-1", "room-for-2", "room-for-3", "room-for-4", "no-writing"}
LOOPS = 200


def host(services, module):
    """A host of tools/guest.c."""
    return subprocess.Popen([GUEST, str(services.directory)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"GUEST_MODULE": module})


def ask(host, line, live=None):
    """(names of the return codes, what was changed); `live` makes an answer of the URI shown."""
    host.stdin.write(line + "\n")
    host.stdin.flush()
    numbers, _, told = host.stdout.readline().rstrip("\n").partition("\t")
    while numbers == "live":
        host.stdin.write(live(told).encode().hex() + "\n")
        host.stdin.flush()
        numbers, _, told = host.stdout.readline().rstrip("\n").partition("\t")
    return [NAMES.get(int(number), number) for number in numbers.split(",")], told


class Guests:
    """Hosts of tools/guest.c around one module; its files are put back before each login."""

    def __init__(self, setting):
        self.setting = setting
        place = setting.place("guest")
        self.subject = setting.kind(place)
        self.at = int(time.time()) // 600 * 600 + 3600
        self.codes = self.subject.enroll(USER, "totp", self.at)
        if "backup" in self.subject.kinds:
            self.codes = self.subject.more_codes(USER, self.at)
        self.template = place / "template"
        shutil.copytree(self.subject.root, self.template)
        services = Services(place / "pam.d")
        frame = f"auth required {FRAME}"
        services.write(SERVICE, frame, f"auth {self.subject.line()}", frame)
        self.host = host(services, self.module())

    def module(self):
        return self.subject.line().split()[1]

    def put_back(self):
        shutil.rmtree(self.subject.root)
        shutil.copytree(self.template, self.subject.root)

    def play(self, condition, user, answer, times=1):
        """(name of the return code, what was changed)."""
        typed = answer if answer in ("null", "fail") else answer.encode().hex() or "-"
        results, changed = ask(self.host, f"{condition} {user.encode().hex()} {typed} {self.at} "
                                          f"{times} {SERVICE} ac -")
        return results[0], changed

    def outcomes(self):
        """{what: (preparation, user, answer, our result or None)}."""
        right, nothing = code(self.at), (lambda: None)
        state = self.subject.root / "users" / USER / "state"
        enrollment = state.with_name("enrollment")
        made = {
            "right": (nothing, USER, right, SUCCESS),
            "wrong": (nothing, USER, wrong_code(self.at), AUTH_ERR),
            "malformed": (nothing, USER, "letters", AUTH_ERR),
            "empty": (nothing, USER, "", AUTH_ERR),
            "very long": (nothing, USER, "1" * 290, AUTH_ERR),
            "no string": (nothing, USER, "null", None),
            "a broken conversation": (nothing, USER, "fail", None),
            "unknown user": (nothing, "nobody-here", right, AUTH_ERR),
            "not enrolled": (nothing, "daemon", right, AUTH_ERR),
        }
        if self.codes:
            made["backup code"] = (nothing, USER, self.codes[0], SUCCESS)
        if self.setting.ours:
            made |= {
                "no store": (lambda: shutil.rmtree(self.subject.root), USER, right, TROUBLE),
                "no state": (state.unlink, USER, right, TROUBLE),
                "others may write": (lambda: state.chmod(0o666), USER, right, TROUBLE),
                "state destroyed": (lambda: state.write_bytes(bytes(8192)), USER, right, TROUBLE),
                "enrollment torn": (lambda: enrollment.write_bytes(enrollment.read_bytes()[:200]),
                                    USER, right, TROUBLE),
                "state is a directory": (lambda: (state.unlink(), state.mkdir()), USER, right,
                                      TROUBLE),
                "state is a FIFO": (lambda: (state.unlink(), os.mkfifo(state, 0o600)), USER, right,
                                    TROUBLE),
            }
        return made

    def examine(self, section, condition, what, times=1):
        prepare, user, answer, expected = self.outcomes()[what]
        self.put_back()
        prepare()
        result, changed = self.play(condition, user, answer, times)
        if not self.subject.root.exists():
            self.subject.root.mkdir()
        whole = expected is not None and times == 1 and self.setting.ours
        section.case(f"{condition}, {what}: {result}", changed_by(changed), died(result),
                     other(result, expected, condition) if whole else None)
        return result


def changed_by(text):
    if not text or "the host" in text:
        return None
    only = "errno" in text and ";" not in text
    return "changed errno" if only else "changed the host", text


def died(result):
    return when(result not in NAMES.values(), "ended the host", result)


def other(result, expected, condition):
    """No condition makes a wrong code right; what starves the module makes a right one trouble."""
    allowed = {expected}
    if condition in STARVED:
        allowed |= {TROUBLE}
        if expected != SUCCESS:
            allowed |= {AUTH_ERR}
    if result in allowed or (condition in STARVED and result not in (SUCCESS, AUTH_ERR)):
        return None
    return "another answer", f"not {expected}"


def loops(section, setting, guests):
    """Loaded and unloaded with each login of a host that lives on."""
    for what in guests.outcomes():
        guests.examine(section, "plain", what, times=LOOPS // 8 if setting.short else LOOPS)
    guests.put_back()


def run(section, setting):
    guests, seen = Guests(setting), Counter()
    for condition in CONDITIONS:
        for what in guests.outcomes():
            seen[guests.examine(section, condition, what)] += 1
    loops(section, setting, guests)
    guests.host.stdin.close()
    guests.host.wait()
    if setting.ours:
        visits.run(section, setting, CONDITIONS)
    section.note(f"{len(CONDITIONS)} conditions of the host, {len(guests.outcomes())} outcomes: "
                 + ", ".join(f"{count} {result}" for result, count in seen.most_common()))
