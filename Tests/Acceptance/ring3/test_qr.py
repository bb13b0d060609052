"""QR codes: module for module those of libqrencode, but for the mask; and zbarimg reads them."""

import ctypes
import os
import random
import subprocess

import pytest

from pam_driver import BUILT

LARGEST, LONGEST = 177, 2953
MASKS = [  # ISO/IEC 18004, table 10
    lambda y, x: (y + x) % 2 == 0, lambda y, x: y % 2 == 0, lambda y, x: x % 3 == 0,
    lambda y, x: (y + x) % 3 == 0, lambda y, x: (y // 2 + x // 3) % 2 == 0,
    lambda y, x: y * x % 2 + y * x % 3 == 0, lambda y, x: (y * x % 2 + y * x % 3) % 2 == 0,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2 == 0]
FUNCTION = 0x80  # libqrencode's bit for a module that belongs to a pattern


class Code(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("side", ctypes.c_int),
                ("cells", ctypes.POINTER(ctypes.c_ubyte))]


ours = ctypes.CDLL(f"{BUILT}/qr.so")
theirs = ctypes.CDLL("libqrencode.so.4")
theirs.QRcode_encodeData.restype = ctypes.POINTER(Code)


def encoded(text):
    cells = (ctypes.c_ubyte * LARGEST ** 2)()
    side = ours.qr_encode(text, ctypes.c_size_t(len(text)), cells)
    return side, bytes(cells[:side * side])


def by_the_library(text):
    code = theirs.QRcode_encodeData(len(text), text, 0, 0)
    side = code.contents.side
    cells = bytes(code.contents.cells[:side * side])
    theirs.QRcode_free(code)
    return side, cells


def mask_of(side, cells):
    """The mask in the format information, at row 8; level L stands before it."""
    bits = sum((cells[8 * side + place] & 1) << (4 - place) for place in range(5)) ^ 0x5412 >> 10
    assert bits >> 3 == 1
    return bits & 7


def lengths():
    dice = random.Random(7)
    sides = [encoded(b"x" * n)[0] for n in range(1, LONGEST + 2)]
    capacities = [n for n in range(1, LONGEST + 1) if sides[n - 1] != sides[n]]
    assert len(capacities) == 40
    return sorted({1, 2, 83, *capacities, *(n + 1 for n in capacities[:-1]),
                   *(dice.randrange(1, LONGEST) for _ in range(20))})


def test_every_version_is_that_of_libqrencode_but_for_the_mask():
    for length in lengths():
        text = os.urandom(length)
        (side, cells), (wanted, other) = encoded(text), by_the_library(text)
        assert side == wanted, length
        mask, mask_there = mask_of(side, cells), mask_of(side, other)
        for place, (here, there) in enumerate(zip(cells, other)):
            row, column = divmod(place, side)
            if there & FUNCTION:
                assert mask != mask_there or here == there & 1, (length, row, column)
                continue
            bare = here ^ MASKS[mask](row, column)
            assert bare == there & 1 ^ MASKS[mask_there](row, column), (length, row, column)


def test_what_no_code_can_hold_gives_none():
    assert encoded(b"")[0] == 0 and encoded(b"x" * (LONGEST + 1))[0] == 0


@pytest.mark.parametrize("length", [20, 83, 117, 400, 1000])
def test_zbarimg_reads_them(length, tmp_path):
    dice = random.Random(length)
    text = "".join(dice.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567/:?=&%abc", k=length))
    side, cells = encoded(text.encode())
    zone, scale = 4, 4
    rows = [bytes(zone) + cells[row * side:row * side + side] + bytes(zone) for row in range(side)]
    rows = [bytes(side + 2 * zone)] * zone + rows + [bytes(side + 2 * zone)] * zone
    picture = b"".join(bytes(0 if cell else 255 for cell in row for _ in range(scale)) * scale
                       for row in rows)
    path, across = tmp_path / "code.pgm", (side + 2 * zone) * scale
    path.write_bytes(b"P5 %d %d 255\n" % (across, across) + picture)
    done = subprocess.run(["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", path],
                          capture_output=True, text=True)
    assert done.stdout == text + "\n", done.stderr
