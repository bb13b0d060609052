"""A terminal that is looked at: runs the command on a pseudo-terminal and draws what it wrote."""

import os
import subprocess

import pexpect
import pyte

from typist import Child

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


def read_qr_code(rows, path, wide=False, inverted=False, scale=6):
    """What zbarimg reads from the drawn rows, or None."""
    picture = pixels(rows, wide)
    lines = []
    for row in picture:
        bits = " ".join(str(pixel ^ 1 ^ inverted) for pixel in row for _ in range(scale))
        lines += [bits] * scale
    width, height = len(picture[0]) * scale, len(picture) * scale
    path.write_text(f"P1\n{width} {height}\n" + "\n".join(lines) + "\n")
    done = subprocess.run(
        ["zbarimg", "--quiet", "--raw", str(path)], capture_output=True, text=True)
    return done.stdout.rstrip("\n") or None
