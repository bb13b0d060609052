"""make install and uninstall, into a directory of their own."""

import os
import subprocess
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
MODULES = "usr/lib/security"
ZSH = "vendor-completions" if Path("/etc/debian_version").exists() else "site-functions"
FILES = {
    f"{MODULES}/pam_sallyport.so": 0o644,
    "usr/bin/sallyport": 0o755,
    "usr/sbin/sallyportd": 0o755,
    "usr/sbin/sallyport-session": 0o755,
    "usr/lib/systemd/system/sallyport-session.socket": 0o644,
    "usr/lib/systemd/system/sallyport-session.service": 0o644,
    "usr/share/man/man8/sallyport-session.8": 0o644,
    "etc/pam.d/sallyport": 0o644,
    "usr/lib/systemd/system/sallyport.service": 0o644,
    "usr/lib/systemd/system/sallyport.socket": 0o644,
    "usr/lib/systemd/system/sallyport-root.socket": 0o644,
    "etc/init.d/sallyport": 0o755,
    "usr/share/man/man1/sallyport.1": 0o644,
    **{f"usr/share/man/man1/sallyport-{name}.1": 0o644 for name in ("doctor", "fleet", "import", "pam")},
    "usr/share/man/man5/sallyport.conf.5": 0o644,
    "usr/share/man/man8/pam_sallyport.8": 0o644,
    "usr/lib/systemd/system/sallyport-revert.service": 0o644,
    "usr/lib/systemd/system/multi-user.target.wants/sallyport-revert.service": 0o644,
    "usr/lib/systemd/system/sallyport-watch.path": 0o644,
    "usr/lib/systemd/system/sallyport-watch.service": 0o644,
    "usr/lib/systemd/system/multi-user.target.wants/sallyport-watch.path": 0o644,
    "usr/lib/systemd/system/multi-user.target.wants/sallyport-watch.service": 0o644,
    "usr/share/man/man8/sallyportd.8": 0o644,
    "usr/share/pam-configs/sallyport": 0o644,
    "usr/share/bash-completion/completions/sallyport": 0o644,
    f"usr/share/zsh/{ZSH}/_sallyport": 0o644,
    "usr/share/fish/vendor_completions.d/sallyport.fish": 0o644,
    "etc/security/sallyport.conf": 0o644,
    **{f"usr/share/sallyport/messages/{path.name}": 0o644 for path in (REPOSITORY / "pam/messages").iterdir()},
}
# Laid down as well where it was built, as `make deb` and `make release` do.
VERIFIER = {
    "usr/sbin/sallyport-verifier": 0o755,
    "usr/share/man/man8/sallyport-verifier.8": 0o644,
    "usr/lib/systemd/system/sallyport-verifier.service": 0o644,
}
STORE = "var/lib/sallyport"


def acts():
    """Where that the store was made is kept."""
    return f"{STORE}/acts/{time.strftime('%Y-%m', time.gmtime())}"


@pytest.fixture
def make(tmp_path):
    """make("install") into tmp_path."""
    # The store's own checks walk from the root: no directory on the way may be open to others.
    tmp_path.chmod(0o700)

    def run(target, prefix="/usr"):
        return subprocess.run(
            ["make", "--no-print-directory", "-C", REPOSITORY, target, f"DESTDIR={tmp_path}",
             f"PAMDIR=/{MODULES}", f"PREFIX={prefix}"],
            capture_output=True, text=True, check=False)
    return run


def laid_down(directory):
    return {str(path.relative_to(directory)): path.stat().st_mode & 0o777
            for path in directory.rglob("*") if path.is_file()}


def test_install_lays_down_the_files_and_a_store(make, tmp_path):
    done = make("install")
    assert done.returncode == 0, done.stderr
    store = {f"{STORE}/decoy/enrollment": 0o600, f"{STORE}/decoy/state": 0o600, acts(): 0o600}
    built = (REPOSITORY / ".build/stage/sbin/sallyport-verifier").exists()
    assert laid_down(tmp_path) == FILES | store | (VERIFIER if built else {})
    assert (tmp_path / STORE).stat().st_mode & 0o777 == 0o700
    assert "pam_sallyport" not in (tmp_path / "etc/pam.d/sallyport").read_text()


def test_at_the_start_the_installed_command_takes_back_what_waits(make, tmp_path):
    make("install")
    unit = tmp_path / "usr/lib/systemd/system/multi-user.target.wants/sallyport-revert.service"
    settings = dict(row.split("=", 1) for row in unit.read_text().splitlines() if "=" in row)
    command, *words = settings["ExecStart"].split()
    assert (tmp_path / command[1:]).exists() and words == ["pam", "revert"]
    source = (REPOSITORY / "Sources/Host/SallyportDoctor/Stack/PendingRevert.swift").read_text()
    assert f'path = "{settings["ConditionPathExists"]}"' in source


