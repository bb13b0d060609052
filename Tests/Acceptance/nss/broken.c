/* A name service whose groups cannot be had, as those of a directory that is down. The groups that
 * are asked for by name say how it fails: `again…` with TRYAGAIN, `interrupted` with EINTR and `huge`
 * with "the buffer is too small" however often they are asked for, all others with UNAVAIL. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <string.h>

enum nss_status _nss_broken_getgrnam_r(const char *name, struct group *entry, char *buffer,
                                       size_t size, int *error) {
  (void)entry, (void)buffer, (void)size;
  int again = strncmp(name, "again", 5) == 0;
  if (strcmp(name, "interrupted") == 0 || strcmp(name, "huge") == 0) {
    *error = *name == 'h' ? ERANGE : EINTR;
    return NSS_STATUS_TRYAGAIN;
  }
  *error = again ? EAGAIN : ECONNREFUSED;
  return again ? NSS_STATUS_TRYAGAIN : NSS_STATUS_UNAVAIL;
}
