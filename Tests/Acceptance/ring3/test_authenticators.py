"""Several authenticators of one user: added, used side by side, removed, brought in step."""

import json
import threading
import time

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Crowd, Driver
from support.sallyport import aligned_now, reason, sallyport

DAY = 86400


def used(lines):
    """The authenticator that the log names."""
    assert len(lines) == 1 and "code accepted" in lines[0].text, lines
    return lines[0].text.split('authenticator="')[1].split('"')[0]


def run(store, verb, *arguments, typed=()):
    return sallyport(verb, "--user", "alice", *arguments, "--store", store.directory,
                     typed="".join(line + "\n" for line in typed) if typed else None)


def names(store):
    return [each["name"] for each in store.status()["authenticators"]]


def test_a_name_forges_no_field_of_the_log_line(driver, store, sink):
    enrollment = store.enroll()
    name = 'p" origin=203.0.113.9 user=root a="'
    assert run(store, "rename", "--name", "phone", "--to", name).returncode == 0
    with sink.watch() as lines:
        assert driver.login("login", "alice", enrollment.code()).result == SUCCESS
    [line] = [line.text for line in lines if "code accepted" in line.text]
    assert ' authenticator="p%22%20origin%3D203.0.113.9%20user%3Droot%20a%3D%22"' in line
    assert line.count("origin=") == 1 and "user=root" not in line


def test_the_log_says_which_of_two_was_used(driver, store, sink):
    phone, tablet, now = store.enroll(), store.add("tablet"), aligned_now()
    for turn, (name, each) in enumerate([("phone", phone), ("tablet", tablet), ("phone", phone)]):
        at = now + 30 * turn
        with sink.watch() as lines:
            assert driver.login("login", "alice", each.code(at), at=at).result == SUCCESS
        assert used(lines) == name
        assert driver.login("login", "alice", each.code(at), at=at).result == AUTH_ERR
    told = {each["name"]: each["lastUse"] for each in store.status()["authenticators"]}
    assert set(told) == {"phone", "tablet"} and None not in told.values()


def test_totp_and_hotp_of_all_lengths_side_by_side(driver, store, sink):
    now = aligned_now()
    phone = store.enroll(digits=6)
    fob = store.add("fob", type="hotp", digits=8)
    key = store.add("key", type="hotp", digits=6)
    watch = store.add("watch", digits=7, period=60, algorithm="sha512")
    for turn in range(3):
        at = now + 60 * turn
        for name, code in [("fob", fob.code(counter=turn)), ("watch", watch.code(at)),
                           ("phone", phone.code(at)), ("key", key.code(counter=turn))]:
            with sink.watch() as lines:
                assert driver.login("login", "alice", code, at=at).result == SUCCESS, name
            assert used(lines) == name
    counters = {each["name"]: each.get("counter") for each in store.status()["authenticators"]}
    assert counters == {"phone": None, "fob": 3, "key": 3, "watch": None}


def test_eight_authenticators_all_get_in_and_a_ninth_is_refused(driver, store):
    now = aligned_now()
    all_of_them = [store.enroll()] + [store.add(f"a{i}") for i in range(7)]
    for each in all_of_them:
        assert driver.login("login", "alice", each.code(now), at=now).result == SUCCESS
    done = run(store, "add", "--name", "ninth", "--force")
    assert (done.returncode, done.stdout) == (73, "")
    assert "hint: sallyport status" in done.stderr


# shows: add-needs-code
def test_adding_wants_a_fresh_code_or_a_backup_code_and_uses_it_up(driver, store):
    phone = store.enroll()
    for typed, status in [(phone.wrong(), 1), (phone.code(), 0)]:
        done = run(store, "add", "--name", "tablet", "--no-confirm", typed=[typed])
        assert done.returncode == status, done.stderr
        assert ("otpauth://" in done.stdout) == (status == 0)
    assert driver.login("login", "alice", typed).result == AUTH_ERR
    done = run(store, "remove", "--name", "tablet", typed=[phone.backup_codes[0]])
    assert done.returncode == 0, done.stderr
    assert driver.login("login", "alice", phone.backup_codes[0]).result == AUTH_ERR
    assert names(store) == ["phone"]


