/* A name service that finds accounts by name and by number, and lists none, as sssd does: those of
 * /etc/passwd.hidden. A name with "@corp" behind it is another spelling of the one before. It finds the
 * groups of /etc/group.hidden by name, and has no list of anybody's groups. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

static enum nss_status look(const char *name, uid_t number, struct passwd *entry, char *buffer,
                            size_t size, int *error) {
  size_t length = name == NULL ? 0 : strlen(name);
  if (length > 5 && strcmp(name + length - 5, "@corp") == 0) length -= 5;
  FILE *file = fopen("/etc/passwd.hidden", "re");
  struct passwd *found = NULL;
  while (file != NULL && (*error = fgetpwent_r(file, entry, buffer, size, &found)) == 0)
    if (name == NULL ? found->pw_uid == number
                     : strncmp(found->pw_name, name, length) == 0 && found->pw_name[length] == 0)
      break;
  if (file != NULL) fclose(file);
  if (file != NULL && *error == ERANGE) return NSS_STATUS_TRYAGAIN;
  return file != NULL && *error == 0 ? NSS_STATUS_SUCCESS : NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_hidden_getpwnam_r(const char *name, struct passwd *entry, char *buffer,
                                       size_t size, int *error) {
  return look(name, 0, entry, buffer, size, error);
}

enum nss_status _nss_hidden_getpwuid_r(uid_t number, struct passwd *entry, char *buffer,
                                       size_t size, int *error) {
  return look(NULL, number, entry, buffer, size, error);
}

enum nss_status _nss_hidden_getgrnam_r(const char *name, struct group *entry, char *buffer,
                                       size_t size, int *error) {
  FILE *file = fopen("/etc/group.hidden", "re");
  struct group *found = NULL;
  int result = ENOENT;
  while (file != NULL && (result = fgetgrent_r(file, entry, buffer, size, &found)) == 0)
    if (strcmp(found->gr_name, name) == 0) break;
  if (file != NULL) fclose(file);
  *error = result;
  if (result == ERANGE) return NSS_STATUS_TRYAGAIN;
  return result == 0 ? NSS_STATUS_SUCCESS : NSS_STATUS_NOTFOUND;
}
