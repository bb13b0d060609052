/* A name service that folds spellings: ALICE, Alice and alice@corp are alice, as directories of
 * companies do it. It finds in /etc/passwd and /etc/shadow what "files" does not find as spelt. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <shadow.h>
#include <stdio.h>
#include <string.h>

/* False if the name does not fit. */
static int fold(const char *name, char *out, size_t size) {
  size_t length = strcspn(name, "@");
  if (length >= size) return 0;
  for (size_t i = 0; i < length; i++) out[i] = (char)tolower((unsigned char)name[i]);
  out[length] = 0;
  return 1;
}

enum nss_status _nss_fold_getpwnam_r(const char *name, struct passwd *entry, char *buffer,
                                     size_t size, int *error) {
  char folded[256];
  struct passwd *found = NULL;
  FILE *file = fold(name, folded, sizeof folded) ? fopen("/etc/passwd", "re") : NULL;
  while (file != NULL && (*error = fgetpwent_r(file, entry, buffer, size, &found)) == 0)
    if (strcmp(found->pw_name, folded) == 0) break;
  if (file != NULL) fclose(file);
  if (file != NULL && *error == ERANGE) return NSS_STATUS_TRYAGAIN;
  return file != NULL && *error == 0 ? NSS_STATUS_SUCCESS : NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_fold_getspnam_r(const char *name, struct spwd *entry, char *buffer,
                                     size_t size, int *error) {
  char folded[256];
  struct spwd *found = NULL;
  FILE *file = fold(name, folded, sizeof folded) ? fopen("/etc/shadow", "re") : NULL;
  while (file != NULL && (*error = fgetspent_r(file, entry, buffer, size, &found)) == 0)
    if (strcmp(found->sp_namp, folded) == 0) break;
  if (file != NULL) fclose(file);
  if (file != NULL && *error == ERANGE) return NSS_STATUS_TRYAGAIN;
  return file != NULL && *error == 0 ? NSS_STATUS_SUCCESS : NSS_STATUS_NOTFOUND;
}
