"""What a login takes of a verifier and of the database: the figures of docs/fleet.md.

test_a_login_writes_one_small_row_and_changes_another
"""

import base64
import time
from concurrent.futures import ThreadPoolExecutor

from support.codes import totp
from support.fleet import DONE, QUESTION, SECRET, backends, seconds
from support.service import attempt, request
from support.whole import rounds

BASE32 = base64.b32encode(SECRET).decode()
ACCEPTED = b"\xa5"
# Bytes of WAL for a login, at most; 825 were seen where this was written.
MOST = 4000


def log_in(verifier, names, code):
    """Each of them, by questions as a host sends them: what is there to ask, and is this code right?"""
    with verifier.line() as line:
        for name in names:
            line.ask(QUESTION, line.question(request(name.encode(), 1, b"\0\1")))
            answer = line.ask(QUESTION, line.question(attempt(name.encode(), code.encode())))[1]
            assert answer[1:2] == ACCEPTED, (name, answer)


def test_a_login_writes_one_small_row_and_changes_another(own_fleet, figure):
    fleet = own_fleet  # others would write to the same log
    names = [f"user{number}" for number in range(rounds(2000, 200))]
    verifier = fleet.verifier("one")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(verifier.enroll, names)) == {DONE}
    now = time.time()
    # The first of each page after a checkpoint, of which there is one an hour, writes all of it: not what is
    # looked for.
    log_in(verifier, names, totp(BASE32, at=now - 60)[0])
    place = fleet.sql("SELECT pg_current_wal_insert_lsn()")[0][0]
    working = backends(fleet.sql)
    before = seconds(verifier.process.pid), sum(map(seconds, working))
    log_in(verifier, names, totp(BASE32, at=now)[0])
    verifying, keeping = (
        (after - before) / len(names) * 1e6
        for before, after in zip(before, (seconds(verifier.process.pid), sum(map(seconds, working)))))
    [[wal]] = fleet.sql(f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{place}')::bigint")
    wal = int(wal) / len(names)
    [[person]] = fleet.sql("SELECT ((sum(pg_column_size(e.*)) + sum(pg_column_size(s.*))) / count(*))::int "
                           "FROM enrollment e JOIN state s USING (name) WHERE encode(name, 'escape') LIKE 'user%'")
    [[event]] = fleet.sql("SELECT avg(pg_column_size(event.*))::int FROM event WHERE outcome = 'accepted'")
    figure(f"a login: {wal:.0f} bytes of WAL, {event} of its event, {verifying:.0f} us of the verifier's processor, "
           f"{keeping:.0f} of the database's; a person: {person} bytes")
    assert len(fleet.accepted()) == 2 * len(names)
    assert wal < MOST and int(event) < 400 and int(person) < 8192
