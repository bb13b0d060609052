"""What is in the memory of a login in which somebody enrolled: what was shown, and what was typed.

The host of these tests passes each text on at once and keeps none of it, so what is found is the
module's, libpam's or a library's.
"""

import base64
import re

import pytest

from support.pam_driver import LIVE, SUCCESS, Barrier, Driver, NAMES, encoded
from support.sallyport import MODULE, first_code, handed_out, our_line
from test_levels import ANY_PASSWORD
from support.traces import Traces, keyed_states

pytestmark = pytest.mark.decisive

PHASES = ("auth", "acct", "open")


def of_the_secret(uri):
    """Raw, as people type it, as the URI has it, as HMAC makes it."""
    text = re.search(r"secret=([A-Z2-7]+)", uri).group(1)
    secret = base64.b32decode(text)
    groups = " ".join(text[start:start + 4] for start in range(0, len(text), 4))
    return {"secret": secret, "in Base32": text.encode(), "in groups": groups.encode(),
            "in the URI": f"ret={text}&".encode(), **keyed_states(secret),
            "as code words of a QR code": shifted(text.encode())}


def shifted(text):
    """Bytes that begin in the middle of others, as in a QR code, whose head has twelve bits."""
    return bytes((one << 4 | two >> 4) & 255 for one, two in zip(text, text[1:]))


def of_the_codes(text):
    values = {}
    for number, code in enumerate(re.findall(r"(?:\w{4}-){3}\w{4}", text)):
        handed_out.append(code)
        values[f"backup code {number}"] = code.encode()
        values[f"backup code {number} without hyphens"] = code.replace("-", "").encode()
    return values


def of_the_drawing(text):
    """Two of its lines, as they are drawn; its modules, a bit for each as libqrcodegen has them."""
    lines = text.encode("latin-1").split(b"\n")
    rows = modules(text.encode("latin-1").decode())
    bits = [dark for row in rows for dark in row]
    packed = bytes(sum(dark << place for place, dark in enumerate(bits[start:start + 8]))
                   for start in range(0, len(bits), 8))
    return {**{f"line {number} of the drawing": lines[number] for number in (6, 7)},
            "the middle of the code": packed[len(packed) // 2:][:24]}


def modules(drawing, zone=2):
    """Rows of the code without its quiet zone, 1 where a module is dark; light ones are inked."""
    rows = []
    for line in drawing.splitlines():
        rows += [[cell in ink for cell in line] for ink in (" \u2584", " \u2580")]
    side = len(rows[0]) - 2 * zone
    return [[int(dark) for dark in row[zone:zone + side]] for row in rows[zone:zone + side]]


class Enrolling:
    """One login with an enrolling in it; what is found in its memory, moment by moment."""

    def __init__(self, services):
        self.services, self.values, self.found, self.shown = services, {}, {}, []

    def look(self, moment):
        if self.values:
            found = set(Traces(**self.values).found(self.driver.process.pid))
            self.found[moment] = self.found.get(moment, set()) | found

    def read(self, text):
        self.shown.append(text)
        if "otpauth://" in text:
            self.values |= of_the_secret(text)
        elif "Backup codes" in text:
            self.values |= of_the_codes(text)
        elif "\u00e2" in text:  # the first byte of a block in UTF-8
            self.values |= of_the_drawing(text)

    def answer(self):
        """The first code, in a form that is found in parts of eight bytes."""
        uri = next(text for text in self.shown if "otpauth://" in text)
        typed = "-".join(first_code(uri))
        self.values["the first code"] = typed.encode()
        self.look("while the prompt waits")
        return typed

    def play(self):
        barrier = Barrier()
        with Driver(self.services, barrier) as self.driver:
            self.driver.send("sshd", "nobody", "pw", "y", LIVE, "", phases=PHASES,
                             rhost="192.0.2.7", handover=1, halt=1, flush=1)
            phases = iter(PHASES)
            while "event" in (said := self.driver.read()):
                if said["event"] == "shown":
                    self.read(said["text"])
                elif said["event"] == "live":
                    self.driver.process.stdin.write(encoded(self.answer()) + "\n")
                    self.driver.process.stdin.flush()
                else:
                    self.look("at a flush" if said["event"] == "flush" else next(phases))
                    barrier.release(1)
            self.look("after all of it")
        barrier.close()
        assert [NAMES[number] for number in said["rcs"]] == [SUCCESS] * len(PHASES)


@pytest.fixture
def enrolling(services, store, tmp_path, sink):
    store.enroll("bob")  # makes the store
    policy = tmp_path / "policy.conf"
    policy.write_text("[default]\nenrollment = required\n")
    place = f"store={store.directory} conf={policy}"
    services.write("sshd", ANY_PASSWORD, our_line(store, f"conf={policy}", "enroll", "nodelay"),
                   f"account required {MODULE} {place}", "account required pam_permit.so",
                   f"session required {MODULE}", "session required pam_permit.so")
    one = Enrolling(services)
    one.play()
    assert len(one.values) > 25 and any("line" in name for name in one.values)
    return one


# shows: in-memory
@pytest.mark.parametrize("moment", ["acct", "open", "after all of it"])
def test_after_enrolling_nothing_of_what_was_shown_or_typed_is_in_memory(enrolling, moment):
    assert enrolling.found[moment] == set()


# shows: in-memory
def test_while_enrolling_it_is_the_secret_alone_and_its_text_where_it_is_written(enrolling, figure):
    """Without it the test above would have nothing to miss."""
    assert enrolling.found["while the prompt waits"] == {"secret"}
    assert {"secret", "in Base32"} <= enrolling.found["at a flush"]
    for moment in ("while the prompt waits", "at a flush"):
        figure(f"in memory {moment} of enrolling: {', '.join(sorted(enrolling.found[moment]))}")
