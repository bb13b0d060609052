"""libcrypto is loaded when the module first computes, and may not be there then."""

import subprocess

import pytest

from support.pam_driver import AUTH_ERR, SUCCESS, TROUBLE, Driver
from support.sallyport import aligned_now

# What the file of $MISSING names is missing: a library, or a function of one.
FAULT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_missing(const char *name) {
  char missing[100] = "";
  FILE *file = fopen(getenv("MISSING"), "r");
  if (file == NULL) return 0;
  if (fgets(missing, sizeof missing, file) == NULL) missing[0] = 0;
  fclose(file);
  return name != NULL && strcmp(name, missing) == 0;
}
void *dlopen(const char *name, int how) {
  void *(*usual)(const char *, int) = (void *(*)(const char *, int))dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.34");
  return is_missing(name) ? NULL : usual(name, how);
}
void *dlsym(void *library, const char *name) {
  void *(*usual)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  return is_missing(name) ? NULL : usual(library, name);
}
"""


# shows: libraries
@pytest.mark.parametrize("name", ["libcrypto.so.3", "ERR_set_mark", "EVP_MAC_final", "EVP_Digest"])
def test_a_libcrypto_that_is_not_whole_is_an_error_and_tried_again(name, services, store, sink, tmp_path):
    (tmp_path / "fault.c").write_text(FAULT)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "fault.so", "fault.c"], cwd=tmp_path, check=True)
    enrollment, missing, now = store.enroll(), tmp_path / "missing", aligned_now()
    missing.write_text(name)
    code = enrollment.code(now)
    with Driver(services, env={"LD_PRELOAD": str(tmp_path / "fault.so"), "MISSING": str(missing)}) as driver:
        for _ in range(2):
            assert driver.login("login", "alice", code, at=now).result == TROUBLE
        missing.unlink()
        assert driver.login("login", "alice", code, at=now).result == SUCCESS
        assert driver.login("login", "alice", code, at=now).result == AUTH_ERR
