#include "CService.h"

/* Here and not in the header: Swift's importer does not set _GNU_SOURCE. */

int service_accept(int listener, service_sender *peer) {
  struct { int32_t process; uint32_t user, group; } found;
  socklen_t size = sizeof found;
  int on = 1;
  int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (made < 0) return -errno;
  if (getsockopt(made, SOL_SOCKET, SO_PEERCRED, &found, &size) < 0 ||
      setsockopt(made, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0) {
    int error = errno;
    close(made);
    return -error;
  }
  *peer = (service_sender){ found.process, found.user };
  return made;
}