@pytest.mark.decisive
def test_notes_in_another_directory_are_not_given_uids_of_this_machine(make, tmp_path):
    make("install")
    notes = tmp_path / STORE / "unenrolled"
    notes.mkdir(mode=0o700)
    text = "# Sallyport\nversion = 1\nuser = daemon\nfrom = none\nlevel = exempt\n"
    (notes / "daemon").write_text(text)
    (notes / "daemon").chmod(0o600)
    assert make("install").returncode == 0
    assert (notes / "daemon").read_text() == text


def test_installing_again_keeps_configuration_and_store(make, tmp_path):
    make("install")
    configuration = tmp_path / "etc/security/sallyport.conf"
    configuration.write_text("# ours\n")
    decoy = (tmp_path / STORE / "decoy/enrollment").read_bytes()
    assert make("install").returncode == 0
    assert configuration.read_text() == "# ours\n"
    assert (tmp_path / STORE / "decoy/enrollment").read_bytes() == decoy


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_the_service_is_started_from_where_it_is(make, tmp_path, prefix):
    make("install", prefix)
    program = f"{prefix}/sbin/sallyportd"
    assert os.access(f"{tmp_path}{program}", os.X_OK)
    unit = (tmp_path / f"{prefix[1:]}/lib/systemd/system/sallyport.service").read_text()
    assert f"\nExecStart={program}\n" in unit
    assert f"\nDAEMON={program}\n" in (tmp_path / "etc/init.d/sallyport").read_text()
    make("uninstall", prefix)
    left = laid_down(tmp_path).keys()
    assert not [path for path in left if "sbin" in path or "systemd" in path or "init.d" in path]


# shows: uninstall
def test_uninstall_refuses_while_a_stack_names_the_module(make, tmp_path):
    make("install")
    stack = tmp_path / "etc/pam.d/sshd"
    stack.write_text("auth required pam_sallyport.so\n")
    before = laid_down(tmp_path)
    done = make("uninstall")
    assert done.returncode != 0 and str(stack) in done.stderr and "hint: " in done.stderr
    assert laid_down(tmp_path) == before
    stack.write_text("# auth required pam_sallyport.so\n")
    assert make("uninstall").returncode == 0
    left = laid_down(tmp_path).keys()
    assert left == {"etc/pam.d/sshd", "etc/security/sallyport.conf",
                    f"{STORE}/decoy/enrollment", f"{STORE}/decoy/state", acts()}


def test_nothing_is_installed_before_it_was_built(tmp_path):
    (tmp_path / "pam").mkdir()
    for name in ("install", "arch"):
        (tmp_path / "pam" / name).write_bytes((REPOSITORY / "pam" / name).read_bytes())
    done = subprocess.run(
        ["sh", tmp_path / "pam/install"], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "DESTDIR": str(tmp_path / "d"), "PREFIX": "/usr",
             "PAMDIR": f"/{MODULES}"})
    assert done.returncode == 66 and "hint: make build" in done.stderr
    assert not (tmp_path / "d").exists()


@pytest.mark.decisive
def test_what_is_for_another_architecture_is_laid_down_and_never_run(tmp_path):
    tmp_path.chmod(0o700)
    other = "amd64" if os.uname().machine == "aarch64" else "arm64"
    for name in ("pam", "docs", ".build/stage"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(REPOSITORY / name)
    programs = {"usr/bin/sallyport", "usr/sbin/sallyportd", "usr/sbin/sallyport-session"}
    staged = [name.removeprefix("usr/") for name in programs] + ["lib/pam_sallyport.so"]
    text = f"#!/bin/sh\n>>'{tmp_path}/ran'\n"
    for name in staged:
        program = tmp_path / f".build/stage-{other}" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    target = tmp_path / "target"
    target.mkdir()
    done = subprocess.run(
        ["sh", tmp_path / "pam/install"], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "DESTDIR": str(target), "PREFIX": "/usr",
             "PAMDIR": f"/{MODULES}", "ARCH": other})
    assert done.returncode == 0, done.stderr
    assert laid_down(target).keys() >= FILES.keys()
    for name in programs | {f"{MODULES}/pam_sallyport.so"}:
        assert (target / name).read_bytes() == text.encode(), name
    assert not (tmp_path / "ran").exists()
