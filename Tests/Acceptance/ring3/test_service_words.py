"""The words of sallyportd's command line."""

import os
import subprocess

import pytest

SERVICE = os.environ.get("SALLYPORT_SERVICE")


def run(*words):
    return subprocess.run([SERVICE, *words], capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_service_tells_its_options_and_ends(word):
    done = run(word)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--sessions" in done.stdout and "--session-program" in done.stdout


@pytest.mark.parametrize("words, named", [
    (["--session"], "--session"), (["--root-socket", "/tmp/root"], "--root-socket"),
    (["--session-program"], "--session-program"), (["--sessions=yes"], "--sessions"),
    (["-x"], "x"), (["--sessions", "start"], "start"), (["start"], "start"), ([""], "''")])
def test_a_word_that_the_service_does_not_know_is_named_and_nothing_is_started(words, named):
    done = run(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert named in done.stderr and "--help" in done.stderr
