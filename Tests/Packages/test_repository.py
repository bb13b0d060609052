"""One life of the packages on a clean Debian 12 with a real sshd, from a signed apt repository: each
test goes on where the one above it ended."""

import re
import shutil
import subprocess

import pytest

import journey
from clean import copied, made
from conftest import DIST, REPOSITORY, clean_debian

BEFORE = "0.0.9-0sallyport1"
LOGIN = "ssh alice@localhost"
SOURCE = "deb [signed-by=/etc/apt/keyrings/sallyport.asc] file:/srv/repository stable main\n"
NAMES = ("sallyport", "libpam-sallyport")


def version(package):
    return subprocess.run(["dpkg-deb", "-f", package, "Version"], capture_output=True, text=True,
                          check=True).stdout.strip()


def older(package):
    """Makes it the package of the version before, in its place."""
    tree = package.parent / "tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace(version(package), BEFORE))
    package.unlink()
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree, package.parent],
                   check=True, capture_output=True)
    shutil.rmtree(tree)


@pytest.fixture(scope="module")
def before(key, tmp_path_factory):
    """A signed repository of the version before."""
    directory = tmp_path_factory.mktemp("before") / "dist"
    shutil.copytree(DIST, directory)
    for package in (directory / "apt/pool").glob("*.deb"):
        older(package)
    subprocess.run([REPOSITORY / "pam/repository", directory], check=True, capture_output=True,
                   env=key.environment)
    return directory


@pytest.fixture(scope="module")
def server(before, tmp_path_factory):
    clean_debian(lambda: made(journey.CLEAN, journey.INCLUDED))
    root = tmp_path_factory.mktemp("server") / "root"
    journey.prepare(root)
    for package in (root / "srv").glob("*.deb"):
        package.unlink()
    shutil.rmtree(root / "etc/apt/sources.list.d", ignore_errors=True)
    (root / "etc/apt/sources.list").write_text(SOURCE)
    (root / "etc/apt/keyrings").mkdir(exist_ok=True)
    shutil.copy(before / "sallyport.asc", root / "etc/apt/keyrings")
    served = Server(root)
    served.offer(before)
    yield served
    served.shell.child.close(force=True)


class Server:
    def __init__(self, root):
        self.root = root
        self.shell = journey.Shell(root)

    def offer(self, dist):
        shutil.rmtree(self.root / "srv/repository", ignore_errors=True)
        shutil.copytree(dist / "apt", self.root / "srv/repository")

    def run(self, command):
        """What it says, and its exit status."""
        seen, _ = self.shell.type(command)
        return seen, self.shell.status()

    def succeed(self, command):
        seen, status = self.run(command)
        assert status == 0, seen
        return seen

    def logs_in(self):
        seen, _ = self.shell.type(LOGIN)
        return "Verification code:" in seen and "alice@web1:~$" in seen

    def versions(self):
        seen, _ = self.run(f"dpkg-query -W -f '=${{Version}}=' {' '.join(NAMES)}")
        return set(re.findall("=([0-9][^=]*)=", seen.replace("\n", "")))


def test_apt_installs_from_the_signed_repository(server):
    server.succeed("apt-get update")
    server.succeed("apt-get install -y libpam-sallyport")
    assert server.versions() == {BEFORE}


def test_somebody_enrolls_and_logs_in_over_ssh(server):
    server.succeed("sallyport enroll alice")
    server.succeed("sallyport pam enable sshd --yes")
    assert server.logs_in()
    journey.refused(server.shell, LOGIN)


@pytest.mark.parametrize("name", ["InRelease", "main/binary-amd64/Packages"])
def test_a_tampered_index_is_refused(server, signed, name):
    server.offer(signed)
    path = server.root / "srv/repository/dists/stable" / name
    content = path.read_text()
    changed = re.sub("(?m)^(Size: |Date: ...)", r"\g<1>1", content, count=1)
    assert changed != content
    path.write_text(changed)
    path.with_name("Packages.gz").unlink(missing_ok=True)
    seen, status = server.run("apt-get update -o APT::Update::Error-Mode=any")
    assert status != 0 and re.search("BADSIG|not signed|unexpected size|Hash Sum mismatch|signature", seen), seen
    server.run("apt-get upgrade -y")
    assert server.versions() == {BEFORE}


def test_an_upgrade_keeps_the_enrollment_and_the_login(server, signed):
    server.offer(signed)
    server.succeed("apt-get update")
    server.succeed("apt-get upgrade -y")
    assert server.versions() == {version(path) for path in (signed / "apt/pool").glob("*.deb")}
    assert server.versions() != {BEFORE}
    assert server.logs_in()
    journey.refused(server.shell, LOGIN)


def test_removal_is_refused_while_sshd_names_the_module(server):
    seen, status = server.run("apt-get remove -y libpam-sallyport")
    assert status != 0 and "/etc/pam.d/sshd" in seen
    assert server.logs_in()


def test_after_disabling_it_can_be_removed_and_purged(server):
    server.succeed("sallyport pam disable sshd --yes")
    server.succeed("apt-get remove -y libpam-sallyport sallyport")
    assert not list(server.root.glob("usr/lib/*/security/pam_sallyport.so"))
    assert (server.root / "var/lib/sallyport/users/alice").is_dir()
    server.succeed("apt-get purge -y libpam-sallyport sallyport")
    assert not (server.root / "var/lib/sallyport").exists()
    assert not list(server.root.glob("etc/**/*sallyport.conf*"))
    seen, _ = server.shell.type(LOGIN)
    assert "Verification code:" not in seen and "alice@web1:~$" in seen
