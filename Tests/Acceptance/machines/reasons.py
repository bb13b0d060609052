"""Why a cell is as it is, where that is certain: where one thing alone of all that matters there is
not as on a plain machine. Elsewhere a forecast may name any of several."""

from dimensions import MACHINE, PERSON
from ways import ASKED, OPEN, REFUSED, SUDO, Connection

STACK = {"su -": "su", "pkexec": "polkit-1", **dict.fromkeys(SUDO, "sudo")}
OF_PERSON = ("password", "enrolled", "expiry")
NOPASSWD = dict.fromkeys(("NOPASSWD", "NOPASSWD by a group"), {"noPasswd"})
WHY = {  # by the result and the dimension: the reasons of doctor that say it, for each value
    (REFUSED, "expiry"): {"the account is over": {"expired"}},
    (REFUSED, "shell"): {"/usr/sbin/nologin": {"noShell", "noLogin"}},
    (REFUSED, "password"): {
        "none": {"noPassword", "keyLeftOut"}, "locked": {"noPassword", "keyLeftOut", "locked"}},
    (REFUSED, "key"): {"no key": {"noKey"}},
    (REFUSED, "enrolled"): {
        "no": {"notEnrolled"}, "must enroll": {"notEnrolled"}, "damaged": {"brokenEnrollment"}},
    (REFUSED, "sudo"): {"no rule": {"noRule"}},
    (REFUSED, "doas"): {"no file": {"noRule"}},
    (REFUSED, "stack"): {"a misspelt module": {"moduleMissing"}},
    (OPEN, "stack"): {
        "not ours": {"noLine"}, "counts for nothing": {"uncounted"},
        "a password goes around it": {"skipped"}},
    (OPEN, "policy"): dict.fromkeys(
        ("nothing of alice", "nothing in sudo", "nothing from there"), {"disabled"}),
    (OPEN, "enrolled"): {"exempt": {"exempt"}},
    (OPEN, "sudo"): NOPASSWD,
    (OPEN, "sshd"): {"a key or prompts": {"keyAlone"}, "without PAM": {"noPAM", "keyAlone"}},
    (OPEN, "match"): dict.fromkeys(
        ("robots by key", "all but alice", "another address", "git from another address"),
        {"keyAlone"}),
    (ASKED, "policy"): {"remembers": {"code"}, "nothing of alice": {"code"}},
}


def dimensions(way):
    """What matters there, of the person and of the machine."""
    stack = f"stack of {STACK.get(way, 'sshd' if Connection.of(way) else way)}"
    if Connection.of(way):
        return (*OF_PERSON, "key"), (stack, "sshd", "match", "root over ssh", "policy")
    if way in SUDO:
        return (*OF_PERSON, "sudo", "group"), (stack, "sudoers", "twins", "policy")
    if way in ("doas", "pkexec"):
        return (*OF_PERSON, "sudo", "group"), (stack, "doas", "policy")
    return (*OF_PERSON, "shell"), (stack, "twins", "policy")


def odd(machine, cell):
    """(dimension, value) of what matters for this cell and is not as on a plain machine."""
    of_person, of_machine = dimensions(cell.way)
    person = machine.person(cell.account)
    values = [(name, person[name]) for name in of_person if person[name] != PERSON[name][0]]
    values += [(name, machine[name]) for name in of_machine if machine[name] != MACHINE[name][0]]
    return values


def expected(machine, cell):
    """The reasons that are right; None where nothing is certain."""
    values = odd(machine, cell)
    if len(values) != 1:
        return None
    [(dimension, value)] = values
    kind = "stack" if dimension.startswith("stack of") else dimension
    return WHY.get((cell.result, kind), {}).get(value)
