"""Where secrets are written to, by strace: the store, and the output that shows them."""

import base64
import json
import re
import subprocess

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import COMMAND

pytestmark = pytest.mark.decisive

# The calls that carry bytes out of a process, or into another one.
OUTPUT = ("write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,splice,vmsplice,tee,"
          "sendfile,copy_file_range,process_vm_writev,execve,ptrace")
TRACE = ["strace", "-f", "-y", "-xx", "-s", "100000", "-e", f"trace={OUTPUT}", "-o"]
HEX = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def unhex(text):
    return bytes.fromhex(text.replace("\\x", ""))


def writes(report):
    """[(the call and where it went, the bytes that it carried)]"""
    found = []
    for line in report.read_text().splitlines():
        target = re.search(r"^\d+ +(\w+)\((\d+<[^>]*>)?", line)
        if target:
            place = target[2] or ""
            place = re.sub(r"(\\x[0-9a-f]{2})+", lambda hit: unhex(hit[0]).decode(), place)
            found.append((f"{target[1]} {place}", b"\n".join(map(unhex, HEX.findall(line)))))
    return found


def spellings(secret, *codes):
    raw = base64.b32decode(secret)
    texts = [secret.encode(), raw, raw.hex().encode(), base64.b64encode(raw)]
    for code in codes:
        texts += [code.encode(), code.replace("-", "").encode()]
    return texts


def leaks(report, texts, allowed):
    found = writes(report)
    assert found, "strace saw nothing"
    return [place for place, data in found
            if any(text in data for text in texts) and not re.search(allowed, place)]


# shows: no-other-copy
@pytest.mark.parametrize("what", ["right", "wrong", "backup"])
def test_a_login_writes_no_secret_anywhere_and_no_response(store, services, sink, tmp_path, what):
    enrollment, report = store.enroll(digits=8), tmp_path / "strace"
    response, expected = {
        "right": (enrollment.code(), SUCCESS), "wrong": (enrollment.wrong(), AUTH_ERR),
        "backup": (enrollment.backup_codes[0], SUCCESS)}[what]
    with Driver(services, prefix=[*TRACE, str(report)]) as driver:
        assert driver.login("login", "alice", response).result == expected
    texts = spellings(enrollment.secret, response, *enrollment.backup_codes)
    assert leaks(report, texts, "nowhere") == []
    assert any(str(store.directory) in place for place, _ in writes(report))


# shows: arguments
@pytest.mark.parametrize("verb", [
    ("enroll", "--allow-missing", "--name", "phone", "--no-confirm", "--json"),
    ("enroll", "--allow-missing", "--name", "phone", "--no-confirm", "--force", "--json"),
    ("add", "--name", "yubikey", "--force", "--no-confirm", "--json"),
    ("backup-codes", "--regenerate", "--json"),
    ("status", "--json"), ("rename", "--name", "phone", "--to", "tablet"),
    ("remove", "--name", "spare", "--force"), ("unenroll", "--force"),
], ids=lambda verb: " ".join(verb[:2]))
def test_the_command_writes_secrets_to_the_store_and_its_output_only(store, tmp_path, verb):
    report = tmp_path / "strace"
    first = "--force" not in verb and verb[0] == "enroll"
    known = [] if first else [store.enroll(), store.add("spare")]
    done = subprocess.run(
        [*TRACE, str(report), COMMAND, *verb, "--user", "alice", "--store", str(store.directory)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout) if "--json" in verb else {}
    texts = [text for each in known for text in spellings(each.secret, *each.backup_codes)]
    texts += [text for code in said.get("backupCodes", []) for text in spellings("", code) if text]
    texts += spellings(said["secret"]) if "secret" in said else []
    assert texts
    if "secret" in said:  # or this test could not see a secret that is written
        assert any(str(store.directory) in place and said["secret"].encode() in data
                   for place, data in writes(report))
    # What the command shows: the secret and the codes that it has just made, to its caller.
    shown = r"write 1<pipe:" if "secret" in said or "backupCodes" in said else "nothing"
    assert leaks(report, texts, f"{re.escape(str(store.directory))}/|{shown}") == []
