"""sallyport.conf(5) and questions.md: each configuration is valid, each command exists with its options."""

import re
import shlex
from pathlib import Path

import pytest

from support.sallyport import sallyport

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "sallyport.conf.5").read_text()
QUESTIONS = (DOCS / "questions.md").read_text()
BLOCKS = (re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", TEXT, re.MULTILINE | re.DOTALL)
          + re.findall(r"^```ini\n(.*?)^```", QUESTIONS, re.MULTILINE | re.DOTALL))
# Of a line of mdoc the punctuation at its end is no word of the command.
COMMANDS = sorted({re.sub(r"( [.,:;)])+$", "", line)
                   for line in re.findall(r"^\.Ql (sallyport [a-z].*)", TEXT, re.MULTILINE)
                   + re.findall(r"^sudo (sallyport [^#\n]*[^#\n ])", QUESTIONS, re.MULTILINE)
                   + re.findall(r"`(sallyport [a-z][^`]*)`", QUESTIONS)})


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_configuration_is_valid_and_says_what_it_sets(tmp_path, number):
    text = BLOCKS[number]
    path = tmp_path / "sallyport.conf"
    path.write_text(text)
    done = sallyport("config", "check", path, "--user", "nobody")
    assert done.returncode == 0, done.stderr
    if "[default]" in text:
        rows = [line.split() for line in done.stdout.splitlines()]
        for line in text.split("[rule")[0].splitlines()[1:]:
            if line:
                key, value = line.split(" = ")
                assert [*value.split()] == next(row[1:-1] for row in rows if row[0] == key)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_has_the_words_it_is_called_with(line):
    words = shlex.split(line)
    verb = words[1:3] if words[1] in ("config", "fleet", "pam") else words[1:2]
    helped = sallyport(*verb, "--help")
    assert helped.returncode == 0
    for word in words:
        if word.startswith("--"):
            assert word in helped.stdout


def test_in_the_office_nobody_is_asked_and_elsewhere_all_are(tmp_path):
    path = tmp_path / "sallyport.conf"
    path.write_text(next(block for block in BLOCKS if "[rule office]" in block))
    assert path.read_text().split("match_origin")[0] in QUESTIONS
    for origin, state in (("192.0.2.7", "disabled"), ("198.51.100.9", "enabled")):
        done = sallyport("config", "check", path, "--service", "sshd", "--user", "nobody", "--origin", origin)
        assert ["state", state] in [line.split()[:2] for line in done.stdout.splitlines()], done.stdout
