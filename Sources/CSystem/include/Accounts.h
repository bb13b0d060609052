/* What SallyportSystem asks the account database. Results as in CSystem.h. */
#pragma once

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma clang assume_nonnull begin

/* getpwnam_r: 1 with the account's own spelling (in `buffer`), its uid and primary group, 0 for a clean "there is
   none", or a negative errno (-ERANGE: the buffer is too small). */
static inline int sys_account(const void *name, char *buffer, size_t size,
                              const char *_Nullable *_Nonnull spelling, uint32_t *uid,
                              uint32_t *gid) {
  struct passwd entry, *found = NULL;
  int error = getpwnam_r(name, &entry, buffer, size, &found);
  if (error != 0) return error > 0 ? -error : -EIO;
  if (found == NULL) return 0;
  *spelling = found->pw_name;
  *uid = found->pw_uid;
  *gid = found->pw_gid;
  return 1;
}

/* getgrnam_r, with a buffer that grows up to a megabyte: 1 where `user` is one of the group's members
   or `primary` its number, 0 where not or where there cleanly is none, or a negative errno. */
static inline int sys_is_member(const void *group, const void *user, uint32_t primary) {
  int result = -ERANGE;
  for (size_t size = 1024; result == -ERANGE && size <= 1u << 20; size *= 4) {
    struct group entry, *found = NULL;
    char *buffer = malloc(size);
    if (buffer == NULL) return -ENOMEM;
    do result = -getgrnam_r(group, &entry, buffer, size, &found);
    while (result == -EINTR);
    if (result == 0 && found != NULL) {
      result = found->gr_gid == primary;
      for (char **one = found->gr_mem; *one != NULL; one++) result |= strcmp(*one, user) == 0;
    }
    free(buffer);
  }
  return result;
}

#pragma clang assume_nonnull end
