"""What a machine by chance is made of: small dimensions with names, each with the value of a plain
machine first. `files.py` turns them into files; nothing else knows what a value means.

A fault that is planted makes the forecast take a dimension for its first value: see planting.py.
"""

from dataclasses import dataclass

OURS = "pam_sallyport.so"
NAMED = "/run/machine/named"  # a command that lines of sudoers name

SSHD = {  # settings of sshd; `Match` blocks come after them
    "key and prompts": "KbdInteractiveAuthentication yes\nPasswordAuthentication no\nUsePAM yes\n"
                       "AuthenticationMethods publickey,keyboard-interactive",
    "Debian's own": "KbdInteractiveAuthentication no\nUsePAM yes",
    "prompts": "KbdInteractiveAuthentication yes\nPasswordAuthentication no\nUsePAM yes\n"
               "AuthenticationMethods keyboard-interactive",
    "key and prompts, or prompts":
        "KbdInteractiveAuthentication yes\nPasswordAuthentication no\nUsePAM yes\n"
        "AuthenticationMethods publickey,keyboard-interactive keyboard-interactive",
    "a key or prompts": "KbdInteractiveAuthentication yes\nPasswordAuthentication no\nUsePAM yes",
    "method password": "KbdInteractiveAuthentication no\nPasswordAuthentication yes\nUsePAM yes\n"
                       "AuthenticationMethods password publickey,password",
    "without PAM": "KbdInteractiveAuthentication yes\nPasswordAuthentication yes\nUsePAM no",
    "keys by a command":
        "KbdInteractiveAuthentication yes\nPasswordAuthentication no\nUsePAM yes\n"
        "AuthenticationMethods publickey,keyboard-interactive\nAuthorizedKeysFile none\n"
        "AuthorizedKeysCommand KEYS %u\nAuthorizedKeysCommandUser nobody",
}

MATCH = {  # of an account, a group or an address
    "no block": "",
    "robots by key": "Match User git,ansible\n  AuthenticationMethods publickey",
    "staff by key and prompts":
        "Match Group staff\n  KbdInteractiveAuthentication yes\n"
        "  AuthenticationMethods publickey,keyboard-interactive",
    "all but alice": "Match User *,!alice\n  AuthenticationMethods publickey",
    "bob is denied": "DenyUsers bob",
    "staff alone": "AllowGroups staff root",
    "another address": "Match Address 192.0.2.0/24\n  AuthenticationMethods publickey",
    "git from another address": "Match User git Address 192.0.2.7\n"
                                "  AuthenticationMethods publickey",
    "denied from another address": "DenyUsers alice@192.0.2.0/24",
    "this port is another's": "Match LocalPort 2\n  AuthenticationMethods publickey",
}

ROOT = {name: f"PermitRootLogin {name}" for name in ("prohibit-password", "no", "yes")}

# The stack of a service is Debian's file with this in place of its line `@include common-auth`;
# what begins with `account` or `session` goes to the top of the file. PASSWORD is that line, CODE
# ours (without the two seconds between sshd's prompts).
CODE = f"auth required {OURS} nodelay"
STACKS = {
    "asks": f"PASSWORD\n{CODE}",
    "not ours": "PASSWORD",
    "enrolls": f"account required {OURS}\nsession required {OURS}\nPASSWORD\n{CODE} enroll",
    "nullok": f"PASSWORD\n{CODE} nullok",
    "demands": f"account required {OURS} demand\nPASSWORD\n{CODE}",
    "the code first": f"{CODE}\nPASSWORD",
    "counts for nothing": f"PASSWORD\n{CODE.replace('required', 'optional')}",
    "a password goes around it": f"auth sufficient pam_unix.so\n{CODE}",
    "a misspelt module": f"PASSWORD\n{CODE.replace('sally', 'saly')}",
    "a misspelt word": f"PASSWORD\n{CODE} nulok",
    "another policy": f"PASSWORD\n{CODE} conf=/etc/security/other.conf",
    "one field": f"{CODE} forward_pass\nPASSWORD",
    "some go around it":
        "PASSWORD\nauth [success=1 default=ignore] pam_succeed_if.so quiet user in bob:git\n"
        f"{CODE}",
    "programs go around it":
        f"PASSWORD\nauth [success=1 default=ignore] pam_usertype.so issystem\n{CODE}",
}
AFTER_KEY = {"a key and no password": f"{CODE} after-key"}

# What becomes of sudo-i and su-l, which are services of their own.
TWINS = {"as sudo and su": True, "left out": False}

SUDOERS = {
    "plain": "",
    "the last rule counts": "alice ALL = (ALL) NOPASSWD: ALL\nalice ALL = (ALL) PASSWD: ALL",
    "rootpw": "Defaults rootpw",
    "targetpw": "Defaults targetpw",
    "nothing of staff": "Defaults:%staff !authenticate",
    "staff is exempt": "Defaults exempt_group = staff",
    "to some other service": "Defaults pam_login_service = sudo",
    "another service for one command": f"Defaults!{NAMED} pam_service = open",
    "runaspw for one command": f"Defaults!{NAMED} runaspw",
    "no account phase": "Defaults !pam_acct_mgmt",
    "nothing for web": "Defaults>web !authenticate",
    "web by default": "Defaults runas_default = web",
}

DOAS = {
    "everybody": "permit alice\npermit bob\npermit git\npermit ansible",
    "staff": "permit :staff",
    "no file": None,
    "nopass": "permit alice\npermit nopass :staff",
    "the last rule counts": "permit nopass alice\npermit alice\npermit bob\ndeny :staff",
    "to web": "permit alice as web\npermit nopass bob as web",
    "for one command": "permit nopass alice cmd /usr/bin/true\npermit bob cmd /usr/bin/id",
}

