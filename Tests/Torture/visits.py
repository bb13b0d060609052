"""A good guest in every phase: account, session and credentials too, and enrolling in a login."""

import base64
import re
import shutil
import time
from collections import Counter
from typing import NamedTuple

import guests
from modules import BASE32, code
from support.pam_driver import AUTH_ERR, NAMES, SUCCESS, TROUBLE
from record import when
from support.sallyport import MODULE, Services
from subjects import Ours, counter_code, wrong_code

DENIED = "PAM_PERM_DENIED"
# What the host becomes between the first phase and the second.
LATER = ["later:" + name for name in """
    closed full room-for-1 room-for-2 room-for-3 room-for-4 room-for-8 no-writing no-environment
    all-blocked alarm-pending alarm-storm umask-0 umask-777 no-directory threads""".split()]
STARVED = {"full", "no-writing", *(f"room-for-{room}" for room in (1, 2, 3, 4, 8))}
WHOLE = "amcos"  # auth, account, credentials, open, close: as sshd does
# Real accounts: TOTP and ten backup codes, two codes left, TOTP alone, and not enrolled.
OWNER, POOR, LACKING, NEWCOMER = "daemon", "bin", "sys", "nobody"


class Visit(NamedTuple):
    """One login, what it is to give in auth, account and session, and what it leaves."""

    policy: str
    user: str
    answers: tuple
    results: tuple  # of auth, account and open; None: not looked at
    phases: str = WHOLE
    service: str = "sshd"
    before: object = None  # called with the visits when the files are in place
    leaves: bool | None = None  # whether the newcomer is enrolled afterwards


def visits_of(at, backup, last):
    """{what: Visit}. `backup` and `last`: a code of the owner's, and the last of the poor's."""
    right, denied = code(at), (SUCCESS, DENIED, DENIED)
    wrong = wrong_code(at)
    passed, asked = (SUCCESS,) * 3, (None, SUCCESS, SUCCESS)
    required, offer = "enrollment = required", "enrollment = offer"
    remember, second = "remember = 30d", "enrollment = required\nfactor_hotp = mandatory"
    return {
        "accepted": Visit("", OWNER, (right,), passed),
        "accepted by backup code": Visit("", POOR, (last,), passed),
        "refused": Visit("", OWNER, (wrong,), (AUTH_ERR, SUCCESS, SUCCESS)),
        "a broken conversation": Visit("", OWNER, ("fail",), (None, SUCCESS, SUCCESS)),
        "no string": Visit("", OWNER, ("null",), (None, SUCCESS, SUCCESS)),
        "no store": Visit("", OWNER, (right,), (TROUBLE, SUCCESS, SUCCESS), before=no_store),
        "state destroyed": Visit("", OWNER, (right,), (TROUBLE, SUCCESS, SUCCESS),
                                 before=no_state),
        "disabled": Visit("state = disabled", OWNER, (), passed),
        "a broken policy": Visit("nonsense", NEWCOMER, (right,), (AUTH_ERR, SUCCESS, SUCCESS)),
        "voluntary": Visit("enrollment = voluntary", NEWCOMER, (), passed),
        "refuse": Visit("enrollment = refuse", NEWCOMER, (right,), (AUTH_ERR, SUCCESS, SUCCESS)),
        "required, enrolled": Visit(required, NEWCOMER, ("y", "live", ""), passed, leaves=True),
        "required, gone at the end": Visit(required, NEWCOMER, ("y", "live", "fail"), passed,
                                           leaves=True),
        "required, wrong codes": Visit(required, NEWCOMER, ("y", *[wrong] * 5), denied,
                                       leaves=False),
        "required, no": Visit(required, NEWCOMER, ("n",), denied, leaves=False),
        "required, no string": Visit(required, NEWCOMER, ("y", "null"), denied, leaves=False),
        "required, gone": Visit(required, NEWCOMER, ("y", "fail"), denied, leaves=False),
        "required, no account phase": Visit(required, NEWCOMER, (), (SUCCESS, None, DENIED), "acos",
                                            leaves=False),
        "offer, later": Visit(offer, NEWCOMER, ("",), passed, leaves=False),
        "offer, enrolled": Visit(offer, NEWCOMER, ("y", "live", ""), passed, leaves=True),
        "remind, not yet": Visit("enrollment = remind", NEWCOMER, (), passed, leaves=False),
        "remind, enrolled": Visit("enrollment = remind\nremind_every = 1", NEWCOMER,
                                  ("y", "live", ""), passed, leaves=True),
        "completed": Visit(second, LACKING, (right, "y", "live"), passed),
        "not completed": Visit(second, LACKING, (right, "n"), denied),
        "a grant": Visit(remember, OWNER, (right,), passed),
        "remembered": Visit(remember, OWNER, (), passed, before=remembered),
        "demand, right": Visit("", OWNER, (right,), asked, "mcos", "demand"),
        "demand, backup code": Visit(remember, OWNER, (backup,), asked, "mcos", "demand"),
        "demand, wrong": Visit("", OWNER, (wrong,), (None, DENIED, DENIED), "mcos", "demand"),
        "demand, gone": Visit("", OWNER, ("fail",), (None, DENIED, DENIED), "mcos", "demand"),
        "demand, not enrolled": Visit(required, NEWCOMER, (), (None, DENIED, DENIED), "mcos",
                                      "demand"),
        "demand, no store": Visit("", OWNER, (right,), (None, TROUBLE, DENIED), "mcos", "demand",
                                  before=no_store),
    }


