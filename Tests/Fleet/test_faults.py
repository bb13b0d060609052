"""Faults of a fleet before they lock somebody out: `sallyport-verifier status` on a verifier and `sallyport
doctor` on a host name each that is planted, by a word that was not there before.

test_status_names_each_fault_of_verifiers_and_their_database
test_doctor_names_each_fault_of_a_host
test_doctor_says_who_of_the_fleet_gets_in
"""

import json

import pytest

from support.fleet import DONE, VERIFIER
from support.host import COMMAND, PASSWORD, POLICY
from support.logins import secret_of
from support.machines import ROOT, run
from support.postgres import certificate
from support.service import soon
from support.stage import DIRECTORY

CONF = "/etc/security/sallyport-fleet.conf"


class Planted:
    """What `told` says, each word with its sentence, before and after a fault."""

    def __init__(self, told):
        self.told = told

    def shows(self, word, says, plant, mend=None):
        before = self.told()
        assert word not in before, before[word]
        plant()
        assert soon(lambda: says in self.told().get(word, "")), (word, self.told())
        if mend:
            mend()
            assert soon(lambda: word not in self.told()), word


@pytest.fixture
def preload(stage):
    """Programs that are told to have another clock, or all files on NFS."""
    built = stage.network.scratch
    for source in ROOT / "Tests/Acceptance/clock/clock.c", ROOT / "Tests/Fleet/nfs.c":
        run("cc", "-fPIC", "-shared", "-o", built / f"{source.stem}.so", source)
    return lambda name: f"LD_PRELOAD={built}/{name}.so"


def test_status_names_each_fault_of_verifiers_and_their_database(stage):
    one, two = stage.verifiers
    primary = stage.pair.primary

    def told():
        done = json.loads(one.run("status", "--json").stdout)
        return {warning["what"]: warning["text"] for warning in done["warnings"]}

    def certify(days):
        certificate(stage.network.scratch, *[server.machine.name for server in stage.pair.servers], days=days)
        for server in stage.pair.servers:
            server.certify(stage.network.scratch)
            server.sql("SELECT pg_reload_conf()")
        for verifier in stage.verifiers:
            verifier.prepare()
    planted = Planted(told)
    copy = one.machine.run(VERIFIER, "key", "show", input="correct horse battery staple\n").stdout
    one.machine.write("/root/copy", copy, 0o600)
    assert "no-safe-copy" in told() and "one-standby" in told()
    one.machine.run(VERIFIER, "key", "check", "/root/copy", input="correct horse battery staple\n")
    assert set(told()) == {"one-standby"}, "this stage has no second one"
    planted.shows("no-synchronous-standby", "can be lost with this server", lambda: primary.waits_for(""),
                  lambda: stage.pair.synchronous())
    planted.shows("no-safe-copy", "key show", lambda: one.machine.sh(f"rm {DIRECTORY}/key.copied"))
    planted.shows("policy-differs", "three by 7", lambda: stage.sql(
        "INSERT INTO worker (verifier, worker, n, server, posted, clock, now, version, policy) "
            "SELECT 'three', 0, 1, server, posted, clock, now, version, '7 1' FROM worker "
        "WHERE verifier = 'one' AND worker = 0"), lambda: stage.sql("DELETE FROM worker WHERE verifier = 'three'"))
    [[schema]] = stage.sql("SELECT schema FROM fleet")
    planted.shows("schema-old", f"have schema 1, this version has {schema}", lambda: stage.sql("UPDATE fleet SET schema = 1"),
                  lambda: stage.sql(f"UPDATE fleet SET schema = {schema}"))
    planted.shows("host-unseen", "host web1 was not seen since", lambda: stage.sql(
        "UPDATE host SET seen = now() - interval '31 days' WHERE name = 'web1'"))
    planted.shows("verifier-clock", "verifier three refuses all logins: its clock is 60 s ahead", lambda: stage.sql(
        "INSERT INTO worker SELECT 'three', 0, 1, server, posted, clock + 60500, now FROM worker "
        "WHERE verifier = 'one' AND worker = 0"))
    two.kill()
    planted.shows("verifier-silent", "two is silent since", lambda: stage.sql(
        "UPDATE worker SET now = now - interval '1 hour' WHERE verifier = 'two'"))
    planted.shows("certificate-ends", "expires in 19 days", lambda: certify(20), lambda: certify(365))


