"""docs/concepts.md: every configuration in it is valid, every command exists, every test too."""

import re
import shlex
from pathlib import Path

import pytest

from support.sallyport import sallyport

REPOSITORY = Path(__file__).parents[3]
TEXT = (REPOSITORY / "docs/concepts.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]


@pytest.mark.parametrize("number", range(sum(kind == "ini" for kind, _ in BLOCKS)))
def test_every_configuration_is_valid_and_says_what_it_sets(tmp_path, number):
    text = [text for kind, text in BLOCKS if kind == "ini"][number]
    path = tmp_path / "sallyport.conf"
    path.write_text(text)
    done = sallyport("config", "check", path, "--user", "root")
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
    assert words[0] == "sallyport"
    verb = words[1:3] if words[1] == "config" else words[1:2]
    helped = sallyport(*verb, "--help")
    assert helped.returncode == 0
    for word in words:
        if word.startswith("--"):
            assert word in helped.stdout


def test_every_test_that_it_names_exists():
    for name in re.findall(r"`(ring\d/\w+\.py)`", TEXT):
        assert (REPOSITORY / "Tests/Acceptance" / name).exists(), name
    for name in re.findall(r"`(\w+Tests)`", TEXT):
        assert list((REPOSITORY / "Tests").rglob(f"{name}*")), name
