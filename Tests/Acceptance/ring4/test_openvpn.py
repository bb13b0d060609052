"""OpenVPN as docs/recipes.md sets it up: real server, plugin and client over 127.0.0.1.

Both live in a network of their own, with nothing but its loopback in it.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pexpect
import pytest

from support import recipes
from support.hosts import PASSWORD

HEADING = "### OpenVPN"
PLUGIN = f"/usr/lib/{os.uname().machine}-linux-gnu/openvpn/plugins/openvpn-plugin-auth-pam.so"
CONNECTED, REFUSED = "Initialization Sequence Completed", "AUTH_FAILED"
pytestmark = [
    pytest.mark.skipif(shutil.which("openvpn") is None, reason="openvpn is not installed"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")]


def settings(words):
    """The server's lines in the recipe, with the plugin where it is here."""
    return recipes.block(HEADING, words).replace("openvpn-plugin-auth-pam.so", PLUGIN)


class Server:
    def __init__(self, directory, lines):
        self.directory = directory
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days", "2", "-subj", "/CN=server", "-keyout", directory / "key", "-out",
             directory / "cert"], check=True, capture_output=True)
        config = directory / "server.conf"
        config.write_text(
            f"local 127.0.0.1\nproto udp\ndev tun\ntopology subnet\nserver 10.9.0.0 255.255.255.0\n"
            f"ca {directory}/cert\ncert {directory}/cert\nkey {directory}/key\ndh none\n"
            f"verify-client-cert none\nusername-as-common-name\nverb 3\n{lines}")
        self.server = pexpect.spawn(
            "unshare", ["--net", "sh", "-c", f"ip link set lo up; exec openvpn --config {config}"],
            encoding="utf-8", timeout=30)
        self.server.expect(CONNECTED)
        self.clients = []

    def connect(self, user, password, challenge=None, renegotiate=0):
        """A client's answer: whether it is in. It stays in."""
        lines = f"remote 127.0.0.1\nproto udp\nclient\ndev tun\nifconfig-noexec\nroute-noexec\n" \
                f"nobind\nca {self.directory}/cert\nverb 3\nreneg-sec {renegotiate} 0\n"
        lines += recipes.block(HEADING, "Add to the client's") if challenge is not None \
            else "auth-user-pass\n"
        config = self.directory / "client.conf"
        config.write_text(lines)
        network = f"--net=/proc/{self.server.pid}/ns/net"
        client = pexpect.spawn("nsenter", [network, "openvpn", "--config", str(config)],
                               encoding="utf-8", timeout=60)
        self.clients.append(client)
        for prompt, answer in (("Auth Username:", user), ("Auth Password:", password),
                               ("Verification code", challenge)):
            if answer is not None:
                client.expect(prompt)
                client.sendline(answer)
        return client.expect([REFUSED, CONNECTED]) == 1

    def stop(self):
        for process in [*self.clients, self.server]:
            process.kill(signal.SIGKILL)
            process.wait()


@pytest.fixture
def serve(tmp_path):
    device = Path("/dev/net/tun")
    if not device.exists():
        device.parent.mkdir(exist_ok=True)
        os.mknod(device, 0o20666, os.makedev(10, 200))
    servers = []

    def start(lines):
        servers.append(Server(tmp_path, lines))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


def test_the_code_has_a_field_of_its_own(serve, store, sink):
    Path("/etc/pam.d/openvpn").write_text(recipes.stack(HEADING, "openvpn"))
    enrollment = store.enroll(allow_missing=False)
    server = serve(settings("Add to the server's configuration"))
    code = enrollment.code()
    assert not server.connect("alice", PASSWORD, enrollment.wrong())
    assert not server.connect("alice", "wrong horse", code)
    with sink.watch() as lines:
        assert server.connect("alice", PASSWORD, code)
    assert "code accepted: user=alice" in lines[0].text and "origin=127.0.0.1" in lines[0].text
    assert not server.connect("alice", PASSWORD, code)


@pytest.mark.parametrize("token, stays", [(True, True), (False, False)])
def test_a_renegotiation_needs_the_servers_token(serve, store, token, stays):
    Path("/etc/pam.d/openvpn").write_text(recipes.stack(HEADING, "openvpn"))
    enrollment = store.enroll(allow_missing=False)
    lines = settings("Add to the server's configuration")
    assert "auth-gen-token\n" in lines
    server = serve(lines if token else lines.replace("auth-gen-token\n", ""))
    assert server.connect("alice", PASSWORD, enrollment.code(), renegotiate=3)
    # The server's word on the first negotiation, and on the second.
    verdicts = ["TLS Auth Error", "authentication succeeded for username"]
    assert server.server.expect(verdicts) == 1
    assert server.server.expect(verdicts) == stays


def test_password_and_code_in_one_field(serve, store):
    path = Path("/etc/pam.d/openvpn-one-field")
    path.write_text(recipes.stack(HEADING, "openvpn-one-field"))
    enrollment = store.enroll(allow_missing=False)
    server = serve(settings("with:"))
    assert not server.connect("alice", PASSWORD + enrollment.wrong())
    assert not server.connect("alice", PASSWORD)
    assert server.connect("alice", PASSWORD + enrollment.code())
    assert server.connect("alice", PASSWORD + enrollment.backup_codes[0])
