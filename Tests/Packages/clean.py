"""A clean Debian in a directory, entered in namespaces of its own."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess

MODULES = f"usr/lib/{os.uname().machine}-linux-gnu/security"
STORE = "var/lib/sallyport"
CONFIGURATION = "etc/security/sallyport.conf"
# Debian's name of the release that is tried.
SUITE = os.environ.get("SUITE", "bookworm")


@contextlib.contextmanager
def alone(directory):
    """Other processes that make the same directory wait until this one has made it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{directory}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made(directory, included, suite=SUITE):
    """The root directory of a Debian with these packages, as Debian 12 names them, which debootstrap
    makes once. CalledProcessError where it does not."""
    if suite != "bookworm":
        directory = directory.with_name(f"{directory.name}-{suite}")
        included = included.replace("libssl3", "libssl3t64")
    complete = directory / "complete"
    with alone(directory):
        if not complete.exists() or complete.read_text() != included:
            shutil.rmtree(directory, ignore_errors=True)
            subprocess.run(["debootstrap", "--variant=minbase", f"--include={included}", suite,
                            directory], capture_output=True, text=True, check=True)
            complete.write_text(included)
    return directory


def extended(directory, included, name, packages, suite=SUITE):
    """The same with more packages, which apt installs once in a copy of it. CalledProcessError where
    it does not."""
    base = made(directory, included, suite)
    larger = base.with_name(base.name.replace(directory.name, name))
    complete = larger / "complete"
    with alone(larger):
        if not complete.exists() or complete.read_text() != f"{included} {packages}":
            shutil.rmtree(larger, ignore_errors=True)
            copied(base, larger)
            shutil.copy("/etc/resolv.conf", larger / "etc/resolv.conf")
            script = f"apt-get update && apt-get install --yes --no-install-recommends {packages} && apt-get clean"
            subprocess.run(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", f"--root={larger}", "--wd=/",
                 "sh", "-c", script], capture_output=True, text=True, check=True,
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
            shutil.rmtree(larger / "var/lib/apt/lists")
            complete.write_text(f"{included} {packages}")
    return larger


def copied(clean, root):
    """A copy of such a directory, to be changed."""
    subprocess.run(["cp", "-a", clean, root], check=True)
    (root / "complete").unlink()
    # Else the log goes to the tester's console.
    (root / "dev/console").unlink(missing_ok=True)
    return root


class Machine:
    def __init__(self, clean, root, packages):
        self.root = copied(clean, root)
        for path in packages.values():
            shutil.copy(path, root / "root")
        self.packages = {name: f"/root/{path.name}" for name, path in packages.items()}

    def run(self, *command, typed=None):
        """Runs a command in it; never raises for its exit status."""
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             f"--root={self.root}", "--wd=/", *map(str, command)],
            input=typed, capture_output=True, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL if typed is None else None,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                 "HOME": "/root", "LC_ALL": "C.UTF-8"})

    def succeed(self, *command, typed=None):
        done = self.run(*command, typed=typed)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def install(self, *names):
        """Without the network: what they need must be there."""
        self.succeed("dpkg", "--force-confdef", "--force-confold", "--install",
                     *(self.packages[name] for name in names))

    def status(self, name):
        """As dpkg has it: `ii`, `rc`, or `--` where it knows nothing of it."""
        done = self.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", name)
        return done.stdout.strip() or "--"

    def newer(self, name, change):
        """A package of the next version, whose tree `change` has changed; now the one installed."""
        tree = self.root / "root" / f"{name}.tree"
        subprocess.run(["dpkg-deb", "-R", self.root / self.packages[name][1:], tree], check=True)
        control = tree / "DEBIAN/control"
        text = control.read_text()
        version = next(line for line in text.splitlines() if line.startswith("Version: "))[9:]
        control.write_text(text.replace(version, version + "+next"))
        change(tree)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree, f"{tree}.deb"],
                       check=True, capture_output=True)
        shutil.rmtree(tree)
        self.packages[name] = f"/root/{name}.tree.deb"

    def enroll(self, user):
        return json.loads(self.succeed(
            "sallyport", "enroll", "--user", user, "--no-confirm", "--json"))

    def login(self, service, user, *answers):
        """Whether pamtester gets in through the real libpam of this machine."""
        typed = "".join(f"{answer}\n" for answer in answers)
        return self.run("pamtester", service, user, "authenticate", typed=typed).returncode == 0

    def files(self):
        """{path: content}; of a link where it points, of a directory nothing."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = path.read_bytes()
            else:
                found[name] = None
        return found
