"""FreeRADIUS as docs/recipes.md sets it up: real server and radclient over 127.0.0.1."""

import re
import shutil
import socket
import subprocess
from pathlib import Path

import pexpect
import pytest

from support import recipes
from support.sallyport import COMMAND, Enrollment, handed_out

HEADING = "### FreeRADIUS"
STORE = Path("/var/lib/freeradius/sallyport")
pytestmark = pytest.mark.skipif(
    shutil.which("freeradius") is None or shutil.which("radclient") is None,
    reason="freeradius and freeradius-utils are not installed")


def enroll():
    """The recipe's commands; what stands on the sheet that they leave."""
    shutil.rmtree(STORE.parent, ignore_errors=True)
    commands = recipes.block(HEADING, "has its own store")
    subprocess.run(["sh", "-ec", commands.replace(" sallyport ", f" {COMMAND} ")], check=True, capture_output=True)
    sheet = (STORE.parent / "alice.svg").read_text()
    secret = re.search(r"secret=([A-Z2-7]+)", sheet.replace("</text>\n", ""))[1]
    codes = re.findall(r"(?:[0-9A-Z]{4}-){3}[0-9A-Z]{4}", sheet)
    handed_out.extend([secret, *codes])
    return Enrollment("alice", secret, "totp", "sha1", 6, 30, None, "", codes)


@pytest.fixture
def ask(tmp_path):
    """The server's answer to a request with such a password: accept or reject."""
    Path("/etc/pam.d/radiusd").write_text(recipes.stack(HEADING, "radiusd"))
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    directory = Path("/run/raddb")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "dictionary").touch()
    (directory / "radiusd.conf").write_text(
        f"prefix = /usr\nname = freeradius\nlogdir = /tmp\nrun_dir = /tmp\n"
        f"libdir = /usr/lib/freeradius\nsecurity {{\n  user = freerad\n  group = freerad\n}}\n"
        f"client localhost {{\n  ipaddr = 127.0.0.1\n  secret = testing123\n}}\n"
        f"modules {{\n  pam {{\n    pam_auth = radiusd\n  }}\n}}\n"
        f"server default {{\nlisten {{\n  type = auth\n  ipaddr = 127.0.0.1\n  port = {port}\n}}\n"
        f"{recipes.block(HEADING, 'and in the site')}}}\n")
    directory.chmod(0o755)
    server = pexpect.spawn("freeradius", ["-X", "-d", str(directory)], encoding="utf-8", timeout=30)
    server.expect("Ready to process requests")

    def request(password):
        done = subprocess.run(
            ["radclient", "-x", "-r", "1", "-t", "15", f"127.0.0.1:{port}", "auth", "testing123"],
            input=f'User-Name = "alice", User-Password = "{password}"\n', capture_output=True,
            text=True, check=False)
        return re.search(r"Received Access-(Accept|Reject)", done.stdout)[1].lower()
    yield request
    server.close(force=True)


@pytest.mark.decisive
def test_a_code_is_the_password_of_a_request_and_is_good_once(ask, sink):
    enrollment = enroll()
    code = enrollment.code()
    assert ask(enrollment.wrong()) == "reject"
    with sink.watch() as lines:
        assert ask(code) == "accept"
    assert "pam_sallyport(radiusd:auth): code accepted: user=alice" in lines[0].text
    assert "origin=unknown" in lines[0].text
    assert ask(code) == "reject"
    assert ask(enrollment.backup_codes[0]) == "accept"


def test_the_store_is_the_servers_own(ask):
    enroll()
    owners = {path.stat().st_uid for path in [STORE, *STORE.rglob("*")]}
    assert owners == {STORE.parent.stat().st_uid} and 0 not in owners
