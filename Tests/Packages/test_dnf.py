"""The signed dnf repository, by the real dnf, on a Debian 12 that has it: what EL's own libraries
provide is provided there by a package without files."""

import shutil
import subprocess

import pytest

from clean import Machine, made
from conftest import REPOSITORY, clean_debian

CLEAN = REPOSITORY / ".build/packages/dnf"
CONFIGURATION = """[sallyport]
name=Sallyport
baseurl=file:///srv/rpm
gpgcheck=1
repo_gpgcheck=1
gpgkey=file:///srv/rpm/sallyport.asc
"""
SYSTEM = """Name: system
Version: 1
Release: 1
Summary: What the packages want of a system
License: none
BuildArch: noarch
{provides}
%description
%files
"""
NAMES = {"pam-sallyport", "sallyport"}


def queried(packages, what):
    done = subprocess.run(["rpm", "-qp", f"--{what}", *packages], capture_output=True, text=True,
                          check=True)
    return set(done.stdout.splitlines())


def system_package(directory, packages):
    """A package that provides what these want and none of them has."""
    own = {line.split()[0] for line in queried(packages, "provides")}
    wanted = {line for line in queried(packages, "requires")
              if not line.startswith(("rpmlib(", "("))}
    spec = directory / "system.spec"
    provides = "\n".join(f"Provides: {line.split()[0]}" for line in sorted(wanted)
                         if line.split()[0] not in own)
    spec.write_text(SYSTEM.format(provides=provides))
    subprocess.run(["rpmbuild", "-bb", "--quiet", f"--define=_topdir {directory}",
                    f"--define=_rpmdir {directory}", spec], check=True, capture_output=True)
    [made] = directory.glob("noarch/system-*.rpm")
    return made


class System(Machine):
    """A machine that has dnf."""

    def offer(self, rpms):
        """The repository as it is downloaded, and nothing that was kept of an earlier one."""
        shutil.rmtree(self.root / "srv/rpm", ignore_errors=True)
        shutil.copytree(rpms / "rpm", self.root / "srv/rpm")
        shutil.copy(rpms / "sallyport.asc", self.root / "srv/rpm")
        for kept in ("var/cache/dnf", "var/lib/dnf/repos"):
            shutil.rmtree(self.root / kept, ignore_errors=True)

    def dnf(self, *words):
        done = self.run("dnf", "--assumeyes", *words)
        return done.returncode, done.stdout + done.stderr

    def installed(self):
        return NAMES & set(self.succeed("rpm", "-qa", "--qf", "%{NAME}\n").split())


@pytest.fixture(scope="module")
def system(signed, tmp_path_factory):
    if shutil.which("rpmbuild") is None:
        pytest.skip("rpmbuild is not installed")
    root = tmp_path_factory.mktemp("dnf") / "root"
    system = System(clean_debian(lambda: made(CLEAN, "dnf,rpm,libssl3,libstdc++6")), root, {})
    # rpm 4.20 gives scriptlets mounts of their own, which a root that is no mount point refuses.
    (root / "etc/rpm").mkdir(exist_ok=True)
    (root / "etc/rpm/macros").write_text("%__transaction_unshare %{nil}\n")
    (root / "etc/yum.repos.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/yum.repos.d/sallyport.repo").write_text(CONFIGURATION)
    built = system_package(tmp_path_factory.mktemp("system"), list((signed / "rpm").glob("*.rpm")))
    shutil.copy(built, root / "srv")
    system.succeed("rpm", "-i", "--nodeps", f"/srv/{built.name}")
    return system


def other_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def unsigned(repository):
    """As somebody makes it who has no key, with an index that fits."""
    for path in repository.glob("*.rpm"):
        subprocess.run(["rpmsign", "--delsign", path], check=True, capture_output=True)
    shutil.rmtree(repository / "repodata")
    subprocess.run(["createrepo_c", "--quiet", repository], check=True)


def an_index_of_theirs(repository):
    path = repository / "repodata/repomd.xml"
    path.write_text(path.read_text().replace("<revision>", "<revision>1", 1))


def a_list_of_theirs(repository):
    [path] = repository.glob("repodata/*primary.xml.gz")
    other_byte(path)


def a_package_of_theirs(repository):
    [path] = repository.glob("pam-sallyport-[0-9]*.rpm")
    other_byte(path)


@pytest.mark.parametrize(("tampered", "settings", "told"), [
    (an_index_of_theirs, (), "Bad GPG signature"),
    (unsigned, (), "GPG signature is not available"),
    (a_list_of_theirs, (), "checksum doesn't match"),
    (a_package_of_theirs, (), "has incorrect checksum"),
    # The packages' own signatures by themselves, where nobody looks at the index.
    (unsigned, ("--setopt=sallyport.repo_gpgcheck=0",), "is not signed"),
])
def test_what_somebody_without_the_key_changed_is_refused(tampered, settings, told, system, signed):
    system.offer(signed)
    tampered(system.root / "srv/rpm")
    status, said = system.dnf(*settings, "install", "pam-sallyport")
    assert status != 0 and told in said, said
    assert system.installed() == set()


def test_dnf_installs_from_the_signed_repository_and_removes(system, signed):
    system.offer(signed)
    status, said = system.dnf("install", "pam-sallyport")
    assert status == 0, said
    assert system.installed() == NAMES
    assert (system.root / "usr/lib64/security/pam_sallyport.so").exists()
    (system.root / "etc/pam.d/x").write_text("auth required pam_sallyport.so\n")
    status, said = system.dnf("remove", "pam-sallyport", "sallyport")
    assert "/etc/pam.d/x" in said and system.installed() == NAMES, said
    (system.root / "etc/pam.d/x").unlink()
    status, said = system.dnf("remove", "pam-sallyport", "sallyport")
    assert status == 0 and system.installed() == set(), said
