"""A host of the fleet on a machine of the network: accounts, the module, its service."""

import contextlib
import os
import re
import signal
from pathlib import Path

import pexpect

from support.codes import totp
from support.typist import Child
from support.machines import ROOT
from support.service import listens, soon

STAGE = Path(os.environ.get("SALLYPORT_STAGE", ROOT / ".build/stage"))
MODULE = os.environ.get("SALLYPORT_MODULE", str(STAGE / "lib/pam_sallyport.so"))
COMMAND = os.environ.get("SALLYPORT_COMMAND", str(STAGE / "bin/sallyport"))
SERVICE = os.environ.get("SALLYPORT_SERVICE", str(STAGE / "sbin/sallyportd"))
PASSWORD = "correct horse"
POLICY = """[default]
verification = fleet
enrollment = required
local_services = login fleet
"""


class Host:
    """One of them. Logins are by pamtester, as root, of a stack with our line alone."""

    def __init__(self, machine):
        self.machine, self.name = machine, machine.name
        self.service = None
        self.use()

    def use(self, module=MODULE, service=SERVICE, command=COMMAND):
        """From the next `prepare` and `start` on, these."""
        self.module, self.program, self.command = module, service, command

    def prepare(self, people, policy=POLICY):
        self.accounts(people)
        self.machine.write("/etc/security/sallyport.conf", policy, 0o644)
        self.machine.write("/etc/pam.d/fleet", f"auth required {self.module} nodelay\naccount required pam_permit.so\n")
        # With a password in front: only after one do people enroll in the login.
        self.machine.write("/etc/pam.d/first", f"""auth required pam_unix.so nodelay
auth required {self.module} enroll nodelay
account required {self.module}
account required pam_unix.so
session required {self.module}
session required pam_permit.so
""")
        self.machine.sh("install -d -m 0700 /var/lib/sallyport")

    def accounts(self, people):
        """`people`: {name: uid}; those that there are stay."""
        for name, uid in people.items():
            self.machine.account(name, uid, PASSWORD)

    def memory(self):
        """All that the service has in memory and may read."""
        found = bytearray()
        with open(f"/proc/{self.service.pid}/maps") as maps, open(f"/proc/{self.service.pid}/mem", "rb", 0) as memory:
            for line in maps:
                place, rights = line.split()[:2]
                if "r" not in rights or "[v" in line:
                    continue
                start, end = (int(number, 16) for number in place.split("-"))
                memory.seek(start)
                with contextlib.suppress(OSError):
                    found += memory.read(end - start)
        return bytes(found)

    def start(self):
        self.service = self.machine.start(self.program)
        path = self.machine.path("/run/sallyport/root")
        assert soon(lambda: not self.service.alive or listens(path), 60), "it did not start"
        assert self.service.alive, f"status {self.service.poll()}"
        return self

    def kill(self):
        if self.service and self.service.alive:
            self.service.kill()

    def stop(self):
        if self.service and self.service.alive:
            self.service.send(signal.SIGTERM)
            self.service.wait()

    def sallyport(self, *words, **more):
        return self.machine.run(self.command, *words, **{"check": False} | more)

    def join(self, token, *words):
        return self.sallyport("fleet", "join", "--without-break-glass", *words, input=token + "\n")

    def login(self, name, *typed, limit=60):
        """Whether pamtester lets them in, and what it wrote."""
        done = self.machine.run(
            "pamtester", "fleet", name, "authenticate", input="".join(f"{word}\n" for word in typed), check=False,
            timeout=limit)
        return done.returncode == 0, done.stdout + done.stderr

    def enters(self, name, *typed, **more):
        return self.login(name, *typed, **more)[0]

    def enroll(self, name, given=None):
        """At a login with a password, and with `given` as the code. The secret, the code that was typed, and the
        backup codes."""
        child = Child([*self.machine.enter(), "pamtester", "first", name, "authenticate", "acct_mgmt", "open_session"],
                      timeout=60)
        try:
            child.expect("[Pp]assword: ?$")
            child.answer(PASSWORD)
            if given:
                child.expect("code: ?$")
                child.sendline(given)
            child.expect(r"Set it up now\? \[y/n\]: ?$")
            child.sendline("y")
            child.expect("secret=([A-Z2-7]+)")
            secret = child.match[1]
            child.expect("Code shown by the app: ?$")
            [code] = totp(secret)
            child.sendline(code)
            child.expect("Press Enter when you have them: ?$")
            backup = re.findall(r"(?:\w{4}-){3}\w{4}", child.before)
            child.sendline("")
            child.expect(pexpect.EOF)
            child.wait()
            assert child.exitstatus == 0, child.before
            return secret, code, backup
        finally:
            child.close(force=True)

    def forget(self):
        """As it was before it joined anything."""
        self.kill()
        self.machine.sh("rm -rf /etc/security/sallyport-fleet.* /var/lib/sallyport /run/sallyport; "
                        "install -d -m 0700 /var/lib/sallyport")