@pytest.mark.decisive
def test_a_removed_authenticator_is_refused_at_once_and_its_secret_is_gone(driver, store, sink):
    phone, tablet = store.enroll(), store.add("tablet")
    assert driver.login("login", "alice", tablet.code()).result == SUCCESS
    store.remove("tablet")
    with sink.watch() as lines:
        later = int(time.time()) + 30
        assert driver.login("login", "alice", tablet.code(later), at=later).result == AUTH_ERR
    assert reason(lines) == "wrong-code"
    assert not any(tablet.secret.encode() in path.read_bytes()
                   for path in store.directory.rglob("*") if path.is_file())
    assert driver.login("login", "alice", phone.code(later), at=later).result == SUCCESS
    done = run(store, "remove", "--name", "phone", "--force")
    assert done.returncode == 1 and "hint: sallyport unenroll" in done.stderr


def test_another_name_is_the_same_authenticator(driver, store, sink):
    phone, now = store.enroll(), aligned_now()
    assert driver.login("login", "alice", phone.code(now), at=now).result == SUCCESS
    assert run(store, "rename", "--name", "phone", "--to", "old phone").returncode == 0
    assert driver.login("login", "alice", phone.code(now), at=now).result == AUTH_ERR
    with sink.watch() as lines:
        at = now + 30
        assert driver.login("login", "alice", phone.code(at), at=at).result == SUCCESS
    assert used(lines) == "old%20phone"


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_known_places_are_forgotten_by_remove_alone(driver, store, sink, verb):
    """Wrong codes from where alice has logged in spend the other budget again: who had the removed
    authenticator may be there. A new one says nothing of a place, and locks no owner out of his."""
    phone, home = store.enroll(), {"rhost": "192.0.2.7"}
    if verb == "remove":
        store.add("tablet")
    now = aligned_now(0)
    assert driver.login("sshd", "alice", phone.code(now), at=now, **home).result == SUCCESS
    wrong = phone.wrong(now)

    def spent():
        status = store.status()["wrongCodes"]
        return status["known"]["left"], status["other"]["left"]

    driver.login("sshd", "alice", wrong, at=now, **home)
    known, other = spent()
    assert known < other
    store.add("tablet") if verb == "add" else store.remove("tablet")
    known, other = spent()
    driver.login("sshd", "alice", wrong, at=now, **home)
    assert spent() == ((known - 1, other) if verb == "add" else (known, other - 1))


@pytest.mark.decisive
def test_a_login_that_waits_at_its_prompt_is_refused_once_remove_has_returned(
        store, services, sink):
    store.enroll()
    with Crowd(services, 8) as crowd:
        for turn in range(10):
            tablet, now = store.add("tablet"), aligned_now() + 30 * turn
            crowd.wait_at_prompts([(("login", "alice", tablet.code(now)), {"at": now})] * 8)
            store.remove("tablet")
            assert [login.result for login in crowd.answer()] == [AUTH_ERR] * 8
            store.unlock()


def test_adding_and_removing_while_logins_run(store, services, sink, figure):
    """The phone always gets in; the tablet never once `remove` has returned."""
    phone, base, stop = store.enroll(), aligned_now(), threading.Event()
    results, codes = [], phone.codes(5000, base)
    # A code that comes again within the accepted steps counts for the later one.
    turns = [turn for turn in range(4990) if codes[turn] not in codes[turn + 1:turn + 6]]

    def log_in():
        with Driver(services) as driver:
            while not stop.is_set() and len(results) < len(turns):
                turn = turns[len(results)]
                login = driver.login("login", "alice", codes[turn], at=base + 30 * turn)
                results.append(login.result)

    logins = threading.Thread(target=log_in)
    logins.start()
    try:
        with Driver(services) as other:
            for _ in range(30):
                tablet = store.add("tablet")
                at = base + 30 * len(results)
                assert other.login("login", "alice", tablet.code(at), at=at).result == SUCCESS
                store.remove("tablet")
                later = tablet.code(at + 60)
                assert other.login("login", "alice", later, at=at + 60).result == AUTH_ERR
                store.unlock()
    finally:
        stop.set()
        logins.join()
    assert len(results) > 30 and set(results) == {SUCCESS}
    figure(f"30 times add and remove beside {len(results)} logins: all of them got in")


