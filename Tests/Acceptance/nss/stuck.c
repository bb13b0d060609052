/* A name service that does not answer, as a directory that takes connections and says nothing: about
 * names that begin with `stuck`, and about uids from 64000 on, as long as there is the FIFO
 * /run/stuck; a process that opens that to write lets them go. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static enum nss_status wait_for_it(int *error) {
  int fifo = open("/run/stuck", O_RDONLY | O_CLOEXEC);
  if (fifo >= 0) close(fifo);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_stuck_getpwnam_r(const char *name, struct passwd *entry, char *buffer,
                                      size_t size, int *error) {
  (void)entry, (void)buffer, (void)size;
  if (strncmp(name, "stuck", 5) == 0) return wait_for_it(error);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_stuck_getpwuid_r(uid_t user, struct passwd *entry, char *buffer, size_t size,
                                      int *error) {
  (void)entry, (void)buffer, (void)size;
  if (user >= 64000 && user < 65000) return wait_for_it(error);
  *error = ENOENT;
  return NSS_STATUS_NOTFOUND;
}
