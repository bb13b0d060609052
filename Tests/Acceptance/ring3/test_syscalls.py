"""What a login does to the system, by strace: one write, one flush, nothing created."""

import re

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, Driver
from support.sallyport import MODULE

CHANGES = set("""
    creat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat
    rmdir mknod mknodat chmod fchmod fchmodat chown fchown fchownat lchown truncate ftruncate fallocate
    utimensat setxattr fsetxattr""".split())
# What malloc asks for differs from run to run.
MEMORY = {"brk", "mmap", "munmap", "mremap", "mprotect", "madvise"}
# What libc and libcrypto open on their own behalf.
LIBRARY_FILES = re.compile(
    r"^(/etc/(ld\.so\.cache|passwd|nsswitch\.conf|localtime|group)|/usr/share/zoneinfo/.*"
    r"|.*/ssl/openssl\.cnf"
    r"|.*/(libnss_\w+|libcrypto|libpam|libc|libaudit|libcap-ng|libz|libzstd)[\w.-]*\.so[.\d]*"
    r"|/run/systemd/userdb/?.*|/proc/sys/crypto/fips_enabled)$")


def traced(store, services, tmp_path, *attempts):
    """The system calls within pam_authenticate of the last attempt: [(name, rest of the line)]."""
    report = tmp_path / "strace"
    with Driver(services, prefix=["strace", "-f", "-y", "-s", "64", "-o", str(report)]) as driver:
        for service, user, answer, expected in attempts:
            assert driver.login(service, user, answer, mark=1).result == expected
    text = report.read_text()
    text = text[text.rindex('access("/mark/begin"'):text.rindex('access("/mark/end"')]
    return re.findall(r"^\d+ +(\w+)\((.*)$", text, re.MULTILINE)


def opened(calls):
    return {match[1] for name, rest in calls if name in ("open", "openat", "openat2")
            and " = -1 " not in rest and (match := re.search(r"= \d+<([^>]*)>", rest))}


@pytest.fixture(params=["right", "wrong", "backup", "unknown"])
def login(request, store, services, sink):
    enrollment = store.enroll()
    return {
        "right": ("login", "alice", enrollment.code(), SUCCESS),
        "wrong": ("login", "alice", enrollment.wrong(), AUTH_ERR),
        "backup": ("login", "alice", enrollment.backup_codes[0], SUCCESS),
        "unknown": ("login", "nobody-here", enrollment.wrong(), AUTH_ERR),
    }[request.param]


# shows: one-write
def test_a_login_is_one_write_and_one_flush(store, services, tmp_path, login):
    calls = traced(store, services, tmp_path, login)
    inside = [(name, rest) for name, rest in calls if f"<{store.directory}" in rest]
    writes = [(name, rest) for name, rest in inside if re.match(r"p?writev?(64|2)?$", name)]
    assert [name for name, _ in writes] == ["pwrite64"]
    assert re.search(r", 4096, (0|4096)\) += 4096", writes[0][1])
    assert [name for name, _ in inside if "sync" in name] == ["fdatasync"]
    names = [name for name, _ in inside]
    assert names.index("pwrite64") < names.index("fdatasync")
    assert not CHANGES & {name for name, _ in calls}
    assert not any("O_CREAT" in rest or "O_TRUNC" in rest for _, rest in calls)


# shows: host-state
def test_a_login_opens_its_own_files_and_no_others(store, services, tmp_path, login):
    calls = traced(store, services, tmp_path, login)
    files = opened(calls)
    # No catalog is looked for where no language is set, found or not.
    assert not any("sallyport/messages" in rest for _, rest in calls)
    directories = {str(directory) for directory in [store.directory, *store.directory.parents]}
    allowed = {MODULE} | directories
    ours = {file for file in files if file.startswith(str(store.directory))}
    others = {file for file in files - ours - allowed if not LIBRARY_FILES.match(file)}
    assert others == set()
    user = "decoy" if login[1] == "nobody-here" else "users/alice"
    assert {str(store.directory / user / name) for name in ("enrollment", "state")} <= ours


def test_a_language_costs_calls_where_it_is_set_alone(store, services, tmp_path, sink, figure):
    """Where none is set there are as many as where it is English, of which there is no catalog. Of the second
    login of a process: the first one loads libcrypto, and keeps a copy of the policy."""
    codes, policy = iter(store.enroll().backup_codes), tmp_path / "policy.conf"
    services.code("login", store, f"conf={policy}", "nodelay")
    counts, catalogs = [], []
    for line in ("tries = 1", "language = en", "language = de"):
        policy.write_text(f"[default]\n{line}\n")
        calls = traced(store, services, tmp_path,
                       *[("login", "alice", next(codes), SUCCESS) for _ in range(2)])
        counts.append(sum(name not in MEMORY for name, _ in calls))
        catalogs.append(any("sallyport/messages" in rest for _, rest in calls))
    figure(f"system calls of a login without a language, in English, in German: {counts}")
    assert counts[0] == counts[1] < counts[2]
    assert catalogs == [False, False, True]


def test_a_warm_login_reads_no_configuration_of_libcrypto(store, services, tmp_path, sink):
    enrollment = store.enroll()
    calls = traced(store, services, tmp_path, ("login", "alice", enrollment.wrong(), AUTH_ERR),
                   ("login", "alice", enrollment.code(), SUCCESS))
    assert not any("openssl" in file or "libcrypto" in file for file in opened(calls))


# shows: store-closed
@pytest.mark.decisive
def test_the_stores_files_are_opened_close_on_exec_and_never_through_links(
        store, services, tmp_path, login):
    calls = traced(store, services, tmp_path, login)
    ours = [rest for name, rest in calls
            if name == "openat" and f"<{store.directory}" in rest.split(" = ")[-1]]
    assert ours and all("O_CLOEXEC" in rest and "O_NOFOLLOW" in rest for rest in ours)


# shows: owner-waits
def test_no_lock_is_held_while_the_prompt_waits(store, services, tmp_path, sink):
    """From the first lock to its release nothing is read but the store, and nobody is asked."""
    enrollment = store.enroll()
    calls = traced(store, services, tmp_path, ("login", "alice", enrollment.code(), SUCCESS))
    locks = [i for i, (name, rest) in enumerate(calls) if name == "fcntl" and "F_OFD_SETLK" in rest]
    assert locks, "no open-file-description lock seen"
    held = calls[locks[0]:locks[-1] + 1]
    assert not any(name in ("sendto", "connect", "nanosleep", "getrandom") for name, _ in held)
    saving = ("pwrite64", "fdatasync")
    assert tuple(name for name, _ in held if name in saving) == saving
