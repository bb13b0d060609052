"""What is done where systemd has started the service, by its units: prints a line for each thing seen.
Run by test_service_systemd.py, on the machine that `boot` makes."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from support.pam_driver import Driver
from support.sallyport import Services
from support.service import ANSWERS, PUBLIC, ROOT, ask, many_users, soon

SESSION, STATUS = "/run/sallyport/session", b"\x01\x11\x00"


def become(uid, effective):
    def change():
        os.setgroups([])
        os.setresuid(uid, effective, effective)
    return change


def tell(**facts):
    print(json.dumps(facts), flush=True)


def main_process():
    shown = subprocess.run(["systemctl", "show", "-p", "MainPID", "--value", "sallyport.service"],
                           capture_output=True, text=True, check=True)
    return int(shown.stdout)


def answered():
    return [ask(path) == ANSWERS[path] for path in (ROOT, PUBLIC)]


def status_of_alice():
    """The first bytes of what a session shows her."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(20)
        os.setresuid(3001, 3001, 0)
        client.connect(SESSION)
        os.setresuid(0, 0, 0)
        client.send(STATUS)
        return client.recv(1 << 17)[:2].hex()


def kills(times):
    """The longest wait for an answer after kill -9, of this number one after the other."""
    waits = []
    for _ in range(times):
        assert soon(lambda: main_process() > 0)
        os.kill(main_process(), 9)
        start = time.monotonic()
        assert ask(ROOT) == ANSWERS[ROOT]
        waits.append(time.monotonic() - start)
    return max(waits)


# What the unit of polkit's helper has, but for PrivateTmp, in which these tests are not.
SANDBOX = """[Service]
Type=oneshot
NoNewPrivileges=yes
PrivateNetwork=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_UNIX
RestrictSUIDSGID=yes
SystemCallFilter=@system-service
UMask=0077
StandardOutput=truncate:/run/sandboxed
EnvironmentFile=/run/sandboxed.environment
"""


def sandboxed(*codes):
    """What root's own program comes to that may not write the store."""
    text = "".join(f'{name}="{value}"\n' for name, value in os.environ.items() if "\n" not in value)
    Path("/run/sandboxed.environment").write_text(text)
    words = " ".join([sys.executable, str(Path(__file__).resolve()), "--sandboxed", *codes])
    Path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
    Path("/run/systemd/system/sandboxed.service").write_text(f"{SANDBOX}ExecStart={words}\n")
    systemctl("daemon-reload")
    systemctl("start", "sandboxed.service")
    return json.loads(Path("/run/sandboxed").read_text())


def systemctl(*words):
    subprocess.run(["systemctl", *words], check=True)


def in_sandbox(codes):
    # All but the API file systems is read-only here.
    with Driver(SimpleNamespace(directory="/run/stacks")) as helper:
        print(json.dumps([helper.login("locker", "alice", code).result for code in codes]))


def main(right, other, third, fourth, fifth):
    tell(running_before=main_process() > 0)
    tell(answered=answered(), running=main_process() > 0)
    services = Services("/run/stacks")
    services.code("locker", None, "nodelay")
    with Driver(services, preexec=become(3001, 3001)) as own, \
            Driver(services, preexec=become(3002, 0)) as su:
        tell(own=[own.login("locker", "alice", code).result for code in (right, right)],
             su=su.login("locker", "alice", other).result)
        tell(session=[status_of_alice() for _ in range(3)])
        tell(longest_wait=kills(8))
        with many_users(SESSION):
            tell(numbers_left=status_of_alice())
        tell(own_after=own.login("locker", "alice", third).result)
    tell(sandboxed=sandboxed(fourth, fourth))
    os.rename(ROOT, f"{ROOT}.away")
    tell(sandboxed_alone=sandboxed(fifth))
    os.rename(f"{ROOT}.away", ROOT)
    tell(sandboxed_again=sandboxed(fifth))
    modes = [oct(Path(path).stat().st_mode & 0o777) for path in (ROOT, PUBLIC, SESSION)]
    tell(modes=modes, sessions_answered=status_of_alice(), done=True)


if sys.argv[1] == "--sandboxed":
    in_sandbox(sys.argv[2:])
else:
    main(*sys.argv[1:])
