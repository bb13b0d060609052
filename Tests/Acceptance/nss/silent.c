/* A name service whose groups list no members, as sssd with ignore_group_members: what groups an
 * account has is told by the account alone. carol is in "staffers", and in "split", whose entry is
 * in /etc/group and lists somebody else. Of "listed" the group alone tells that she is in it.
 * "sloppy", in which she is as well, has NULL in place of the list. "admins" lists ana alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; gid_t number; char *member; } groups[] = {
  { "staffers", 4600, NULL }, { "visitors", 4601, NULL }, { "listed", 4604, "carol" },
  { "sloppy", 4605, NULL }, { "admins", 5100, "ana" },
};

static enum nss_status give(size_t index, struct group *entry, char *buffer, size_t size,
                            int *error) {
  size_t length = strlen(groups[index].name) + 1;
  size_t start = -(size_t)buffer % sizeof(char *);
  if (size < start + 2 * sizeof(char *) + length) {
    *error = ERANGE;
    return NSS_STATUS_TRYAGAIN;
  }
  char **members = (char **)(void *)(buffer + start);
  members[0] = groups[index].member;
  members[1] = NULL;
  *entry = (struct group){ .gr_gid = groups[index].number, .gr_mem = members, .gr_passwd = "x" };
  if (strcmp(groups[index].name, "sloppy") == 0) entry->gr_mem = NULL;
  entry->gr_name = memcpy(members + 2, groups[index].name, length);
  return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_silent_getgrnam_r(const char *name, struct group *entry, char *buffer,
                                       size_t size, int *error) {
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (strcmp(groups[i].name, name) == 0) return give(i, entry, buffer, size, error);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_silent_getgrgid_r(gid_t number, struct group *entry, char *buffer, size_t size,
                                       int *error) {
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (groups[i].number == number) return give(i, entry, buffer, size, error);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_silent_initgroups_dyn(const char *user, gid_t skipped, long *start, long *size,
                                           gid_t **list, long limit, int *error) {
  static const gid_t of_carol[] = { 4600, 4602, 4605 };
  (void)skipped, (void)limit;
  if (strcmp(user, "carol") != 0) return NSS_STATUS_NOTFOUND;
  for (size_t i = 0; i < sizeof of_carol / sizeof *of_carol; i++) {
    if (*start == *size) {
      gid_t *larger = realloc(*list, (size_t)(*size * 2) * sizeof **list);
      if (larger == NULL) {
        *error = ENOMEM;
        return NSS_STATUS_TRYAGAIN;
      }
      *list = larger;
      *size *= 2;
    }
    (*list)[(*start)++] = of_carol[i];
  }
  return NSS_STATUS_SUCCESS;
}
