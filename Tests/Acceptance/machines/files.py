"""The files of a machine, as text. Nothing is read and nothing written here but for the hashes."""

import re

from dimensions import (
    AFTER_KEY, DOAS, MATCH, NAMED, OURS, POLICY, ROOT, SERVICES, SSHD, STACKS, SUDOERS, TWINS)
from support.machines import hashed

WEB, CALLER = ("web", 855), ("caller", 4001)  # whom sudo may become; who calls su
LOCKED_LONG_AGO, LAST_CHANGE = 1, 19000  # days since 1970
INCLUDE = "@include common-auth"
TWIN = {"sudo": "sudo-i", "su": "su-l"}
BASE = ("Defaults env_reset, lecture = never, timestamp_timeout = 0, passwd_tries = 1\n"
        'Defaults secure_path = "/usr/sbin:/usr/bin:/sbin:/bin"\n'
        "Runas_Alias OTHERS = web\n"
        "root ALL = (ALL:ALL) ALL\n%sudo ALL = (ALL:ALL) ALL\n%robots ALL = (ALL) NOPASSWD: ALL\n")
RULES = {  # of one account; those by a group stand in BASE
    "all": "{} ALL = (ALL:ALL) ALL",
    "NOPASSWD": "{} ALL = (ALL) NOPASSWD: ALL",
    "NOPASSWD for one command": "{0} ALL = (ALL) ALL\n{0} ALL = (root) NOPASSWD: " + NAMED,
    "as web alone": "{} ALL = (web) ALL",
    **{f"as web by {how}": f"{{0}} ALL = (ALL) ALL\n{{0}} ALL = ({web}) NOPASSWD: ALL"
       for how, web in (("NOPASSWD", "web"), ("an alias", "OTHERS"), ("its group", "%web"),
                        ("its number", f"#{WEB[1]}"))},
    "without a target": "{} ALL = ALL",
}
OTHER_POLICY = "[default]\nenrollment = voluntary\n"
# Where a package has its file in /usr/lib/pam.d, as polkit's, ours takes its place.
OF_ITS_PACKAGE = ("@include common-auth\n@include common-account\n@include common-password\n"
                  "@include common-session-noninteractive\n")
SSH_COMMON = "PrintMotd no\nUseDNS no\nMaxStartups 100\nLogLevel VERBOSE\n"


def password_of(person):
    """What somebody types who knows the password; who has none types something."""
    return f"horse of {person.name}" if person.has_password else "no horse at all"


def shadow_of(person):
    right = hashed(f"horse of {person.name}")
    field = {"a password": right, "none": "*", "locked": f"!{right}", "empty": ""}
    changed = 0 if person["expiry"] == "the password is over" else LAST_CHANGE
    over = LOCKED_LONG_AGO if person["expiry"] == "the account is over" else ""
    return f"{person.name}:{field[person['password']]}:{changed}:0:99999:7::{over}:"


def home_of(name):
    return "/root" if name == "root" else f"/home/{name}"


def accounts(machine, passwd, shadow, group):
    """passwd, shadow and group with the machine's people, in place of those of these names."""
    names = {person.name for person in machine.people} | {WEB[0], CALLER[0], "staff", "robots"}

    def others(text):
        return [line for line in text.splitlines() if line.split(":")[0] not in names | {"sudo"}]
    people = [(person.name, person.uid, person["shell"]) for person in machine.people]
    people += [(*WEB, "/bin/sh"), (*CALLER, "/bin/sh")]
    passwd = others(passwd) + [f"{name}:x:{uid}:{uid}:{name}:{home_of(name)}:{shell}"
                               for name, uid, shell in people]
    shadow = others(shadow) + [shadow_of(person) for person in machine.people]
    shadow += [f"{name}:*:{LAST_CHANGE}:0:99999:7:::" for name, _ in (WEB, CALLER)]
    group = others(group) + [f"{name}:x:{uid}:" for name, uid, _ in people]
    group += [f"{name}:x:{number}:{','.join(members)}" for name, number, members in (
        ("sudo", 27, members_by(machine, "sudo", "all by a group")),
        ("robots", 4100, members_by(machine, "sudo", "NOPASSWD by a group")),
        ("staff", 50, members_by(machine, "group", "staff")))]
    return tuple("\n".join([*lines, ""]) for lines in (passwd, shadow, group))


def members_by(machine, dimension, value):
    return [person.name for person in machine.people if person[dimension] == value]


def sudoers(machine):
    rules = [RULES[person["sudo"]].format(person.name) for person in machine.people
             if person["sudo"] in RULES]
    return BASE + "\n".join([SUDOERS[machine["sudoers"]], *rules, ""])


def doas(machine):
    rules = DOAS[machine["doas"]]
    return None if rules is None else f"{rules}\n"


def sshd_config(machine, keys):
    """`keys`: a program that prints the keys of an account."""
    head = SSHD[machine["sshd"]].replace("KEYS", str(keys))
    match = MATCH[machine["match"]]
    root = ROOT[machine["root over ssh"]]
    return f"{SSH_COMMON}{root}\n{head}\n{match}\n"


def stack(text, value, enters=INCLUDE):
    """A file of Debian's with a stack of ours in it."""
    lines = (STACKS | AFTER_KEY)[value].split("\n")
    top = [line for line in lines if line.startswith(("account", "session"))]
    rest = [enters if line == "PASSWORD" else line for line in lines if line not in top]
    assert enters in text.splitlines(), text
    return "\n".join(top + [""] + [text.replace(enters, "\n".join(rest), 1)])


def services(machine, debian):
    """{name: text} of /etc/pam.d, from Debian's own."""
    files = {name: text for name, text in debian.items() if not name.startswith("common-auth")}
    files["open"] = debian["sudo"]
    files["common-auth"] = re.sub(r"(?m)^auth.*pam_cap.*\n", "", debian["common-auth"])
    for name in SERVICES:
        value = machine[f"stack of {name}"]
        if name not in debian and value == "not ours":
            continue
        files[name] = stack(debian.get(name, OF_ITS_PACKAGE), value)
        twin = TWIN.get(name)
        if twin and not TWINS[machine["twins"]]:
            # Debian's su-l includes su.
            files[twin] = debian["su"] if twin == "su-l" else debian[twin]
        elif twin == "sudo-i":
            files[twin] = stack(debian[twin], value)
    return files


def policy(machine):
    text = POLICY[machine["policy"]]
    return None if text is None else f"{text}\n"


def has_us(text):
    return any(OURS in line for line in text.splitlines() if not line.startswith("#"))