def no_store(visits):
    shutil.rmtree(visits.subject.root)


def no_state(visits):
    (visits.subject.root / "users" / OWNER / "state").write_bytes(bytes(8192))


def remembered(visits):
    """A code of the step before, from the same place."""
    grant = visits.visits["a grant"]._replace(answers=(code(visits.at - 600),))
    results, _ = visits.play("plain", grant, visits.at - 600)
    assert set(results) == {SUCCESS}, results


class Visits:
    def __init__(self, setting):
        self.setting = setting
        place = setting.place("visits")
        self.subject = Ours(place)
        self.at = int(time.time()) // 600 * 600 + 3600
        store = self.subject.store
        backup = store.enroll(OWNER, secret=BASE32).backup_codes[0]
        last = store.enroll(POOR, secret=BASE32, backup_codes="2").backup_codes[0]
        store.enroll(LACKING, secret=BASE32, backup_codes="0")
        self.template, self.policy = place / "template", place / "policy.conf"
        shutil.copytree(self.subject.root, self.template)
        self.visits = visits_of(self.at, backup, last)
        services = Services(place / "pam.d")
        for name, words, more in (("sshd", "enroll", ""), ("demand", "", "demand")):
            ours = f"{self.subject.line()} conf={self.policy}"
            frame = f"required {guests.FRAME}"
            services.write(
                name, f"auth {frame} password", f"auth {ours} {words}", f"auth {frame}",
                f"account {frame}", f"account {ours} {more}", f"account {frame}",
                f"session {frame}", f"session required {MODULE}", f"session {frame}")
        self.host = guests.host(services, MODULE)

    def put_back(self, policy):
        shutil.rmtree(self.subject.root, ignore_errors=True)
        shutil.copytree(self.template, self.subject.root)
        self.policy.write_text(f"[default]\n{policy}\n")
        self.policy.chmod(0o644)

    def play(self, condition, visit, at):
        """(names of the return codes of the phases, what was changed)."""
        words = ",".join(answer if answer in ("null", "fail", "live") else
                         answer.encode().hex() or "-" for answer in visit.answers) or "fail"
        return guests.ask(
            self.host, f"{condition} {visit.user.encode().hex()} {words} {at} 1 {visit.service} "
                       f"{visit.phases} 192.0.2.7", first_code_at(at))

    def examine(self, section, condition, what):
        visit = self.visits[what]
        self.put_back(visit.policy)
        if visit.before is not None:
            visit.before(self)
        results, changed = self.play(condition, visit, self.at)
        told = dict(zip(visit.phases, results))
        seen = [told.get(letter, results[-1]) for letter in "amo" if letter in visit.phases]
        expected = [result for letter, result in zip("amo", visit.results)
                    if letter in visit.phases]
        died = [result for result in results if result not in NAMES.values()]
        section.case(f"{condition}, {what}: {', '.join(results)}", guests.changed_by(changed),
                     when(died, "ended the host", ", ".join(died)),
                     None if died else other(seen, expected, condition),
                     self.left(visit, told, condition))
        return seen

    def left(self, visit, told, condition):
        """Never half an enrollment, never a yes under `required` without one, nobody's to read."""
        if visit.leaves is None:
            return None
        place = self.subject.root / "users" / NEWCOMER
        names = sorted(path.name for path in place.iterdir()) if place.exists() else []
        modes = {oct(path.stat().st_mode & 0o777) for path in place.glob("*")}
        if names not in ([], ["enrollment", "state"]) or modes - {"0o600"}:
            return "half an enrollment", f"{names}, {modes}"
        done = told.get("m") == SUCCESS
        if "required" in visit.policy and done and not names:
            return "a yes without an enrollment", str(told)
        if bool(names) != visit.leaves and not starves(condition):
            return "another enrollment", f"{names}"
        return None


def first_code_at(at):
    def first_code(uri):
        secret = re.search(r"secret=([A-Z2-7]+)", uri).group(1)
        raw = base64.b32decode(secret)
        return counter_code(0, raw) if uri.startswith("otpauth://hotp") else code(at, raw)
    return first_code


def starves(condition):
    return condition.removeprefix("later:") in STARVED


def other(seen, expected, condition):
    """What starves the module makes a yes a no, and a no no yes. After a no nobody goes on."""
    for found, wanted in zip(seen, expected):
        if wanted is None or found == wanted:
            continue
        if not starves(condition) or found == SUCCESS:
            return "another answer", f"{', '.join(seen)} and not {expected}"
        if wanted == SUCCESS:
            break
    return None


def run(section, setting, conditions):
    visits, seen = Visits(setting), Counter()
    for condition in [*conditions, *LATER]:
        for what in visits.visits:
            seen[" ".join(visits.examine(section, condition, what))] += 1
    visits.host.stdin.close()
    visits.host.wait()
    section.note(f"{len(conditions)} conditions from the beginning, {len(LATER)} from the second "
                 f"phase on, {len(visits.visits)} logins with all phases: {sum(seen.values())}")
