"""The reserve of a host of a fleet, written by docs/enrollment-format.md alone; and a host that can
reach no verifier."""

import hashlib
import hmac
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

RESERVE = Path("/var/lib/sallyport/reserve")
FLEET, KEY = Path("/etc/security/sallyport-fleet.conf"), Path("/etc/security/sallyport-fleet.key")
CODES = ("7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ")
ENROLLMENT, SET, SALT = 0x9F3C5A7E1B2D4F60, 0x5CA1AB1E0DDBA115, bytes(range(16))


def private(path, content):
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


def cut_off():
    """A host whose verifier is at an address where nobody listens."""
    FLEET.write_text("host = web1\nenrolls = no\nverifier = 127.0.0.1:1\npin = " + "ab" * 32 + "\n")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", KEY], check=True, capture_output=True)
    KEY.chmod(0o600)
    shutil.rmtree(RESERVE, ignore_errors=True)


def put(name="alice", age=0):
    """Somebody with two backup codes, of which none is used; the fleet confirmed it this many seconds
    ago."""
    lines = ["reserve = " + "0123456789abcdef" * 4, "version = 1", f"user = {name}", "uid = none",
             f"id = {ENROLLMENT:016x}", "created = 1772528400", "", "[backup_codes]", f"id = {SET:016x}",
             f"salt = {SALT.hex()}"]
    lines += ["code = " + hmac.digest(SALT, code.encode(), "sha256").hex() for code in CODES]
    private(RESERVE / "users" / name / "enrollment", "\n".join([*lines, "", "[end]", ""]).encode())
    fields = struct.pack("<QBBQQB", ENROLLMENT, 0, 1, SET, 0, 0) + bytes(2 * 16 + 4 * 8 + 3 * 8 + 2)
    private(RESERVE / "users" / name / "state", slot(2, fields) + slot(1, fields))
    for directory in (RESERVE, RESERVE / "users", RESERVE / "users" / name):
        directory.chmod(0o700)
    boot, now = Path("/proc/sys/kernel/random/boot_id").read_text().strip(), int(time.time())
    uptime = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    private(RESERVE / "confirmed", (
        f"# Kept by sallyportd(8).\nversion = 1\nconfirmed = {now - age}\ncounted = {age}\n"
        f"noted = {now}\nboot = {boot}\nuptime = {uptime}\n").encode())


def slot(number, fields):
    record = b"SPSTATE1" + struct.pack("<QI", number, 20 + len(fields)) + fields
    return record.ljust(4064, b"\0") + hashlib.sha256(record).digest()


def used(name="alice"):
    """The used codes, by the slot that counts."""
    path = RESERVE / "users" / name / "state"
    content, found = path.read_bytes(), {}
    for start in (0, 4096):
        number, length = struct.unpack_from("<QI", content, start + 8)
        record = content[start:start + length]
        if hashlib.sha256(record).digest() == content[start + 4064:start + 4096]:
            found[number] = struct.unpack_from("<Q", record, 20 + 18)[0]
    return found[max(found)]


def pending():
    return sorted(os.listdir(RESERVE / "pending")) if (RESERVE / "pending").exists() else []
