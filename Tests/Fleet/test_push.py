"""The command moves people from the files of a machine to its fleet, and back, and is killed while it does.

test_killed_after_each_durable_step_a_push_loses_nobody_and_no_code_is_good_twice
test_killed_after_each_durable_step_a_take_loses_nobody_and_no_code_is_good_twice
test_many_who_are_moved_by_commands_that_are_killed_are_neither_lost_nor_let_in_twice
test_three_hosts_with_one_secret_are_pushed_in_turn
"""

import base64
import json
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.codes import totp
from support.fleet import ACCEPTED, REFUSED, host_key, host_rows, pin_of
from support.host import COMMAND
from support.logins import secret_of
from support.steps import broken_at
from support.whole import WHOLE, rounds

BASE32 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
# What a machine that loses its power may have done or not, and what goes out.
DURABLE = re.compile(r"^(\d+) +(fsync|fdatasync|renameat2?|rename|unlinkat|write|sendto|pwrite64)\(")


def code():
    return totp(BASE32)[0]


class Host:
    """A machine's own /etc/passwd and key, in a mount namespace for each command; its store and policy."""

    def __init__(self, fleet, directory, name, people):
        self.directory, self.name = directory, name
        self.store, self.policy = directory / "store", directory / "policy"
        security = directory / "security"
        security.mkdir(parents=True)
        pin = pin_of(fleet.directory / "identity.key")
        verifiers = "".join("verifier = {}:{}\n".format(*verifier.address) for verifier in fleet.made)
        (security / "sallyport-fleet.conf").write_text(f"host = {name}\nenrolls = yes\n{verifiers}pin = {pin}\n")
        shutil.copy(host_key(name).key, security / "sallyport-fleet.key")
        (security / "sallyport-fleet.key").chmod(0o600)
        accounts = "".join(f"{one}:x:{4000 + number}:100::/:/bin/sh\n" for number, one in enumerate(people))
        (directory / "passwd").write_text(Path("/etc/passwd").read_text() + accounts)
        self.policy.write_text("[default]\nverification = fleet\n")
        self.policy.chmod(0o644)
        self.own_policy = directory / "own-policy"
        self.own_policy.write_text("[default]\nverification = local\n")
        self.own_policy.chmod(0o644)

    def line(self, *words, before=()):
        there = (f"mount --bind {self.directory}/security /etc/security && "
                 f"mount --bind {self.directory}/passwd /etc/passwd && exec \"$@\"")
        return ["unshare", "--mount", "sh", "-c", there, "sh", *map(str, before), COMMAND, *map(str, words),
                "--store", str(self.store)]

    def run(self, *words, before=(), typed="", limit=60):
        return subprocess.run(
            self.line(*words, before=before), input=typed, capture_output=True, text=True, timeout=limit)

    def enroll_all(self, names):
        """Each with a secret of their own, as pam_oath has them."""
        lines = "".join(f"HOTP/T30 {name} - {base64.b32decode(secret_of(name)).hex()}\n" for name in names)
        (self.directory / "users.oath").write_text(lines)
        (self.directory / "users.oath").chmod(0o600)
        done = self.run("import", "pam-oath", self.directory / "users.oath", limit=600)
        assert done.returncode == 0, done.stderr

    def killed(self, *words, after):
        """The command, killed after this many seconds. Whether it was."""
        child = subprocess.Popen(self.line(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return child.wait(after) < 0
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait() < 0

    def facts(self, name):
        """What counts of an enrollment and its state. Places are not moved."""
        found = json.loads(self.run("status", name, "--json", "--conf", self.own_policy).stdout)
        codes = [found["backupCodes"]] if found["backupCodes"] else []
        for use in [found["lastLogin"], *[one["lastUse"] for one in found["authenticators"] + codes]]:
            if use:
                del use["origin"]
        return {key: found[key] for key in ("authenticators", "backupCodes", "lastLogin")} | {
            "wrongCodes": {place: left["left"] for place, left in found["wrongCodes"].items()}}

    def enroll(self, name, secret=BASE32):
        done = self.run("enroll", "--user", name, "--no-confirm", "--json", "--secret-from", "-", typed=secret)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def push(self, *words, before=()):
        return self.run("fleet", "push", *words, "--conf", self.policy, before=before)

    def take(self, *words, before=()):
        return self.run("fleet", "take", *words, "--conf", self.own_policy, before=before)

    def enrollment(self, name):
        """The text of its file; None where there is none."""
        path = self.store / "users" / name / "enrollment"
        return path.read_text() if path.exists() else None

    def accepts(self, name, typed):
        """Whether its files let somebody in."""
        done = self.run("verify", "--user", name, typed=typed + "\n")
        assert done.returncode in (0, 1, 65, 66), done.stderr
        return done.returncode == 0

    def has(self, name):
        return (self.store / "users" / name).exists()


@pytest.fixture
def verifier(fleet):
    return fleet.verifier("one")


def steps(report):
    """[(name, how many-th of that name)] of the process that did it all, in their order."""
    lines = report.read_text().splitlines()
    main = lines[0].split()[0]
    counts, found = {}, []
    for line in lines:
        match = DURABLE.match(line)
        if match and match[1] == main:
            counts[match[2]] = counts.get(match[2], 0) + 1
            found.append((match[2], counts[match[2]]))
    return found


def killed_at_each_step(host, verifier, people, begin, move, is_done, report, least):
    """How many durable steps a move has, and where a code was good after a kill at each of some of them, at all of
    them in a whole run. begin(name) makes the state before, move(name, before) is the command."""
    # Only the first keeps a copy of the policy.
    for before in [], ["strace", "-f", "-o", str(report)]:
        begin(people[0])
        done = move(people.pop(0), before)
        assert done.returncode == 0, done.stderr
    every = steps(report)
    assert {"fsync", "renameat2"} & {name for name, _ in every} and len(every) > 10, every
    outcomes = {}
    for name, (call, nth) in zip(people, every if WHOLE else every[::max(1, len(every) // least)], strict=False):
        begin(name)
        typed = code()
        killed = move(name, broken_at(call, nth))
        assert killed.returncode != 0, (call, nth)
        here, there = host.accepts(name, typed), verifier.type(name, typed) == ACCEPTED
        assert not (here and there), (call, nth)
        again = move(name, [])
        assert again.returncode == 0 or is_done(name), (call, nth, again.stderr)
        assert is_done(name), (call, nth)
        later = [host.accepts(name, typed), verifier.type(name, typed) == ACCEPTED]
        assert here + there + sum(later) == 1, (call, nth, here, there, later)
        assert not host.accepts(name, typed) and verifier.type(name, typed) == REFUSED
        outcome = "verified here" if here else "verified there" if there else "verified by nobody"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return len(every), outcomes


# shows: fleet-move
@pytest.mark.decisive
def test_killed_after_each_durable_step_a_push_loses_nobody_and_no_code_is_good_twice(
        fleet, verifier, tmp_path, figure):
    people = [f"p{number}" for number in range(200)]
    host = Host(fleet, tmp_path / "host", "web1", people)
    count, outcomes = killed_at_each_step(
        host, verifier, people, host.enroll, lambda name, before: host.push("--user", name, before=before),
        lambda name: not host.has(name), tmp_path / "strace", 10)
    figure(f"killed at {sum(outcomes.values())} of {count} steps of a push: until the next one {outcomes}")
    assert {"verified here", "verified there", "verified by nobody"} == set(outcomes), outcomes
    assert not [name for name in os.listdir(host.store / "users") if not name.startswith(".")]
    assert fleet.twice() == []


# shows: fleet-move
@pytest.mark.decisive
def test_killed_after_each_durable_step_a_take_loses_nobody_and_no_code_is_good_twice(
        fleet, verifier, tmp_path, figure):
    people = [f"p{number}" for number in range(200)]
    host, texts = Host(fleet, tmp_path / "host", "web1", people), {}

    def begin(name):
        host.enroll(name)
        texts[name] = host.enrollment(name)
        assert host.push("--user", name).returncode == 0

    count, outcomes = killed_at_each_step(
        host, verifier, people, begin, lambda name, before: host.take("--user", name, before=before),
        lambda name: host.enrollment(name) == texts[name], tmp_path / "strace", 5)
    figure(f"killed at {sum(outcomes.values())} of {count} steps of a take: until the next one {outcomes}")
    assert {"verified here", "verified there"} <= set(outcomes), outcomes
    assert fleet.twice() == []


@pytest.mark.decisive
def test_who_got_another_name_is_taken_adopted_and_pushed(fleet, verifier, tmp_path):
    host = Host(fleet, tmp_path / "host", "web1", ["alicia"])
    codes = host.enroll("alicia")["backupCodes"]
    assert host.push("--user", "alicia").returncode == 0
    assert verifier.type("alicia", codes[0]) == ACCEPTED
    passwd = host.directory / "passwd"

    def name_is(name, other):
        passwd.write_text(passwd.read_text().replace(f"\n{other}:", f"\n{name}:"))
    # Too early for it: nothing is here, and the fleet's is nobody's to adopt.
    name_is("alice", "alicia")
    words = ["adopt", "alice", "--from", "alicia", "--uid", "4000", "--yes"]
    assert "sallyport-fleet(1)" in host.run(*words).stderr
    name_is("alicia", "alice")
    assert host.take("--user", "alicia").returncode == 0
    name_is("alice", "alicia")
    done = host.run(*words)
    assert done.returncode == 0, done.stderr
    done = host.push("--user", "alice")
    assert done.returncode == 0, done.stderr
    typed = code()
    assert [verifier.type(name, typed) for name in ("alicia", "alice", "alice")] == [REFUSED, ACCEPTED, REFUSED]
    assert [verifier.type("alice", one) for one in codes[:2]] == [REFUSED, ACCEPTED]
    assert verifier.type("alicia", codes[2]) == REFUSED
    # The next one who gets the name is another person.
    passwd.write_text(passwd.read_text() + "alicia:x:4999:100::/:/bin/sh\n")
    other = host.enroll("alicia", secret_of("alicia"))["backupCodes"]
    assert host.push("--user", "alicia").returncode == 0
    assert [verifier.type("alicia", one) for one in (codes[2], other[0])] == [REFUSED, ACCEPTED]
    assert verifier.type("alice", codes[2]) == ACCEPTED
    assert fleet.twice() == []


@pytest.mark.decisive
def test_many_who_are_moved_by_commands_that_are_killed_are_neither_lost_nor_let_in_twice(
        fleet, verifier, tmp_path, figure):
    """All to the fleet, by a command that is killed again and again; some of them back."""
    rolls = random.Random(1)
    people = [f"p{number}" for number in range(rounds(10_000, 60))]
    back = rolls.sample(people, rounds(500, 6))
    # Before it moves anybody it looks who could become root.
    longest = rounds(3, 0.1)
    host = Host(fleet, tmp_path / "host", "web1", people)
    # Of those who come back some have backup codes, of which each has used one.
    backup = {name: host.enroll(name, secret_of(name))["backupCodes"] for name in back[:rounds(100, 3)]}
    host.enroll_all([name for name in people if name not in backup])
    for name, (used, *_) in backup.items():
        assert host.accepts(name, used), name
    for number, name in enumerate(back):
        # Positions and wrong codes of their own.
        for typed in ["000000"] * (number % 3) + [totp(secret_of(name))[0]] * (number % 2):
            host.accepts(name, typed)
    before = {name: host.facts(name) for name in back}
    assert {before[name]["backupCodes"]["left"] for name in backup} == {9}
    others = [name for name in people if name not in before]
    tried, pushes, start = set(), 0, time.monotonic()
    while host.killed("fleet", "push", "--all", "--conf", host.policy, after=rolls.uniform(0.02, longest)):
        # On a machine that is busy the command may need longer than that to begin.
        pushes, longest = pushes + 1, longest * 1.1
        one = rolls.choice(others)
        tried.add(one)
        [typed] = totp(secret_of(one), at=time.time() + 30)
        assert not (host.accepts(one, typed) and verifier.type(one, typed) == ACCEPTED), one
    took = time.monotonic() - start
    assert pushes > 0, "killed before it was done"
    assert not [name for name in os.listdir(host.store / "users") if not name.startswith(".")]
    assert fleet.sql("SELECT count(*) FROM enrollment WHERE name NOT LIKE '/%'") == [[str(len(people))]]
    assert [name for name, (used, *_) in backup.items() if verifier.type(name, used) != REFUSED] == []
    takes, start = 0, time.monotonic()
    for name in back:
        longest = 0.2
        while host.killed("fleet", "take", "--user", name, "--force", "--conf", host.own_policy,
                          after=rolls.uniform(0.01, longest)):
            takes, longest = takes + 1, longest * 1.5
        assert host.facts(name) == before[name], name
        assert verifier.type(name, code_of_now(name)) == REFUSED
    figure(f"push of {len(people)}: killed {pushes} times in {took:.0f} s; take of {len(back)}: "
           f"killed {takes} times in {time.monotonic() - start:.0f} s")
    for name, (used, other, *_) in backup.items():
        assert [host.accepts(name, typed) for typed in (used, other, other)] == [False, True, False], name
        assert [verifier.type(name, typed) for typed in (used, other)] == [REFUSED, REFUSED], name
    for name in [name for name in others if name not in tried][:rounds(500, 10)]:
        typed = code_of_now(name)
        assert [verifier.type(name, typed) for _ in range(2)] == [ACCEPTED, REFUSED], name
    assert fleet.twice() == []


def code_of_now(name):
    return totp(secret_of(name))[0]


@pytest.mark.decisive
def test_three_hosts_with_one_secret_are_pushed_in_turn(fleet, tmp_path):
    names = ["push1", "push2", "push3"]
    fleet.sql(host_rows((fleet.directory / "key").read_bytes(), [(name, True) for name in names]))
    verifier = fleet.verifier("one")
    hosts = [Host(fleet, tmp_path / name, name, ["alice"]) for name in names]
    for host in hosts:
        host.enroll("alice")
    typed = code()
    # On each machine once: so it is with a secret that was copied.
    assert [host.accepts("alice", typed) for host in hosts[1:]] == [True, True]
    first, second, third = hosts
    assert first.push("--user", "alice").returncode == 0
    refused = second.push("--user", "alice")
    assert refused.returncode == 1 and "enrolled with other secrets" in refused.stderr
    assert second.has("alice") and not second.accepts("alice", typed)
    for host in second, third:
        assert host.push("--user", "alice", "--keep-fleet").returncode == 0
        assert not host.has("alice")
    # What was used on the second and the third machine is used up everywhere.
    assert verifier.type("alice", typed) == REFUSED
    # The next one is good, on one machine: by the verifier, since none has files of its own any more.
    [fresh] = totp(BASE32, at=time.time() + 30)
    ways = [lambda host=host: host.accepts("alice", fresh) for host in hosts]
    ways += [lambda name=name: verifier.type("alice", fresh, host=name) == ACCEPTED for name in names]
    assert [way() for way in ways * 2].count(True) == 1
    assert fleet.accepted() == ["alice"] and fleet.twice() == []
