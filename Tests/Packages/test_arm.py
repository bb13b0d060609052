"""For arm64: the module is built here, and answers logins under qemu; packages are made of it."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import arm
from conftest import REPOSITORY
from support.codes import totp

COMMAND = REPOSITORY / ".build/stage/bin/sallyport"
MODULE = REPOSITORY / ".build/stage-arm64/lib/pam_sallyport.so"


@pytest.fixture(scope="module")
def sysroot(clean):
    if os.uname().machine != "x86_64":
        pytest.skip("this is no x86-64 machine: on arm64 every other test is this one")
    if shutil.which("qemu-aarch64-static") is None:
        pytest.skip("qemu-user-static is not installed: nothing for arm64 runs here")
    try:
        return arm.made(REPOSITORY / ".build/packages/arm64", clean)
    except subprocess.CalledProcessError as failed:
        last = ((failed.stdout or "") + (failed.stderr or "")).strip().splitlines()[-1:]
        pytest.skip(f"no packages for arm64, is a mirror in reach? {last}")


@pytest.fixture(scope="module")
def build(sysroot):
    """build(): pam/build of the module for arm64."""
    embedded = arm.embedded(REPOSITORY / ".build/packages/embedded-arm64")
    if embedded is None:
        pytest.skip("this toolchain has no library of Embedded Swift for arm64")
    return lambda: subprocess.run(
        [REPOSITORY / "pam/build", "module"], capture_output=True, text=True, check=False,
        timeout=600,
        env=os.environ | {"ARCH": "arm64", "SYSROOT": str(sysroot), "EMBEDDED": str(embedded)})


@pytest.fixture(scope="module")
def module(build):
    done = build()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return MODULE


def test_the_module_for_arm_needs_what_this_one_needs(module):
    said = subprocess.run(["readelf", "-hd", module], capture_output=True, text=True, check=True).stdout
    assert "AArch64" in said and "BIND_NOW" in said
    assert set(re.findall(r"NEEDED.*\[(.*)\]", said)) == {
        "libpam.so.0", "libc.so.6", "ld-linux-aarch64.so.1"}


def test_a_module_with_libpam_linked_in_is_not_staged(build, sysroot, module, tmp_path):
    """lld takes libpam.a where libpam.so is a link that leads nowhere, and says nothing."""
    tools = Path(shutil.which("swiftc")).resolve().parent
    undefined = subprocess.run([tools / "llvm-nm", "-D", "--undefined-only", module],
                               capture_output=True, text=True, check=True).stdout
    source = "".join(f"int {name}(void) {{ return 0; }}\n"
                     for name in re.findall(r"\b(pam_\w+)", undefined))
    subprocess.run([tools / "clang", "--target=aarch64-unknown-linux-gnu", "-fPIC", "-c", "-x", "c",
                    "-o", tmp_path / "pam.o", "-"], input=source, text=True, check=True)
    subprocess.run([tools / "llvm-ar", "rcs", tmp_path / "libpam.a", tmp_path / "pam.o"], check=True)
    libraries, staged = sysroot / "usr/lib/aarch64-linux-gnu", module.read_bytes()
    for name in ("libpam.so", "libpam.a"):
        (libraries / name).rename(libraries / f"{name}.kept")
    try:
        (libraries / "libpam.so").symlink_to("/nonexistent")
        shutil.copy(tmp_path / "libpam.a", libraries)
        done = build()
    finally:
        for name in ("libpam.so", "libpam.a"):
            (libraries / f"{name}.kept").rename(libraries / name)
    assert done.returncode == 70 and "hint: " in done.stderr, done.stdout[-2000:] + done.stderr
    assert module.read_bytes() == staged


def test_an_enrollment_made_here_logs_in_on_arm(module, sysroot, tmp_path):
    root = arm.machine(sysroot, module, tmp_path / "root")

    def sallyport(*words):
        return subprocess.run([COMMAND, *words, "--store", root / arm.STORE], capture_output=True,
                              text=True, check=True).stdout
    sallyport("prepare")
    made = json.loads(sallyport("enroll", "--user", "root", "--no-confirm", "--json"))
    code, backup = totp(made["secret"])[0], made["backupCodes"][0]
    tries = ("000000", code, code, backup, backup)
    assert [arm.login(root, typed) for typed in tries] == [False, True, False, True, False]
    # And what was written there is read here.
    assert "9 of 10 left" in sallyport("status", "--user", "root")


def test_packages_for_arm_are_made_without_running_it(module, packages, tmp_path):
    """Of what was staged for it: the module, and programs that cannot run here."""
    for name in ("pam", "docs", "CHANGELOG.md", "Sources", ".build/stage"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(REPOSITORY / name)
    staged = tmp_path / ".build/stage-arm64"
    for name in ("lib/pam_sallyport.so", "bin/sallyport", "sbin/sallyportd", "sbin/sallyport-session",
                 "sbin/sallyport-verifier"):
        (staged / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, staged / name)
    version = Path(packages["sallyport"]).name.split("_")[1].rsplit("-", 1)[0]
    done = subprocess.run(["sh", tmp_path / "pam/deb"], capture_output=True, text=True, check=False,
                          env=os.environ | {"ARCH": "arm64", "VERSION": version})
    assert done.returncode == 0, done.stderr
    for name, native in packages.items():
        [made] = (tmp_path / ".build/deb").glob(f"{name}_*_arm64.deb")
        assert made.name == Path(native).name.replace("_amd64", "_arm64")

        def fields(path, *names):
            return subprocess.run(["dpkg-deb", "-f", path, *names], capture_output=True, text=True,
                                  check=True).stdout
        assert fields(made, "Architecture").strip() == "arm64"
        assert fields(made, "Depends") == fields(native, "Depends")
        tree = tmp_path / name
        subprocess.run(["dpkg-deb", "-x", made, tree], check=True)
    installed = tmp_path / "libpam-sallyport" / arm.MODULES / "pam_sallyport.so"
    assert installed.read_bytes() == module.read_bytes()
    completion = tmp_path / "sallyport/usr/share/bash-completion/completions/sallyport"
    assert "_sallyport" in completion.read_text()
