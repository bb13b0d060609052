"""The modules that `pam enable` takes for takers of a password: behind a line with forward_pass
they do not ask; without that they do."""

from pathlib import Path

import pytest

from support.pam_driver import Driver
from support.sallyport import our_line

DIRECTORIES = ["/usr/lib/x86_64-linux-gnu/security", "/lib/x86_64-linux-gnu/security",
           "/usr/lib/aarch64-linux-gnu/security", "/usr/lib64/security"]
BOTH = "Password & verification code: "
TAKE = ["pam_unix.so", "pam_unix.so try_first_pass", "pam_sss.so", "pam_sss.so use_first_pass",
        "pam_userdb.so db=/nowhere use_first_pass", "pam_userdb.so db=/nowhere try_first_pass",
        "pam_winbind.so use_first_pass", "pam_winbind.so try_first_pass"]
ASK = ["pam_sss.so prompt_always", "pam_userdb.so db=/nowhere", "pam_winbind.so"]


def prompts(line, store, services):
    module = line.split()[0]
    if not any(Path(directory, module).exists() for directory in DIRECTORIES):
        pytest.skip(f"{module} is not installed")
    enrollment = store.enroll()
    services.write("field", our_line(store, "nodelay", "forward_pass"), f"auth required {line}")
    with Driver(services) as driver:
        login = driver.login("field", "alice", "staple" + enrollment.code(), "again")
    texts = [text for _, text in login.prompts]
    assert texts[0] == BOTH
    return texts[1:]


@pytest.mark.parametrize("line", TAKE)
def test_a_module_that_takes_the_password_does_not_ask(line, store, services):
    assert prompts(line, store, services) == []


@pytest.mark.parametrize("line", ASK)
def test_a_module_that_does_not_take_it_asks(line, store, services):
    assert len(prompts(line, store, services)) == 1
