"""Hosts on machines of their own whose cable is cut: backup codes alone let in, each once on each of
them, and what was used there is refused everywhere soon after.

test_a_backup_code_lets_in_once_on_each_host_that_is_cut_off_and_nowhere_after
test_codes_that_were_replaced_meanwhile_are_gone_soon_after
test_a_host_that_is_killed_while_it_is_cut_off_sends_up_what_was_used
test_verifiers_over_an_empty_database_refuse_nobody_and_wipe_nothing
test_a_host_that_was_revoked_has_no_reserve
test_a_host_whose_disk_is_put_back_rests_until_it_is_accepted
test_a_host_without_its_seal_is_away_and_with_it_is_answered_again
"""

import base64
import contextlib
import os
import struct
import time
from pathlib import Path

import pytest

from support.codes import totp
from support.fleet import (ACCEPTED, DONE, REFUSED, SECRET, TROUBLE, VERIFIER, backup_codes, host_key, pin_of,
                           with_backup_codes)
from support.service import ask, attempt, request, soon
from support.stage import DIRECTORY
from support.whole import WHOLE

SERVICE = os.environ.get("SALLYPORT_FLEET_SERVICE", str(Path(VERIFIER).with_name("sallyportd")))
PROMPT, AWAY = b"\x96", b"\x66"
CODES = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]
NEW = ["QQQQ2X9QD4TW0HZA"]
SOON = 5  # seconds, after a verifier can be asked again
SEAL = "/var/lib/sallyport/fleet.seal"
BASE32 = base64.b32encode(SECRET).decode()


class Host:
    """A machine of the fleet with its service, and the socket of root's programs there."""

    def __init__(self, stage, name):
        self.stage, self.name, self.machine = stage, name, stage.network.machines[name]
        self.machine.account("alice", 3001, "secret")
        self.machine.sh("rm -rf /var/lib/sallyport /run/sallyport")
        pin = pin_of(stage.verifiers[0].machine.path(f"{DIRECTORY}/identity.key"))
        lines = [f"host = {name}", "enrolls = no"]
        lines += [f"verifier = {verifier.machine.address}:7353" for verifier in stage.verifiers]
        self.machine.write("/etc/security/sallyport-fleet.key", host_key(name).key.read_bytes(), 0o600)
        self.machine.write("/etc/security/sallyport-fleet.conf", "\n".join([*lines, f"pin = {pin}", ""]), 0o644)
        self.start()

    def start(self):
        self.machine.sh("rm -rf /run/sallyport")
        self.service = self.machine.start(SERVICE)
        self.socket = self.machine.path("/run/sallyport/root")
        assert soon(lambda: not self.service.alive or self.ask(request(b"nobody", 4))), "it did not start"
        assert self.service.alive

    def ask(self, frame):
        with contextlib.suppress(OSError):
            return ask(self.socket, frame)
        return b""

    def asks_for_a_backup_code(self, name):
        """At the prompt, since it knows that nobody can be asked."""
        answer = self.ask(request(name, 1, b"\0\1", fleet=True))
        return answer[1:2] == PROMPT and answer[-1:] == AWAY

    def type(self, code, away=False):
        """The byte of the answer; `away`: at the prompt for a backup code."""
        return int.from_bytes(self.ask(attempt(b"alice", code.encode(), fleet=True, away=away))[1:2], "big")

    def cut(self):
        """Until the service has seen that nobody is there: what is sent before is not known."""
        self.stage.network.cut(self.machine)
        assert soon(lambda: self.asks_for_a_backup_code(b"nobody"))

    def mend(self):
        self.stage.network.mend(self.machine)
        return time.monotonic()

    def has(self, what):
        path = self.machine.path("/var/lib/sallyport/reserve/users/alice/enrollment")
        with contextlib.suppress(FileNotFoundError):
            return what in path.read_text()
        return False

    def pending(self):
        return os.listdir(self.machine.path("/var/lib/sallyport/reserve/pending"))


@pytest.fixture
def hosts(stage):
    """web1 and web2, where alice has logged in, and has a reserve."""
    assert stage.verifiers[0].enroll("alice", with_backup_codes("alice", 0xB0, CODES)) == DONE
    made = [Host(stage, name) for name in ("web1", "web2")]
    for turn, host in enumerate(made):
        assert host.type(totp(BASE32, at=time.time() - 60 + 30 * turn)[0]) == ACCEPTED
        assert soon(lambda host=host: host.has("reserve = "))
    yield made
    for host in made:
        host.service.kill()


def events(stage, outcome):
    return stage.sql(f"SELECT host, position FROM event WHERE outcome = '{outcome}' ORDER BY at")


def within(start, figure, what, condition):
    assert soon(condition, 30)
    passed = time.monotonic() - start
    figure(f"{what} {passed:.1f} s after the cable was mended")
    # On a busy machine it is the load that is measured.
    assert passed < SOON or not WHOLE


