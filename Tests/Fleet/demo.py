"""What Tests/Demo/fleet shows: a transcript, and whether all of it happened."""

import sys
import time

from support.codes import totp
from support.service import soon
from support.stage import Stage

failed = []


def step(text):
    print(f"\n== {text}", flush=True)


def say(text):
    print("".join(f"  {line}\n" for line in text.strip().splitlines()), end="", flush=True)


def expect(wanted, what, host, name, typed):
    """One login, and whether it came out as it must."""
    done, written = host.login(name, typed)
    show(wanted, what, host, typed, done, written)


def show(wanted, what, host, typed, done, written=""):
    mark = "ok"
    if done != wanted:
        failed.append(what)
        mark = f"WRONG: {written.strip()}"
    print(f"  {host.name}  {what:<44} {typed:<20} in: {'yes' if done else 'no':<4} {mark}", flush=True)


def play(stage):
    stage.hosts = stage.hosts[:2]
    stage.begin(guests=())
    stage.gather()
    a, b = stage.hosts
    say(stage.verifiers[0].run("hosts").stdout)
    say(a.sallyport("fleet", "status").stdout)

    step("alice enrolls once, at her first login on web1")
    secret, code, backup = a.enroll("alice")
    say(f"code {code} confirmed the phone; {len(backup)} backup codes")
    expect(False, "the code that confirmed it", b, "alice", code)
    [code] = totp(secret, at=time.time() + 30)
    expect(True, "the next code", a, "alice", code)
    expect(False, "the same code", b, "alice", code)
    expect(False, "the same code again", a, "alice", code)
    expect(True, "a backup code", b, "alice", backup[0])
    expect(False, "the same one", a, "alice", backup[0])

    step("kill -9 of the verifier one")
    stage.verifiers[0].kill()
    show_again(True, "a backup code, by the other verifier", b, backup[1:3])
    expect(False, "a code of before", a, "alice", code)

    stage.verifiers[0].start()
    assert stage.all_judge()

    step("kill -9 of the primary; its synchronous standby is promoted")
    stage.pair.primary.kill()
    stage.pair.fail_over()
    assert stage.all_judge()
    say("Both verifiers found the new primary by themselves.")
    expect(False, "a code of before", b, "alice", code)
    [code] = totp(secret, at=time.time() + 60)
    expect(True, "the code after it", a, "alice", code)
    expect(False, "the same code", b, "alice", code)

    step("the cable of web2 is cut")
    stage.network.cut(b.machine)
    assert soon(lambda: "Backup code: " in b.login("alice", "x")[1], 60)
    say("It asks for a backup code alone: what codes of the app were used elsewhere it cannot know.")
    [code] = totp(secret, at=time.time() + 120)
    expect(False, "a code of the app", b, "alice", code)
    expect(True, "a backup code", b, "alice", backup[4])
    expect(False, "the same one", b, "alice", backup[4])

    step("the cable is back")
    stage.network.mend_all()
    assert stage.all_judge()
    assert soon(lambda: "Verification code: " in b.login("alice", "x")[1], 60)
    expect(False, "what was used while it was cut", a, "alice", backup[4])
    expect(True, "another one", a, "alice", backup[5])
    say(b.sallyport("fleet", "status").stdout)

    step("what the database has")
    for name, outcome, host in stage.sql("SELECT encode(name, 'escape'), outcome, host FROM event ORDER BY at"):
        say(f"{host:<6} {name:<6} {outcome}")
    if stage.twice():
        failed.append("a code was accepted twice")


def show_again(wanted, what, host, codes):
    """A code each, while it finds out who is there: an answer that does not come is a refusal."""
    for typed in codes:
        done = host.enters("alice", typed)
        if done == wanted:
            break
    show(wanted, what, host, typed, done)


start = time.monotonic()
step("a network of its own: db1, db2 (synchronous standby), verifiers one and two, hosts web1 and web2")
with Stage() as theatre:
    play(theatre)
print()
if failed:
    sys.exit("Not all of it happened: see the lines marked WRONG: " + ", ".join(failed))
print("Shown: enrolled once; each code in once on both hosts; a verifier killed, the database failed over,",
      "login goes on; cut off, a backup code alone, once.", f"{time.monotonic() - start:.0f} s.")