def test_doctor_names_each_fault_of_a_host(cast, preload):
    host, machine = cast.hosts[0], cast.hosts[0].machine
    words = []

    def told():
        done = json.loads(machine.run("env", *words, COMMAND, "doctor", "--json", check=False).stdout)
        return {found["id"]: found["text"] for found in done["findings"] if found["severity"] not in ("ok", "unseen")}

    planted = Planted(told)
    machine.account("root", 0, PASSWORD)

    def enroll():
        assert host.sallyport("enroll", "--user", "root", "--no-confirm", "--json").returncode == 0
    enroll()
    planted.shows("fleet-no-break-glass", "nobody can become root here",
                  lambda: machine.sh("rm -r /var/lib/sallyport/users/root"), enroll)
    machine.account("carol", 4242, PASSWORD)
    planted.shows("fleet-unasked", ": carol;",
                  lambda: host.sallyport("enroll", "--user", "carol", "--no-confirm", "--json", "--store", "/var/lib/sallyport"),
                  lambda: machine.sh("rm -r /var/lib/sallyport/users/carol"))
    planted.shows("fleet-clock", "60 s ahead of the verifiers'",
                  lambda: words.extend([preload("clock"), "AHEAD=60"]), words.clear)
    before = told()["store-file-system"]
    assert "NFS" not in before
    words.append(preload("nfs"))
    assert "each machine accepts the same code once" in told()["store-file-system"] != before
    words.clear()
    planted.shows("fleet-unserved", "does not listen", host.kill, host.start)
    right = machine.read(CONF).decode()
    pin = next(line for line in right.splitlines() if line.startswith("pin = "))
    planted.shows("fleet-foreign", "has an unexpected key",
                  lambda: machine.write(CONF, right.replace(pin, "pin = " + "ab" * 32)), lambda: machine.write(CONF, right))
    planted.shows("fleet-verifier", "cannot be reached", cast.verifiers[0].kill)


def test_doctor_says_who_of_the_fleet_gets_in(cast):
    host, machine = cast.hosts[0], cast.hosts[0].machine

    def cell(name):
        """What becomes of them at a service that asks for the password, then for the code."""
        done = json.loads(machine.run(COMMAND, "doctor", "--json", "gate", check=False).stdout)["access"]
        [way] = [number for number, way in enumerate(done["ways"]) if way["service"] == "gate"]
        [row] = [row for row in done["accounts"] if row["user"] == name]
        [found] = [cell for cell in row["cells"] if cell["way"] == way]
        return found["verdict"], found["reason"], found["detail"], row["enrolled"]

    def policy(level):
        machine.write("/etc/security/sallyport.conf", POLICY.replace("required", level), 0o644)
    machine.write("/etc/pam.d/gate", f"auth required pam_unix.so\nauth required {host.module}\n"
                                     "account required pam_unix.so\nsession required pam_permit.so\n")
    policy("refuse")
    verdict, reason, _, is_enrolled = cell("alice")
    assert (verdict, reason, is_enrolled) == ("refused", "notEnrolled", False)
    assert cast.enroll("alice", secret_of("alice")) == DONE
    for level in "refuse", "required", "voluntary":
        policy(level)
        assert cell("alice") == ("asked", "codeOfFleet", None, True)
    assert cell("bob")[:2] == ("withoutCode", "voluntary")
    policy("refuse")
    assert cell("bob")[:2] == ("refused", "notEnrolled")
    assert host.sallyport("exempt", "--user", "bob").returncode == 0
    assert cell("bob")[:2] == ("withoutCode", "exempt")
    verifier = cast.verifiers[0]

    def change(verb):
        verifier.machine.run(verifier.program, "hosts", verb, "web1", "changes", "--directory", DIRECTORY,
                             "--database", cast.words())
    change("deny")
    assert soon(lambda: cell("alice")[:2] == cell("bob")[:2] == ("unseen", "fleetKeeps"), 15)
    assert "enrolls: 0 of 20 today" in host.sallyport("fleet", "status").stdout
    change("allow")
    assert soon(lambda: cell("alice")[0] == "asked", 15)
    for verifier in cast.verifiers:
        verifier.kill()
    assert cell("alice")[:3] == cell("bob")[:3] == ("unseen", "fleetSilent", "no verifier can be reached")
    # Nobody's enrollment makes a difference there.
    machine.write("/etc/security/sallyport.conf", POLICY + "state = disabled\n", 0o644)
    assert cell("alice")[:2] == ("withoutCode", "disabled")