# shows: reserve-goes-up
@pytest.mark.decisive
def test_a_backup_code_lets_in_once_on_each_host_that_is_cut_off_and_nowhere_after(stage, hosts, figure):
    for host in hosts:
        host.cut()
        # Asked by who is there and who is not; and a code of the phone is refused.
        assert all(host.asks_for_a_backup_code(name) for name in (b"alice", b"bob", b"nobody"))
        assert host.type(totp(BASE32)[0], away=True) == REFUSED
        assert host.type(CODES[0], away=True) == ACCEPTED
        assert host.type(CODES[0], away=True) == REFUSED
    starts = [host.mend() for host in hosts]
    within(max(starts), figure, "used codes were up", lambda: not any(host.pending() for host in hosts))
    for host in hosts:
        assert host.type(CODES[0]) == REFUSED
        assert host.type(CODES[0], away=True) == REFUSED
    for verifier in stage.verifiers:
        assert verifier.type("alice", CODES[0], host="tests") == REFUSED
    # One event, of the host that was faster.
    assert len(events(stage, "used-away")) == 1
    assert hosts[0].type(CODES[1]) == ACCEPTED
    assert stage.twice() == []


# shows: reserve-ends
def test_codes_that_were_replaced_meanwhile_are_gone_soon_after(stage, hosts, figure):
    host = hosts[0]
    host.cut()
    part = (f"version = 1\nuser = alice\nuid = none\nid = {0xE1:016x}\ncreated = 0\n\n" + backup_codes(0xB1, NEW)
            + "\n[end]\n")
    part = "# Sallyport enrollment: holds secrets. Change it with sallyport(1) only.\n" + part
    assert stage.verifiers[1].ask(request(b"alice", 7, struct.pack("<QB", 0xE1, 5), part.encode())) == DONE
    assert host.type(CODES[0], away=True) == ACCEPTED
    start = host.mend()
    within(start, figure, "new codes were there", lambda: host.has(f"id = {0xB1:016x}"))
    assert host.type(CODES[1], away=True) == REFUSED
    host.cut()
    assert host.type(CODES[1], away=True) == REFUSED
    assert host.type(NEW[0], away=True) == ACCEPTED


# shows: reserve-goes-up
def test_a_host_that_is_killed_while_it_is_cut_off_sends_up_what_was_used(stage, hosts):
    host = hosts[0]
    host.cut()
    assert host.type(CODES[0], away=True) == ACCEPTED
    host.service.kill()
    host.mend()
    host.start()
    # Also the first question, whatever else it has done until then.
    assert host.type(CODES[0]) == REFUSED
    assert hosts[1].type(CODES[0]) == REFUSED
    assert events(stage, "used-away") == [["web1", "0"]]


# shows: empty-database
@pytest.mark.decisive
def test_verifiers_over_an_empty_database_refuse_nobody_and_wipe_nothing(stage, hosts):
    """With the fleet's key: first both of them, then one beside a right one."""
    host, right = hosts[0], stage.database
    stage.pair.create(empty := f"{right}empty")

    def over(database, *verifiers):
        stage.database = database
        for verifier in verifiers:
            verifier.stop()
            # As a new one, which has worked with none yet.
            verifier.machine.sh(f"rm -f {DIRECTORY}/incarnation")
            if database == empty:
                verifier.machine.sh(f"cd {DIRECTORY} && for file in seen.*; do mv $file was.$file; done")
                verifier.run("init", user="postgres")
            else:
                verifier.machine.sh(f"cd {DIRECTORY} && for file in was.*; do mv $file ${{file#was.}}; done")
            verifier.start()
        stage.database = right

    def asks(host):
        """What it answers who wants to log in."""
        return host.ask(request(b"alice", 1, b"\0\1", fleet=True))
    one, two = stage.verifiers
    host.cut()
    assert host.type(CODES[0], away=True) == ACCEPTED
    # The one that goes back alone is the one that ran longest.
    over(empty, two, one)
    host.mend()
    assert soon(lambda: asks(host)[1:2] != PROMPT), "unknown everywhere: nobody is asked"
    assert host.type(CODES[0]) == host.type(CODES[1]) == TROUBLE
    for _ in range(2):
        host.service.kill()
        host.start()
        assert soon(lambda: asks(host)[1:2] != PROMPT)
        assert host.pending() and host.has("reserve = ")
    over(right, one)
    assert soon(lambda: not host.pending())
    assert events(stage, "used-away") == [["web1", "0"]]
    refused = 0
    for turn in range(10):
        one_of_both = hosts[turn % 2]
        one_of_both.service.kill()
        one_of_both.start()
        answers = [asks(one_of_both) for _ in range(2)]
        refused += sum(answer[1:2] != PROMPT or answer[-1:] == AWAY for answer in answers)
    assert refused == 0, f"{refused} of 20"
    assert host.type(CODES[0]) == REFUSED and host.type(CODES[1]) == ACCEPTED
    assert stage.twice() == []