POLICY = {
    "none": None,
    "voluntary": "[default]\nenrollment = voluntary",
    "offer": "[default]\nenrollment = offer",
    "required": "[default]\nenrollment = required",
    "required one day": "[default]\nenrollment = required\nrequired_from = 2099-01-01",
    "nothing of alice": "[rule a]\nmatch_user = alice\nstate = disabled",
    "staff need not": "[rule s]\nmatch_group = staff\nenrollment = voluntary",
    "nothing in sudo": "[rule s]\nmatch_service = sudo, sudo-i\nstate = disabled",
    "nothing from here": "[rule l]\nmatch_origin = local\nenrollment = voluntary",
    "nothing from there": "[rule n]\nmatch_origin = 192.0.2.0/24\nstate = disabled",
    "remembers": "[default]\nremember = 1 h",
    "no phones": "[default]\nfactor_totp = off",
    "no phones, no backup codes": "[default]\nfactor_totp = off\nfactor_backup_code = off",
    "a mistake": "[default]\nenrollment = voluntary\nadjacent_intervals = eleven",
}

ON_PURPOSE = {("ansible", "sudo"), ("git", "sshd")}  # of the policy "on purpose"

SERVICES = ("sshd", "sudo", "su", "login", "polkit-1", "doas")
MACHINE = {
    "sshd": tuple(SSHD), "match": tuple(MATCH), "root over ssh": tuple(ROOT),
    **{f"stack of {name}": (*STACKS, *(AFTER_KEY if name == "sshd" else ())) for name in SERVICES},
    "twins": tuple(TWINS), "sudoers": tuple(SUDOERS), "doas": tuple(DOAS),
    "policy": tuple(POLICY),
}

PERSON = {
    "password": ("a password", "none", "locked", "empty"),
    "key": ("a key", "no key"),
    "enrolled": ("a phone", "a counter", "no", "damaged", "exempt", "must enroll"),
    "expiry": ("never", "the account is over", "the password is over"),
    "shell": ("/bin/sh", "/usr/sbin/nologin"),
    "sudo": ("all by a group", "all", "no rule", "NOPASSWD", "NOPASSWD by a group",
             "NOPASSWD for one command", "as web alone", "as web by NOPASSWD",
             "as web by an alias", "as web by its group", "as web by its number",
             "without a target"),
    "group": ("none", "staff"),
    "uid": ("a person's", "a program's"),
}
ROOTS = ("password", "key", "enrolled", "expiry")  # what of it root has; the rest is fixed
NAMES = ("alice", "bob", "git", "ansible")
UIDS = {"alice": (3001, 851), "bob": (3002, 852), "git": (3003, 853), "ansible": (3004, 854)}

# Who has one of these gets in nowhere, or nearly so, whatever else he has: it would hide the rest.
# So a pair counts as drawn only on somebody who has none of them but in the pair itself.
HIDING = {("expiry", "the account is over"), ("shell", "/usr/sbin/nologin"),
          ("enrolled", "damaged"), ("policy", "a mistake"), ("match", "staff alone")}


def related(one, other):
    """Whether a pair of dimensions is worth a machine: stacks of two services do not meet."""
    return not (one.startswith("stack of") and other.startswith("stack of"))


@dataclass(frozen=True)
class Person:
    name: str
    values: tuple  # (dimension, value)

    def __getitem__(self, dimension):
        return dict(self.values)[dimension]

    @property
    def uid(self):
        return 0 if self.name == "root" else UIDS[self.name][self["uid"] == "a program's"]

    @property
    def has_password(self):
        return self["password"] == "a password"

    @property
    def is_enrolled(self):
        return self["enrolled"] in ("a phone", "a counter")

    def put(self, dimension, value):
        return Person(self.name, tuple(sorted((dict(self.values) | {dimension: value}).items())))


@dataclass(frozen=True)
class Machine:
    seed: int
    number: int
    values: tuple
    people: tuple

    def __getitem__(self, dimension):
        return dict(self.values)[dimension]

    def person(self, name):
        return next(person for person in self.people if person.name == name)

    def blind_to(self, dimension):
        """The same machine as one sees it who knows nothing of a dimension."""
        if dimension in MACHINE:
            return self.put({dimension: MACHINE[dimension][0]})
        plain = {dimension: PERSON[dimension][0]}
        return self.put({}, {person.name: plain for person in self.people})

    def put(self, values, people=None):
        """Another machine, with these values; `people`: {name: values}."""
        changed = tuple(sorted((dict(self.values) | values).items()))
        persons = []
        for person in self.people:
            for item in (people or {}).get(person.name, {}).items():
                person = person.put(*item)
            persons.append(person)
        return Machine(self.seed, self.number, changed, tuple(persons))

    def __str__(self):
        lines = [f"machine {self.number} of seed {self.seed}"]
        lines += [f"  {name}: {value}" for name, value in self.values]
        for person in self.people:
            lines.append(f"  {person.name}: {', '.join(value for _, value in person.values)}")
        return "\n".join(lines)


def plain():
    """Nothing of it is out of the ordinary: every service asks for the code after the password."""
    people = [Person(name, tuple(sorted((key, values[0]) for key, values in PERSON.items())))
              for name in ("root", *NAMES)]
    values = tuple(sorted((key, values[0]) for key, values in MACHINE.items()))
    return Machine(0, 0, values, tuple(people))
