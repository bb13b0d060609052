"""Torn and destroyed records: the owner still gets in, and no code is good twice.

A write that was cut off destroys the slot that did not count yet. A slot that counts can only be
destroyed by something else: then the slot before it counts. Which of the two it was cannot be told,
so that the codes of the moment count as used in both.
"""

import time
from collections import Counter

from modules import code
from support.pam_driver import SUCCESS, TROUBLE, Driver
from record import when
from subjects import USER, Ours, result_of

PAGE, SECTOR = 4096, 512
# Seconds after which a code is good whatever was destroyed: eleven time steps.
NEXT = 330


class Torn:
    def __init__(self, setting):
        self.setting, self.dice = setting, setting.dice("torn")
        self.subject = Ours(setting.place("torn"))
        self.at = int(time.time()) // 600 * 600 + 3600
        self.subject.enroll(USER, "totp", self.at)
        self.state = self.subject.store.state()
        self.enrollment = self.subject.store.enrollment()
        self.driver = Driver(self.subject.services(setting.scratch / "torn.pam"))

    def enters(self, at):
        return result_of(self.driver, USER, code(at), at)

    def two_logins(self, parity):
        """(state before the second, state after it, where it was written); times of both."""
        self.at += 600
        for _ in range(2 + parity):
            self.at += 600
            assert self.enters(self.at) == SUCCESS
        before = self.state.read_bytes()
        self.at += 600
        assert self.enters(self.at) == SUCCESS
        after = self.state.read_bytes()
        offset = 0 if before[:PAGE] != after[:PAGE] else PAGE
        assert before[PAGE - offset:2 * PAGE - offset] == after[PAGE - offset:2 * PAGE - offset]
        return before, after, offset

    def after_damage(self, section, what, content):
        """The last login's code is tried, and the one before it; then the next. As a case."""
        self.state.write_bytes(content)
        again = [self.enters(self.at) for _ in range(2)] + [self.enters(self.at - 600)]
        later = self.enters(self.at + NEXT)
        section.case(what,
                     when(SUCCESS in again, "accepted twice", str(again)),
                     when(later != SUCCESS, "locked out", f"the next code: {later}"))


def prefixes(section, torn, parity):
    """The second login's write stops after each byte, as if the power were cut."""
    before, after, offset = torn.two_logins(parity)
    # All bytes of the record, then of its checksum; what lies between is zeros in both.
    end = len(after[offset:offset + PAGE - 32].rstrip(b"\0"))
    lengths = set(range(end + 2)) | set(range(PAGE - 33, PAGE + 1)) | set(range(0, PAGE + 1, 64))
    if torn.setting.short:
        lengths = torn.dice.sample(sorted(lengths), 80) + [0, PAGE]
    for length in sorted(lengths):
        content = bytearray(before)
        content[offset:offset + length] = after[offset:offset + length]
        # The empty one is the record of before the login, whole: nothing was written at all.
        if bytes(content) != before:
            torn.after_damage(section, f"slot {parity}, written up to byte {length}",
                              bytes(content))
    section.note(f"slot {parity}: {len(lengths)} prefixes")


def garbage(dice, size):
    return {"zeros": bytes(size), "ones": b"\xff" * size, "noise": dice.randbytes(size)}


def sectors(section, torn):
    """Garbage in each sector, and in each page: of the slot that counts and of the other."""
    for size in (SECTOR, PAGE):
        for at in range(0, 2 * PAGE, size):
            for kind, content in garbage(torn.dice, size).items():
                _, after, newest = torn.two_logins(at // PAGE)
                damaged = after[:at] + content + after[at + size:]
                counts = newest <= at < newest + PAGE and damaged != after
                whose = "the newer" if counts else "no"
                torn.after_damage(section, f"{kind} in bytes {at} to {at + size}, {whose} "
                                  "record", damaged)


def both(section, torn):
    """No slot is left: trouble for every answer, nothing is begun afresh, and the log says it."""
    for kind, content in garbage(torn.dice, 2 * PAGE).items():
        torn.two_logins(0)
        torn.state.write_bytes(content)
        results = {torn.enters(at) for at in (torn.at, torn.at + 600)}
        section.case(f"{kind} in both",
                     when(results != {TROUBLE}, "begun afresh", str(results)),
                     when(torn.state.read_bytes() != content, "damage", "it was written"))
        torn.subject.enroll(USER, "totp", torn.at)


def enrollments(section, torn):
    """A login never writes it. Cut off or overwritten: never a success with another code."""
    whole = torn.enrollment.read_bytes()
    places = range(len(whole)) if not torn.setting.short else torn.dice.sample(
        range(len(whole)), 80)
    seen = Counter()
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << torn.dice.randrange(8)
        for what, content in (("cut off at", whole[:place]), ("one bit of", flipped)):
            torn.enrollment.write_bytes(content)
            torn.at += 600
            result = result_of(torn.driver, USER, "000000", torn.at)
            seen[result] += 1
            # Without its last line feed it is whole.
            cut_off = what.startswith("cut") and place < len(whole) - 1 and result != TROUBLE
            section.case(f"{what} byte {place}",
                         when(result == SUCCESS, "accepted", "a wrong code"),
                         when(cut_off, "half an enrollment was used", result))
    torn.enrollment.write_bytes(whole)
    torn.subject.forgive(USER)
    torn.at += 600
    section.case("whole again", when(torn.enters(torn.at) != SUCCESS, "locked out", "at the end"))
    section.note(f"the enrollment cut off and changed at {len(places)} places: {dict(seen)}")


def run(section, setting):
    if not setting.ours:
        return section.skip("this is about our state file; theirs are rewritten as a whole")
    torn = Torn(setting)
    for parity in (0, 1):
        prefixes(section, torn, parity)
    sectors(section, torn)
    both(section, torn)
    enrollments(section, torn)
    torn.driver.close()
