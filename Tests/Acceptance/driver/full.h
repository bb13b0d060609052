/* A libpam without memory: the program's own symbols come before libpam's for every module. */
#pragma once

#include <dlfcn.h>
#include <security/pam_modules.h>
#include <stdatomic.h>

static _Atomic int full; /* 1: no memory for a module's data, 2: none for PAM_AUTHTOK */

int pam_set_data(pam_handle_t *pamh, const char *name, void *data,
                 void (*cleanup)(pam_handle_t *, void *, int)) {
  int (*next)(pam_handle_t *, const char *, void *, void (*)(pam_handle_t *, void *, int));
  *(void **)&next = dlsym(RTLD_NEXT, "pam_set_data");
  return atomic_load(&full) == 1 ? PAM_BUF_ERR : next(pamh, name, data, cleanup);
}

int pam_set_item(pam_handle_t *pamh, int item, const void *value) {
  int (*next)(pam_handle_t *, int, const void *);
  *(void **)&next = dlsym(RTLD_NEXT, "pam_set_item");
  return atomic_load(&full) == 2 && item == PAM_AUTHTOK ? PAM_BUF_ERR : next(pamh, item, value);
}