def test_resync_finds_a_counter_that_ran_away(driver, store):
    fob = store.enroll(name="fob", type="hotp")
    codes = fob.codes(3, counter=800)
    assert driver.login("login", "alice", codes[0]).result == AUTH_ERR
    assert run(store, "resync", typed=[codes[1], codes[0]]).returncode == 1
    done = run(store, "resync", "--json", typed=codes[:2])
    assert json.loads(done.stdout) == {
        "accepted": True, "authenticator": "fob", "drift": 0, "reopenedUntil": None}
    for code in codes[:2]:
        assert driver.login("login", "alice", code).result == AUTH_ERR
    assert driver.login("login", "alice", codes[2]).result == SUCCESS
    assert run(store, "resync", typed=fob.codes(2, counter=0)).returncode == 1


def test_resync_mends_a_clock_that_ran_ahead(driver, store, sink):
    phone, now = store.enroll(), int(time.time())
    ahead = now + DAY
    assert driver.login("login", "alice", phone.code(ahead), at=ahead).result == SUCCESS
    with sink.watch() as lines:
        assert driver.login("login", "alice", phone.code(now), at=now).result == AUTH_ERR
    assert reason(lines) == "clock"
    typed = phone.codes(2, now - 30)
    done = run(store, "resync", "--json", typed=typed)
    said = json.loads(done.stdout)
    assert said["accepted"] and said["reopenedUntil"], done.stderr
    for code in typed:
        assert driver.login("login", "alice", code, at=now).result == AUTH_ERR
    later = now + 60
    assert driver.login("login", "alice", phone.code(later), at=later).result == SUCCESS


@pytest.mark.parametrize("off", [-3600, 3600, 40000])
def test_resync_tells_how_far_a_phones_clock_is_off(driver, store, off):
    phone = store.enroll()
    now = int(time.time())
    done = run(store, "resync", "--json", typed=phone.codes(2, now + off))
    said = json.loads(done.stdout)
    assert (done.returncode, said["reason"]) == (1, "clock-off")
    assert abs(said["seconds"] - off) <= 60
    assert store.status()["authenticators"][0]["drift"] == said["drift"]
    assert driver.login("login", "alice", phone.code(now + off), at=now).result == AUTH_ERR
    assert driver.login("login", "alice", phone.code(now), at=now).result == SUCCESS


def test_a_token_that_drifted_logs_in_by_its_own_clock(driver, store):
    token, now, off = store.enroll(device="token"), int(time.time()), 420
    assert driver.login("login", "alice", token.code(now + off), at=now).result == AUTH_ERR
    done = run(store, "resync", "--json", typed=token.codes(2, now + off))
    said = json.loads(done.stdout)
    assert said["accepted"] and said["drift"] in (14, 15), done.stderr
    # A week later, in which it gained 14 s.
    for at, off in [(now + 60, off), (now + 7 * DAY, off + 14)]:
        assert driver.login("login", "alice", token.code(at), at=at).result == AUTH_ERR
        assert driver.login("login", "alice", token.code(at + off), at=at).result == SUCCESS
        assert driver.login("login", "alice", token.code(at + off), at=at).result == AUTH_ERR
    [told] = store.status()["authenticators"]
    assert told["device"] == "token" and abs(told["clockOffset"] - off) <= 30
