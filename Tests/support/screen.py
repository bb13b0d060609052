"""A terminal that is looked at: runs the command on a pseudo-terminal and draws what it wrote."""

import os
import subprocess

import pexpect
import pyte

from support.typist import Child

QUADRANTS = {" ": (0, 0), "\u00a0": (0, 0), "█": (1, 1), "▀": (1, 0), "▄": (0, 1), "#": (1, 1)}


class Terminal:
    """A child on an 80x24 terminal (or another) and the screen it would show."""

    def __init__(self, command, columns=80, rows=24, env=None):
        self.screen = pyte.HistoryScreen(columns, rows, history=1000, ratio=1)
        self.stream = pyte.Stream(self.screen)
        self.child = Child(
            command, dimensions=(rows, columns),
            env=os.environ | {"TERM": "xterm", "LC_ALL": "C.UTF-8"} | (env or {}))

    def expect(self, pattern):
        """Reads on until the pattern was written, and draws everything up to it."""
        seen = self.child.expect(pattern)
        self.stream.feed(self.child.before)
        if isinstance(self.child.after, str):
            self.stream.feed(self.child.after)
        return seen

    def type(self, line):
        self.child.sendline(line)

    def finish(self):
        """The exit status; None if a signal ended it."""
        self.expect(pexpect.EOF)
        self.child.wait()
        return self.child.exitstatus

    def rows(self):
        """Everything visible now, as rows of text."""
        return list(self.screen.display)


def pixels(rows, wide):
    """Rows of characters as rows of 0 (dark, the terminal's ground) and 1 (light, what is drawn).

    A half block stands for two pixels, one above the other. In ASCII (`wide`) two characters
    beside each other stand for one.
    """
    picture = []
    for row in rows:
        halves = [QUADRANTS.get(cell, (0, 0)) for cell in row]
        if wide:
            picture.append([half[0] for half in halves[::2]])
        else:
            picture += [[half[0] for half in halves], [half[1] for half in halves]]
    return picture


# A letter leaves some of its cell blank; where it stands, there is no quiet zone.
TEXT = (1, 0)
# How a terminal's theme shows a colour: 1 is light. The default is the ground or the text.
DARK = {"default": {"fg": 1, "bg": 0}, "black": 0, "brightwhite": 1, "white": 1}
LIGHT = {"default": {"fg": 0, "bg": 1}, "black": 0, "brightwhite": 1, "white": 1}


def drawn_pixels(screen, theme):
    """The screen as rows of 0 (dark) and 1 (light), as a theme shows it: a cell is 4 pixels wide
    and 8 high, so that two blanks side by side are a square."""
    def light(colour, ground):
        # pyte calls the bright variants of 100 to 107 by another name in some versions.
        colour = {"bfightwhite": "brightwhite"}.get(colour, colour)
        return theme["default"][ground] if colour == "default" else theme[colour]

    picture = []
    for row in range(screen.lines):
        upper, lower = [], []
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            inks = QUADRANTS.get(cell.data, TEXT)
            text, ground = light(cell.fg, "fg"), light(cell.bg, "bg")
            upper += [text if inks[0] else ground] * 4
            lower += [text if inks[1] else ground] * 4
        picture += [upper] * 4 + [lower] * 4
    return picture


# Two readers that have nothing in common: what one of them lets pass, the other may not.
READERS = (["zbarimg", "--quiet", "--raw"], ["ZXingReader", "-format", "QRCode", "-bytes"])


def read(picture, path, scale):
    """What both readers make of rows of 0 (dark) and 1 (light); None if one of them reads nothing."""
    rows = [bytes(255 * pixel for pixel in row for _ in range(scale)) * scale for row in picture]
    size = f"{len(picture[0]) * scale} {len(picture) * scale}"
    path.write_bytes(f"P5 {size} 255\n".encode() + b"".join(rows))
    texts = [subprocess.run([*reader, path], capture_output=True, text=True).stdout.rstrip("\n")
             for reader in READERS]
    assert not all(texts) or texts[0] == texts[1], texts
    return texts[0] if all(texts) else None


def read_as_drawn(screen, theme, path):
    """What is read from the screen as the theme shows it, not inverted; or None."""
    return read(drawn_pixels(screen, theme), path, scale=2)


def read_qr_code(rows, path, wide=False):
    """What is read from the drawn rows alone, or None."""
    return read(pixels(rows, wide), path, scale=6)
