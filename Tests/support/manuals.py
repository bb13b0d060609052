"""EXAMPLES of the manuals, and the answers of sallyport(1) to questions, as one would type them."""

import re
import subprocess
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted([*DOCS.glob("*.1"), *DOCS.glob("*.8")])
ESCAPES = {r"\(dq": '"', r"\-": "-", r"\e": "\\", r"\&": ""}


def plain(line):
    """A line of mdoc without its escapes, and without the prompt that some manuals show."""
    for escape, text in ESCAPES.items():
        line = line.replace(escape, text)
    return re.sub(r"^# ", "", line)


def section(text, name):
    """What is below a heading, up to the next one of its kind."""
    match = re.search(rf"^\.(S[hs]) {name}\n(.*?)(?=^\.\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[2] if match else ""


def lines(block):
    """The lines of a block, each as a whole: with the lines that continue it."""
    whole, begun = [], ""
    for line in block.splitlines():
        begun += plain(line) + "\n"
        if subprocess.run(["sh", "-n", "-c", begun], capture_output=True, check=False).returncode == 0 \
                and not begun.endswith("\\\n"):
            whole.append(begun.rstrip("\n"))
            begun = ""
    assert not begun, begun
    return whole


def examples(page):
    """Each example of a manual: its lines, in order."""
    found = re.findall(r"^\.Dl ([^\n]*)|^\.Bd -literal[^\n]*\n(.*?)^\.Ed",
                       section(page.read_text(), "EXAMPLES"), re.MULTILINE | re.DOTALL)
    return [[plain(one)] if one else lines(block) for one, block in found]


def answers():
    """Each command that sallyport(1) answers a question with, without the punctuation of the sentence."""
    text = section((DOCS / "sallyport.1").read_text(), "Questions")
    return [re.sub(r" [.,:;]$", "", plain(line)) for line in re.findall(r"^\.Ql (.*)", text, re.MULTILINE)]
