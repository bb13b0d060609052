"""The same way with google-authenticator, as its README and its questions lead: from the package to
the first login with a code, typed on the same clean Debian 12 as ours (journey.py)."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from journey import REPOSITORY, Shell, prepare, refused, tally, walk

ARCHIVE = REPOSITORY / ".build/packages/peer"
COMMANDS = [
    "sudo apt-get install ./libqrencode4_*.deb ./libpam-google-authenticator_*.deb",
    "sudo -iu alice google-authenticator",
    "sudo sensible-editor /etc/pam.d/sshd",
    "sudo sensible-editor /etc/ssh/sshd_config",
    "sudo service ssh restart",
    "ssh alice@localhost",
]
# What somebody does in the two files that these commands open, and a count of them.
EDITOR = """#!/bin/sh -e
echo "$1" >>/root/opened
case $1 in
  */pam.d/sshd) sed -i '/^@include common-auth/a auth required pam_google_authenticator.so' "$1" ;;
  */sshd_config) sed -i 's/^KbdInteractiveAuthentication no/KbdInteractiveAuthentication yes/' "$1" ;;
esac
"""


def archive():
    """Its packages, of this machine's Debian; CalledProcessError without a mirror."""
    if not list(ARCHIVE.glob("*.deb")):
        ARCHIVE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "libqrencode4", "libpam-google-authenticator"],
                       cwd=ARCHIVE, check=True, capture_output=True)
    return ARCHIVE.glob("*.deb")


def way():
    """What it takes."""
    directory = Path(tempfile.mkdtemp(prefix="peer-journey."))
    try:
        root = directory / "root"
        prepare(root)
        for path in archive():
            shutil.copy(path, root / "srv")
        editor = root / "usr/bin/editor"
        editor.unlink(missing_ok=True)
        editor.write_text(EDITOR)
        editor.chmod(0o755)
        shell = Shell(root)
        _, times = walk(shell, COMMANDS)
        opened = (root / "root/opened").read_text().splitlines()
        taken = tally(shell, COMMANDS, times, len(opened))
        refused(shell, COMMANDS[-1])
        shell.child.close(force=True)
    finally:
        shutil.rmtree(directory)
    return taken
