"""Enrolling on a terminal: the drawn QR code is read back, the questions answered."""

import re
import urllib.parse

import pytest

from support.pam_driver import SUCCESS, Driver
from support.sallyport import COMMAND, Enrollment, sallyport
from support.screen import DARK, LIGHT, Terminal, read_as_drawn, read_qr_code


def enrolling(*more, columns=80, rows=24, user="alice", env=None):
    """The command on a terminal, at the question for the first code."""
    command = [COMMAND, "enroll", "--user", user, "--name", "phone", *more]
    terminal = Terminal(command, columns, rows, env)
    terminal.expect("Code shown by the app: ?")
    return terminal


def printed_enrollment(terminal):
    """The enrollment as the printed URI tells it."""
    text = "".join(line.rstrip() for line in history(terminal))
    uri = re.search(r"otpauth://totp/\S+?period=\d+", text)[0]
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(uri).query))
    return Enrollment("alice", query["secret"], "totp", query["algorithm"].lower(),
                      int(query["digits"]), int(query["period"]), None, uri)


def history(terminal):
    """All rows, also those that scrolled away."""
    screen = terminal.screen
    old = ["".join(row[i].data for i in range(screen.columns)) for row in screen.history.top]
    return old + list(screen.display)


def meaning(uri):
    """Label and parameters; those the drawn URI may leave out have their default."""
    parts = urllib.parse.urlsplit(uri)
    query = {"algorithm": "SHA1", "digits": "6", "period": "30"}
    query |= urllib.parse.parse_qsl(parts.query)
    account = urllib.parse.unquote(parts.path).split(":")[-1]
    return parts.scheme, parts.netloc, account, *map(
        query.get, ("secret", "algorithm", "digits", "period"))


def assert_is_read(terminal, read):
    """What was read is what is printed; ends the command."""
    assert read is not None, "\n".join(terminal.rows())
    assert meaning(read) == meaning(printed_enrollment(terminal).uri)
    terminal.child.sendintr()
    terminal.finish()


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("columns, rows, locale", [
    (80, 24, "C.UTF-8"), (80, 50, "C.UTF-8"), (120, 60, "C")])
def test_the_code_is_read_from_the_screen_as_drawn_in_every_theme(
        store, tmp_path, columns, rows, locale, theme):
    """Black on bright white whatever the terminal's own colours are, and not inverted."""
    terminal = enrolling(columns=columns, rows=rows, env={"LC_ALL": locale})
    assert_is_read(terminal, read_as_drawn(terminal.screen, theme, tmp_path / "screen.pgm"))


@pytest.mark.parametrize("mode, theme", [("utf8", DARK), ("inverted", LIGHT)])
def test_a_drawing_without_colours_is_read_in_its_own_theme(store, tmp_path, mode, theme):
    terminal = enrolling("--qr", mode, rows=50)
    assert_is_read(terminal, read_as_drawn(terminal.screen, theme, tmp_path / "screen.pgm"))


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_no_escape_sequences(store, env):
    terminal = enrolling(rows=50, env=env)
    assert "\x1b" not in terminal.child.before
    terminal.child.sendintr()
    terminal.finish()


@pytest.mark.parametrize("mode, rows", [("utf8", 24), ("utf8", 50), ("ascii", 60)])
def test_the_code_is_read_without_colours_on_a_dark_ground(store, tmp_path, mode, rows):
    """Read with the ground dark, as most terminals are; what a phone has to do."""
    terminal = enrolling("--qr", mode, columns=120, rows=rows)
    assert_is_read(terminal, read_qr_code(
        terminal.rows(), tmp_path / "screen.pgm", wide=mode == "ascii"))


def test_enrolling_asks_for_one_code_and_shows_backup_codes_that_work(store, services, sink):
    terminal = enrolling(rows=50)
    printed = printed_enrollment(terminal)
    terminal.type(printed.wrong())
    terminal.expect("4 tries left")
    terminal.expect("Code shown by the app: ?")
    code = printed.code()
    terminal.type(f"{code[:3]} {code[3:]}")
    assert terminal.finish() == 0
    text = "\n".join(history(terminal))
    assert 'Enrolled as "phone"' in text
    backup_codes = re.findall(r"\b(?:[0-9A-Z]{4}-){3}[0-9A-Z]{4}\b", text)
    assert len(backup_codes) == 10
    with Driver(services) as driver:
        assert driver.login("login", "alice", code).result != SUCCESS  # it was used for enrolling
        assert driver.login("login", "alice", backup_codes[0]).result == SUCCESS


def test_nothing_is_wider_than_the_terminal_but_the_uri(store):
    terminal = enrolling(rows=50)
    written = terminal.child.before
    terminal.child.sendintr()
    terminal.finish()
    wide = [line for line in written.splitlines() if len(line) > 80]
    assert all(line.startswith("otpauth://") for line in wide)


# shows: enroll-cut
@pytest.mark.parametrize("rows", [24, 50])
def test_ctrl_c_at_the_question_changes_nothing(store, rows):
    terminal = enrolling(rows=rows)
    terminal.child.sendintr()
    assert terminal.finish() != 0
    assert "not enrolled, nothing was changed" in "\n".join(terminal.rows())
    assert not store.of().exists()
    assert sallyport("status", "--user", "alice").returncode == 66


def test_five_wrong_codes_end_the_enrolling(store):
    terminal = enrolling(rows=50)
    wrong = printed_enrollment(terminal).wrong()
    for _ in range(4):
        terminal.type(wrong)
        terminal.expect("Code shown by the app: ?")
    terminal.type(wrong)
    assert terminal.finish() == 1
    assert not store.of().exists()


def test_a_locale_without_utf8_gets_ascii(store, tmp_path):
    terminal = enrolling(rows=60, columns=120, env={"LC_ALL": "C", "NO_COLOR": "1"})
    assert "█" not in "".join(terminal.rows())
    assert_is_read(terminal, read_qr_code(terminal.rows(), tmp_path / "screen.pgm", wide=True))