def test_a_host_that_was_revoked_has_no_reserve(stage, hosts):
    """What was used there, and could not go up, is told to root; it stays until the host leaves."""
    host, told = hosts[0], "a backup code was used here that the fleet does not know to be used: user=alice"
    host.cut()
    assert host.type(CODES[0], away=True) == ACCEPTED
    start = len(host.machine.log.lines)
    stage.verifiers[1].run("revoke", "web1")
    host.mend()
    assert soon(lambda: any(told in line for line in host.machine.log.since(start)), 60)
    host.cut()
    assert host.type(CODES[1], away=True) == REFUSED
    host.service.kill()
    host.start()
    assert host.type(CODES[1], away=True) == REFUSED
    assert host.has("reserve = ") and hosts[1].has("reserve = ")


# shows: host-put-back
@pytest.mark.decisive
def test_a_host_whose_disk_is_put_back_rests_until_it_is_accepted(stage, hosts):
    """A snapshot of before it was cut off, put back after it had said what was used."""
    host, verifier = hosts[0], stage.verifiers[0]
    assert soon(lambda: host.machine.path(SEAL).exists())
    host.machine.sh("cp -a /var/lib/sallyport /var/lib/snapshot")
    host.cut()
    assert host.type(CODES[0], away=True) == ACCEPTED
    host.mend()
    assert soon(lambda: not host.pending())
    assert "rests" not in verifier.run("hosts").stdout
    host.service.kill()
    host.machine.sh("rm -rf /var/lib/sallyport && mv /var/lib/snapshot /var/lib/sallyport")
    start = len(host.machine.log.lines)
    host.start()
    assert soon(lambda: "rests: put back" in verifier.run("hosts").stdout, 20)
    assert soon(lambda: any("its rights rest" in line for line in host.machine.log.since(start)), 20)
    assert soon(lambda: not host.has("reserve = "), 20)
    # Its people go on.
    assert host.type(CODES[0]) == REFUSED
    assert host.type(totp(BASE32, at=time.time() + 30)[0]) == ACCEPTED
    host.cut()
    assert host.type(CODES[1], away=True) == REFUSED
    host.mend()
    for said in "web1 has its rights again", "web1 does not rest":
        done = verifier.machine.run(verifier.program, "hosts", "accept", "web1", "--directory", DIRECTORY, "--database",
                                    stage.words(), check=False)
        assert said in done.stdout + done.stderr
    assert soon(lambda: host.type(CODES[1]) == ACCEPTED)
    assert soon(lambda: host.has("reserve = "), 20)
    assert stage.twice() == []


# shows: sealed
@pytest.mark.decisive
def test_a_host_without_its_seal_is_away_and_with_it_is_answered_again(stage, hosts):
    """Its TLS key alone is answered nothing, as anybody's who has taken it."""
    host = hosts[0]
    assert soon(lambda: stage.sql("SELECT host FROM revoked WHERE host LIKE '%/sealed' ORDER BY host")
                == [["web1/sealed"], ["web2/sealed"]])
    path = host.machine.path(SEAL)
    assert soon(lambda: path.read_bytes()[1:2] == b"\1")
    assert path.stat().st_mode & 0o777 == 0o600
    assert stage.verifiers[0].type("alice", CODES[0], host="web1") == TROUBLE
    host.service.kill()
    whole = path.read_bytes()
    path.unlink()
    start = [len(verifier.machine.log.lines) for verifier in stage.verifiers]
    host.start()
    assert soon(lambda: host.asks_for_a_backup_code(b"alice"))
    # As on one that is cut off.
    assert host.type(totp(BASE32, at=time.time() + 30)[0]) == REFUSED
    assert host.type(CODES[0], away=True) == ACCEPTED and not path.exists()
    told = "ALERT: host web1 asks without the seal that it had"
    assert soon(lambda: any(told in line for verifier, since in zip(stage.verifiers, start, strict=True)
                            for line in verifier.machine.log.since(since)))
    # With other keys, as of a key of the fleet that it has missed.
    host.service.kill()
    others = bytearray(whole)
    others[2 + 32] ^= 1
    path.write_bytes(others)
    path.chmod(0o600)
    start = len(host.machine.log.lines)
    host.start()
    assert soon(lambda: host.asks_for_a_backup_code(b"nobody"))
    assert soon(lambda: any("no verifier has this host's seal" in line for line in host.machine.log.since(start)))
    host.service.kill()
    path.write_bytes(whole)
    host.start()
    assert soon(lambda: host.type(CODES[1]) == ACCEPTED)
    assert soon(lambda: not host.pending())
    assert [one.type(CODES[0]) for one in hosts] == [REFUSED] * 2 and stage.twice() == []
