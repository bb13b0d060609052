"""What a file, standard input or a prompt holds may be a secret: no message repeats it.

Inputs of every shape in which people have a secret: as a name, with a name, as a URI, among commas,
semicolons and quotes, a vendor's table, columns swapped, cut short. Each holds one marker, which is
a valid secret; it must be in no output, no JSON and no file that is left.
"""

import base64
import itertools
import json
import random
import re

import pytest

from support.sallyport import sallyport
from support.whole import STRIDE

pytestmark = pytest.mark.decisive

CHANCE = random.Random(2611)
RAW = bytes(CHANCE.randrange(256) for _ in range(20))
MARKERS = {
    "Base32": base64.b32encode(RAW).decode(), "Base32 in lower case": base64.b32encode(RAW).decode().lower(),
    "hexadecimal": RAW.hex(), "hexadecimal in capitals": RAW.hex().upper(),
    "short Base32": base64.b32encode(RAW[:10]).decode(),
    "Base32 in groups": "-".join(re.findall("....", base64.b32encode(RAW).decode())),
}
SHAPES = [
    "{0}", "{0} {0}", "alice {0}", "{0} alice", "alice,{0}", "{0},alice", "alice;{0}", "{0};alice",
    '"alice","{0}"', "'{0}'", "alice\t{0}", "alice:{0}", "alice={0}", "{0}=", "secret = {0}",
    "otpauth://totp/alice?secret={0}", "otpauth://totp/alice?secret={0}&period=x",
    "otpauth://totp/alice?secret={0}&digits=9", "otpauth://hotp/alice?secret={0}",
    "alice otpauth://totp/alice?secret={0}", "alice,otpauth://totp/alice?secret={0}",
    "alice;otpauth://totp/alice?secret={0}", "otpauth://totp/{0}?secret=A", "otpauth:{0}", "//{0}",
    "otpauth-migration://offline?data={0}", "Serial,Seed\n1,{0}", "1234567,{0},30",
    "HOTP {0} - alice", "HOTP alice {0} -", "HOTP/T30/6 {0} - 00", "HOTP {0}", "TOTP {0} - {0}",
    "HOTP/E/{0} alice - 00", "HOTP alice - {0} x", "HOTP alice - {0} 0 {0} {0}",
    "[{0}]\nstate = enabled", "[default]\n{0} = 1", "[default]\nstate = {0}",
    "[rule {0}]\n[rule {0}]", "# {0}\n{0}", "sallyport-{0}", "{0}\n\" RATE_LIMIT 3 30\n{0}",
]
# In a part of them, too, each shape has markers, and each marker shapes.
INPUTS = [(kind, shape, shape.format(marker) + "\n")
          for (first, (kind, marker)), (second, shape) in itertools.product(
              enumerate(MARKERS.items()), enumerate(SHAPES)) if (first + second) % STRIDE == 0]


def verbs(file, store):
    """Each verb that reads a file, standard input or a prompt: its words, and whether it is typed."""
    place = ["--store", store]
    return [
        (["import", "uri", file, *place], False), (["import", "uri", file, *place, "--json"], False),
        (["import", "uri", "-", *place], True), (["import", "uri", "-", "--user", "alice", *place], True),
        (["import", "uri", file, "--allow-missing", "--dry-run", *place, "--json"], False),
        (["import", "pam-oath", file, *place], False), (["import", "pam-oath", file, *place, "--json"], False),
        (["import", "google-authenticator", file, "--user", "root", *place], False),
        (["enroll", "bob", "--no-confirm", "--force", "--secret-from", "-", *place], True),
        (["verify", "alice", *place], True), (["verify", "alice", *place, "--json"], True),
        (["resync", "alice", *place], True), (["add", "alice", "laptop", *place], True),
        (["config", "check", file], False), (["config", "check", file, "--json"], False),
        (["config", "install", file, "--conf", f"{store}.conf"], False),
        (["fleet", "join", *place], True),
    ]


@pytest.mark.parametrize("part", range(5))
def test_no_message_repeats_a_secret_of_what_was_read(part, store, tmp_path):
    assert len(INPUTS) * STRIDE > 200
    store.enroll()
    told = []
    for number, (kind, shape, text) in enumerate(INPUTS):
        if number % 5 != part:
            continue
        file = tmp_path / "source"
        file.write_text(text)
        file.chmod(0o600)
        for words, is_typed in verbs(file, store.directory):
            done = sallyport(*words, typed=text if is_typed else None)
            said = (done.stdout + done.stderr).lower()
            shown_on_purpose = words[0] == "enroll" and done.returncode == 0
            if not shown_on_purpose and any(marker.lower()[:16] in said for marker in MARKERS.values()):
                told.append((" ".join(map(str, words[:3])), kind, shape, done.stdout + done.stderr))
    assert not told, json.dumps(told[:6], indent=1) + f" and {len(told)} in all"


@pytest.mark.parametrize("kind", MARKERS)
def test_a_secret_typed_where_a_file_is_wanted_is_not_repeated(kind, store):
    marker = MARKERS[kind]
    for word in (marker, f"otpauth://totp/alice?secret={marker}"):
        for words in (["import", "uri", word], ["import", "pam-oath", word],
                      ["enroll", "bob", "--secret-from", word], ["config", "check", word],
                      ["config", "install", word]):
            done = sallyport(*words)
            assert done.returncode != 0 and marker[:16] not in done.stdout + done.stderr, words
