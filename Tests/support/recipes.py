"""The blocks of docs/recipes.md, so that what is tested is what stands there."""

import re
from pathlib import Path

from support.sallyport import MODULE

TEXT = (Path(__file__).resolve().parents[2] / "docs/recipes.md").read_text()


def section(heading):
    """A section with those below it."""
    marks, name = heading.split(" ", 1)
    match = re.search(rf"^{marks} {re.escape(name)}\n(.*?)(?=^#{{1,{len(marks)}}} |\Z)", TEXT,
                      re.MULTILINE | re.DOTALL)
    assert match, heading
    return match[1]


def block(heading, words):
    """The first block after `words` in a section."""
    text = section(heading)
    assert words in text, (heading, words)
    return re.search(r"^```\w*\n(.*?)^```$", text[text.index(words):],
                     re.MULTILINE | re.DOTALL)[1]


def stack(heading, path, *words):
    """The lines for a file of /etc/pam.d, with the module under test and `words` on its line."""
    ours = " ".join([MODULE, "nodelay", *words])
    return block(heading, f"`/etc/pam.d/{path}`").replace("pam_sallyport.so", ours)
