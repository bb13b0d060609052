"""A machine with thousands of accounts: doctor has to know each of them."""

import os
import shutil
from pathlib import Path

from support.hosts import PASSWORD, PAM_D, edit
from support.sallyport import DEFAULT_STORE, MODULE, sallyport

SERVICES = ("sshd", "sudo", "sudo-i", "su", "su-l", "login", "polkit-1", "doas", "gdm-password",
            "lightdm", "cockpit", "vlock")
GROUPS = 200
FIRST, FIRST_GROUP = 10_000, 40_000
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEr2Nd0ZdM5jNfQkBW0fXJ0q3gE6pWk1cM2VbQ7l5x3F"
STACK = ["auth [success=1 default=ignore] pam_unix.so nullok", "auth requisite pam_deny.so",
         "auth required pam_permit.so", f"auth required {MODULE}",
         "account required pam_unix.so", f"account required {MODULE}",
         "session required pam_permit.so"]
POLICY = """[default]
enrollment = refuse

[rule one]
match_group = g000, g001
enrollment = voluntary

[rule two]
match_group = g002
state = disabled

[rule three]
match_user = p00003, p00004, p00005
state = disabled

[rule four]
match_service = sudo, sudo-i
match_group = g004
enrollment = offer

[rule five]
match_user = p01234
factor_totp = off

[rule six]
match_service = sshd
match_group = g006, g007
enrollment = required
"""


def name(number):
    return f"p{number:05}"


def group(number):
    return f"g{number % GROUPS:03}"


class Town:
    """Of three people one has a key, of ten one has no password. The first of them are enrolled."""

    # Of each account, a way, and what becomes of it there.
    samples = (
        (name(0), "sshd", "withoutCode", "keyAlone"), (name(3), "login", "withoutCode", "disabled"),
        (name(13), "sshd", "refused", "notAllowed"), (name(204), "sshd", "asked", "code"),
        (name(2400), "login", "withoutCode", "voluntary"),
        (name(2020), "sudo", "refused", "notEnrolled"),
        (name(2500), "su", "refused", "notEnrolled"), (name(9995), "login", "withoutCode", "exempt"))

    CHANGED = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/ssh/sshd_config", "/etc/sudoers")
    ADDED = ("/etc/doas.conf", "/etc/security/sallyport.conf", "/tmp/town.oath")

    def __init__(self, accounts, enrolled):
        self.before = {path: Path(path).read_bytes() for path in self.CHANGED}
        self.names = [name(number) for number in range(accounts)]
        self.enrolled = self.names[:enrolled]
        self._settle()
        self._enroll()
        for service in SERVICES:
            PAM_D.joinpath(service).write_text("\n".join(STACK) + "\n")
        Path("/etc/ssh/sshd_config").write_text(self._sshd())
        edit("/etc/sudoers", lambda text: text + self._sudoers())
        Path("/etc/doas.conf").write_text("permit persist :g010\npermit nopass p00020\n")
        Path("/etc/security/sallyport.conf").write_text(POLICY)

    def leave(self):
        """For the tests after it, to which thousands of accounts are thousands of findings."""
        for path, content in self.before.items():
            Path(path).write_bytes(content)
        for path in self.ADDED:
            Path(path).unlink()
        for user in self.names:
            shutil.rmtree(Path("/home", user))
        shutil.rmtree(DEFAULT_STORE)

    @property
    def strangers(self):
        """Without a password, a key, a rule by which they become another, an enrollment and a note."""
        ruled = {*range(20, 56), *range(60, 70), 10}
        return {user for number, user in enumerate(self.names)
                if number % 10 == 9 and number % 3 and number >= len(self.enrolled)
                and not ruled & {number % GROUPS, number // 7 % GROUPS}
                and user not in self.names[-5:]}

    def _settle(self):
        """Rows of the files, homes and keys."""
        hashed = "$6$x$" + "x" * 86
        users, shadows = [], []
        members = [[] for _ in range(GROUPS)]
        for number, user in enumerate(self.names):
            uid, gid = FIRST + number, FIRST_GROUP + number % GROUPS
            members[number // 7 % GROUPS].append(user)
            users.append(f"{user}:x:{uid}:{gid}::/home/{user}:/bin/sh\n")
            word = "*" if number % 10 == 9 else hashed
            shadows.append(f"{user}:{word}:19000:0:99999:7:::\n")
            Path("/home", user).mkdir()
            os.chown(f"/home/{user}", uid, gid)
            if number % 3 == 0:
                self._give_key(user, uid, gid)
        groups = [f"g{number:03}:x:{FIRST_GROUP + number}:{','.join(names)}\n"
                  for number, names in enumerate(members)]
        for path, rows in (("/etc/passwd", users), ("/etc/shadow", shadows), ("/etc/group", groups)):
            edit(path, lambda text: text + "".join(rows))

    @staticmethod
    def _give_key(user, uid, gid):
        directory = Path("/home", user, ".ssh")
        directory.mkdir()
        keys = directory / "authorized_keys"
        keys.write_text(f"{KEY} {user}\n")
        for path in (directory, keys):
            os.chown(path, uid, gid)

    def _enroll(self):
        people = Path("/tmp/town.oath")
        people.write_text("".join(f"HOTP/T30\t{user}\t-\t{number + 1:040x}\n"
                                  for number, user in enumerate(self.enrolled)))
        people.chmod(0o600)
        done = sallyport("import", "pam-oath", people)
        assert done.returncode == 0, done.stderr
        assert len(list((DEFAULT_STORE / "users").iterdir())) == len(self.enrolled)
        for user in self.names[10:20] + self.names[-5:]:
            assert sallyport("exempt", "--user", user).returncode == 0

    @staticmethod
    def _sshd():
        lines = ["UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no",
                 "UseDNS no", "AuthenticationMethods publickey,keyboard-interactive",
                 f"DenyUsers {name(13)} {name(14)}"]
        for number in range(10):
            lines += [f"Match User {name(number * 11)},{name(number * 13 + 1)}",
                      "  AuthenticationMethods keyboard-interactive" if number % 2 else
                      "  AuthenticationMethods publickey"]
        for number in range(8):
            lines += [f"Match Group {group(number * 9)}",
                      "  AuthenticationMethods publickey keyboard-interactive" if number % 2 else
                      "  PermitEmptyPasswords no"]
        lines += ["Match Address 192.0.2.0/24 Group g050", "  AuthenticationMethods publickey",
                  "Match Address 198.51.100.0/24", "  AuthenticationMethods keyboard-interactive"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _sudoers():
        lines = [f"User_Alias ADMINS = {', '.join(name(number * 17) for number in range(12))}",
                 "Cmnd_Alias SERVICES = /usr/bin/systemctl, /usr/bin/journalctl",
                 "Defaults:p00007 !authenticate", "ADMINS ALL = (ALL) ALL"]
        lines += [f"%{group(number)} ALL = (ALL) ALL" for number in range(20, 56)]
        lines += [f"{name(number * 7)} ALL = (root) NOPASSWD: SERVICES" for number in range(30)]
        lines += [f"%{group(number)} ALL = ({name(number)}) /usr/bin/id" for number in range(60, 70)]
        lines += [f"{name(number * 3)} ALL = (ALL) NOPASSWD: ALL" for number in range(5, 15)]
        lines += [f"{name(number)} other-host = (ALL) ALL" for number in range(300, 310)]
        return "\n".join(lines) + "\n"
