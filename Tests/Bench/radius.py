"""What an administrator would pick for many hosts: pam_radius_auth over two FreeRADIUS, each of which checks codes
by google-authenticator's module, with files of its own."""

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path

from machine import BUILT, SCRATCH, environment, read_times
from modules import BASE32, GoogleAuthenticator, code, put
from report import OURS, percentile
from support.fleet import ACCEPTED, Line, Verifier
from support.sallyport import Services
from support.service import attempt, soon

RADIUS = "FreeRADIUS"
MODULE = next(Path("/usr/lib").glob("*-linux-gnu/security/pam_radius_auth.so"), None)
SECRET = "testing123"


class Server:
    """One of the two, with the secrets of these people."""

    def __init__(self, number, names):
        self.directory, self.users = SCRATCH / f"raddb{number}", SCRATCH / f"radius{number}"
        self.users.mkdir(mode=0o700)
        self.directory.mkdir()
        for name in names:
            put(self.users / name, f'{BASE32}\n" RATE_LIMIT 3 30\n" WINDOW_SIZE 3\n" DISALLOW_REUSE\n" TOTP_AUTH\n', 0o400)
        Path(f"/etc/pam.d/radius{number}").write_text(
            f"auth required {GoogleAuthenticator.module} user=root secret={self.users}/${{USER}}\n"
            "account required pam_permit.so\n")
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.directory / "dictionary").touch()
        (self.directory / "radiusd.conf").write_text(
            f"prefix = /usr\nname = freeradius\nlogdir = /tmp\nrun_dir = /tmp\nlibdir = /usr/lib/freeradius\n"
            f"thread pool {{\n  start_servers = 5\n  max_servers = 32\n}}\n"
            f"client localhost {{\n  ipaddr = 127.0.0.1\n  secret = {SECRET}\n}}\n"
            f"modules {{\n  pam {{\n    pam_auth = radius{number}\n  }}\n}}\n"
            f"server default {{\nlisten {{\n  type = auth\n  ipaddr = 127.0.0.1\n  port = {self.port}\n}}\n"
            "authorize {\n  update control {\n    Auth-Type := PAM\n  }\n}\n"
            "authenticate {\n  Auth-Type PAM {\n    pam\n  }\n}\n}\n")
        self.process = subprocess.Popen(
            ["freeradius", "-f", "-l", "stdout", "-d", self.directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert soon(lambda: self.process.poll() is not None or self.listens()), "freeradius did not start"
        assert self.process.poll() is None

    def listens(self):
        return f":{self.port:04X} " in Path("/proc/net/udp").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def logins(services, service, names, at):
    """Whether each of them gets in with the code of this time, and the milliseconds that it took."""
    times = SCRATCH / f"times-{service}"
    times.unlink(missing_ok=True)
    script = [f"service={service} user={name.encode().hex()} repeat=1 answers={code(at).encode().hex()}\n" for name in names]
    subprocess.run([BUILT / "driver", services.directory], input="".join(script), text=True, check=True,
                   stdout=subprocess.DEVNULL, env=environment(times, BENCH_WARM="1"))
    found = read_times(times)
    return sum(one.good for one in found), [(one.end - one.begin) / 1e6 for one in found]


def twice(made, people):
    """Codes that a second verifier takes after the first one has."""
    with contextlib.ExitStack() as exit:
        two = Verifier(made.words, made.directory, "two")
        two.listens = lambda: made.answers(two)
        exit.callback(two.stop)
        two.start()
        frames = [(Line.question(attempt(name.encode(), people.code(name).encode())), b"") for name in people.names[:40]]
        first, _ = made.ask(1, frames)
        again, _ = made.ask(1, frames, two)
    taken = [(one[2] == ACCEPTED, two[2] == ACCEPTED) for one, two in zip(first, again)]
    return f"{taken.count((True, True))} of {sum(one for one, _ in taken)}"


def measure(report, made, people):
    """With the codes that are good a second time where the first server does not answer any more."""
    if MODULE is None or shutil.which("freeradius") is None:
        return
    names = [f"chain{number}" for number in range(40)]
    services, at = Services(SCRATCH / "pam.radius"), int(time.time())
    with contextlib.ExitStack() as exit:
        servers = [Server(number, names) for number in (1, 2)]
        for server in servers:
            exit.callback(server.stop)
        for service, order in ("one", servers), ("two", servers[1:]):
            file = SCRATCH / f"{service}.conf"
            put(file, "".join(f"127.0.0.1:{server.port} {SECRET} 3\n" for server in order))
            services.write(service, f"auth required {MODULE} conf={file}", "account required pam_permit.so")
        first, taken = logins(services, "one", names, at)
        again, _ = logins(services, "two", names, at)
    report.row("pam_radius_auth, two FreeRADIUS: p50, ms", {RADIUS: percentile(taken, 0.5)})
    report.row("  p99, ms", {RADIUS: percentile(taken, 0.99)})
    report.row("codes that the second server takes as well",
               {OURS: twice(made, people), RADIUS: f"{again} of {first}"}, "ours: 0")
