"""A Debian for arm64 in a directory, unpacked and never configured: what the module for it is built
from, and where it runs, under qemu."""

import os
import shutil
import subprocess
from pathlib import Path

MODULES = "usr/lib/aarch64-linux-gnu/security"
STORE = "var/lib/sallyport"
# What the module is built from, and pamtester with what that loads.
PACKAGES = ("libc6", "libc6-dev", "linux-libc-dev", "libcrypt1", "libgcc-s1", "libgcc-12-dev", "zlib1g",
            "libssl3", "libssl-dev", "libqrcodegen-dev", "libpam0g", "libpam0g-dev", "libaudit1",
            "libcap-ng0", "pamtester")


def made(directory, clean):
    """Such a root directory, from the mirror that `clean` is from. CalledProcessError where it
    cannot be made. Nothing of it is run, and this machine's dpkg does not know of it."""
    complete = directory / "complete"
    if complete.exists() and complete.read_text() == " ".join(PACKAGES):
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    state = directory / "apt"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    apt = clean / "etc/apt"
    options = [f"-o{option}" for option in (
        "APT::Architecture=arm64", "APT::Architectures=arm64", "APT::Sandbox::User=root",
        "Acquire::Languages=none", f"Dir::State={state}", f"Dir::State::status={state}/status",
        f"Dir::Cache={state}", f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=-",
        f"Dir::Etc::trustedparts={apt}/trusted.gpg.d")]
    for words in (["update", "-qq"], ["download", "-qq", *PACKAGES]):
        subprocess.run(["apt-get", *options, *words], check=True, capture_output=True, text=True,
                       cwd=state / "archives")
    for package in (state / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, directory], check=True)
    _merge(directory)
    shutil.rmtree(state)
    complete.write_text(" ".join(PACKAGES))
    return directory


def _merge(root):
    """/lib becomes a link to /usr/lib, and no link leads out of the directory."""
    subprocess.run(["cp", "-a", f"{root}/lib/.", f"{root}/usr/lib/"], check=True)
    shutil.rmtree(root / "lib")
    (root / "lib").symlink_to("usr/lib")
    for directory, _, names in os.walk(root):
        for path in (Path(directory, name) for name in names):
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                path.unlink()
                path.symlink_to(f"{root}{target}")


def embedded(directory):
    """The library of Embedded Swift for Linux on arm64, laid out as in a toolchain; None where this
    one has none. It holds that for bare machines, whose code is the same: only the name of the
    triple differs, and is put in its place with one of the same length."""
    found = Path(shutil.which("swiftc")).resolve().parents[1] / "lib/swift/embedded"
    bare = "aarch64-none-none-elf"
    for name in ("Swift", "Synchronization", "_Builtin_float", "_Volatile"):
        module = found / f"{name}.swiftmodule" / f"{bare}.swiftmodule"
        if not module.exists():
            return None
        renamed = directory / f"{name}.swiftmodule/aarch64-unknown-linux-gnu.swiftmodule"
        renamed.parent.mkdir(parents=True, exist_ok=True)
        content = module.read_bytes().replace(bare.encode(), b"aarch64-unk-linux-gnu")
        if not renamed.exists() or renamed.read_bytes() != content:
            renamed.write_bytes(content)
    library = directory / "aarch64-unknown-linux-gnu"
    library.unlink(missing_ok=True)
    library.symlink_to(found / bare)
    return directory


def machine(sysroot, module, root):
    """A copy to log in to, with this module in a service `try`."""
    shutil.copytree(sysroot / "usr/lib", root / "usr/lib", symlinks=True,
                    ignore=shutil.ignore_patterns("gcc", "*.a", "*.o"))
    (root / "lib").symlink_to("usr/lib")
    for name in ("usr/bin", "etc/pam.d", MODULES, "var/lib"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(sysroot / "usr/bin/pamtester", root / "usr/bin")
    shutil.copy(shutil.which("qemu-aarch64-static"), root / "usr/bin")
    shutil.copy(module, root / MODULES)
    (root / STORE).mkdir(mode=0o700)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/pam.d/try").write_text("auth required pam_sallyport.so nodelay\n")
    return root


def login(root, code):
    """Whether root gets in there with this code."""
    done = subprocess.run(
        ["unshare", "--mount", f"--root={root}", "--wd=/", "/usr/bin/qemu-aarch64-static",
         "/usr/bin/pamtester", "try", "root", "authenticate"],
        input=f"{code}\n", capture_output=True, text=True, timeout=60, check=False, env={})
    said = done.stdout + done.stderr
    assert "successfully authenticated" in said or "Authentication failure" in said, said
    return done.returncode == 0
