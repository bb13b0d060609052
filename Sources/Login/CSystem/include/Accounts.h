/* Questions of SallyportSystem to the account database. Results as in CSystem.h. */
#pragma once

#include "SSSD.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#pragma clang assume_nonnull begin

/* getpwnam_r(3). 1 with the account's own spelling (in `buffer`), its uid and its primary group; 0
   if there is no such account; or a negative errno, -ERANGE if the buffer is too small. */
static inline int sys_account(const void *name, void *buffer, size_t size,
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

enum { sys_lookups = 12 }; /* the most tries: a name service is not waited for */

/* getgrnam_r(3), with a buffer that grows up to a mebibyte. Sets the group's number, and returns 1
   if the group lists `user` as a member, 2 if it lists others alone, 0 if it lists nobody (or if a
   name service returns NULL for the list); -ENOENT if there is no such group, or another negative
   errno. */
static inline int sys_group(const void *group, const void *user, uint32_t *number) {
  size_t size = 1024;
  int result = -ERANGE;
  for (int left = sys_lookups; left > 0 && size <= 1u << 20; left--) {
    struct group entry, *found = NULL;
    char *buffer = malloc(size);
    if (buffer == NULL) return -ENOMEM;
    int error = getgrnam_r(group, &entry, buffer, size, &found);
    result = error > 0 ? -error : error < 0 ? -EIO : found == NULL ? -ENOENT : 0;
    if (result == 0) {
      *number = found->gr_gid;
      for (char **one = found->gr_mem; one != NULL && *one != NULL && result != 1; one++)
        result = strcmp(*one, user) == 0 ? 1 : 2;
    }
    free(buffer);
    if (result == -ERANGE) size *= 4;
    else if (result != -EINTR) return result;
  }
  return result;
}

/* getgrouplist(3), with a list that grows until it is complete. 1 if `group` is one of the groups
   of `user`, whose primary group is `primary`, 0 if not; or a negative errno. The C library does not
   report that a source failed. */
static inline int sys_has_group(const void *user, uint32_t primary, uint32_t group) {
  int size = 64;
  for (int left = sys_lookups; left > 0 && size > 0 && size <= 1 << 20; left--) {
    int count = size, result = 0;
    gid_t *groups = malloc((size_t)size * sizeof *groups);
    if (groups == NULL) return -ENOMEM;
    int done = getgrouplist(user, primary, groups, &count);
    for (int one = 0; one < done && result != 1; one++) result = groups[one] == group;
    free(groups);
    if (done >= 0) return result;
    if (count <= size) return -ENOMEM; /* the only other failure than a list that is too short */
    size = count;
  }
  return -ERANGE;
}

/* A file after a line break, to be freed; NULL if it cannot be read. */
static inline __attribute__((noinline)) char *_Nullable sys_text(const char *file) {
  struct stat facts;
  char *text = NULL;
  const int opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fstat(opened, &facts) == 0 && facts.st_size < 1 << 26
      && (text = malloc((size_t)facts.st_size + 2)) != NULL) {
    size_t end = 1, size = (size_t)facts.st_size + 1;
    ssize_t done = 0;
    text[0] = '\n';
    while (end < size && (done = read(opened, text + end, size - end)) > 0) end += (size_t)done;
    text[done < 0 ? 0 : end] = 0;
  }
  close(opened);
  return text;
}

/* Whether `file`, such as passwd(5) or group(5), has an entry of that name. */
static inline __attribute__((noinline)) int sys_file_has(const char *file, const char *name) {
  char wanted[300] = "\n", *text = sys_text(file);
  const size_t length = strlen(name);
  int found = 0;
  if (text != NULL && length + 2 < sizeof wanted) {
    memcpy(wanted + 1, name, length);
    wanted[length + 1] = ':';
    found = strstr(text, wanted) != NULL;
  }
  free(text);
  return found;
}

/* Whether groups, or those of a user, may come from SSSD by nsswitch.conf(5): by a line `group` or
   `initgroups`, but not `netgroup`. An SSSD that serves something else knows users and groups too,
   but they may be of another directory. */
static inline int sys_has_sssd(void) {
  char *text = sys_text("/etc/nsswitch.conf"), *at = text;
  int found = text == NULL || *text == 0;
  while (!found && (at = strstr(at, "group")) != NULL) {
    char *end = at + strcspn(at, "#\n"), *source = strstr(at, "sss");
    found = (at[-1] != 't' || at[-2] != 'e') && source != NULL && source < end;
    at = end;
  }
  free(text);
  return found;
}

/* Whether `user`, whose primary group is `primary`, is in `group`: 1, 0, or a negative errno if it
   is not known. A list without the user proves nothing where a directory may have given a part of
   it alone, as SSSD does of a user whose groups it has never asked for while its directory is away,
   and of a group that it has from the login of another member. */
static inline int sys_is_member(const char *user, uint32_t primary, const char *group) {
  uint32_t number = 0;
  int listed = sys_group(group, user, &number);
  if (listed < 0 || listed == 1) return listed;
  int has = sys_has_group(user, primary, number);
  if (has != 0) return has;
  if (sys_file_has("/etc/passwd", user) || sys_file_has("/etc/group", group)) return 0;
  int known = sys_has_sssd() ? sys_sssd_group(user, number) : -ENOENT;
  if (known != -ENOENT) return known;
  return listed == 2 ? 0 : -EAGAIN;
}

#pragma clang assume_nonnull end
