/* Sockets of this machine. Results as in CSystem.h; each is one call, interrupted or not. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* Never 0, 1 or 2, which a host may have closed: what anybody prints would go to the service. */
static inline int sys_socket_of(int kind) {
  int made = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
  if (made < 0) return -errno;
  if (made > 2) return made;
  int above = fcntl(made, F_DUPFD_CLOEXEC, 3);
  int error = errno == EINVAL ? EMFILE : errno; /* EINVAL: the limit is 3 or less */
  close(made);
  return above < 0 ? -error : above;
}

/* One that carries packets. */
static inline int sys_socket(void) { return sys_socket_of(SOCK_SEQPACKET); }

/* How long a call of that direction, or connect, blocks. Not 0, which would be for ever. */
static inline int sys_set_time(int descriptor, int direction, int64_t microseconds) {
  struct timeval time = { .tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000 };
  return setsockopt(descriptor, SOL_SOCKET, direction, &time, sizeof time) < 0 ? -errno : 0;
}

static inline int sys_connect(int descriptor, const void *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  size_t length = strnlen(path, sizeof address.sun_path);
  if (length == sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, length);
  const void *any = &address;
  return connect(descriptor, any, sizeof address) < 0 ? -errno : 0;
}

/* The effective uid of the listener, when it began to listen. */
static inline int sys_listener(int descriptor, uint32_t *user) {
  struct { int32_t process; uint32_t user, group; } peer = { 0, UINT32_MAX, UINT32_MAX };
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -errno;
  *user = peer.user;
  return 0;
}

static inline int64_t sys_send(int descriptor, const void *_Nullable bytes, size_t count) {
  ssize_t done = send(descriptor, bytes, count, MSG_NOSIGNAL);
  return done < 0 ? -errno : done;
}

/* One line to the log of the system, begun as syslog(3) begins it. `as_root`: under the uid 0, for
   a process with root's rights that somebody else has started. It waits for three seconds, where
   syslog(3) waits for ever: 0, -EAGAIN where the log's daemon has stopped, or another errno. */
int sys_log(const char *start, const char *line, _Bool as_root);

/* Waits for a packet and leaves it there: its size, 0 at the end. */
static inline int64_t sys_packet_size(int descriptor) {
  char none;
  ssize_t size = recv(descriptor, &none, 0, MSG_PEEK | MSG_TRUNC);
  return size < 0 ? -errno : size;
}

/* The packet that is there, as much of it as fits. */
static inline int64_t sys_receive(int descriptor, void *bytes, size_t count) {
  ssize_t done = recv(descriptor, bytes, count, MSG_DONTWAIT);
  return done < 0 ? -errno : done;
}

#pragma clang assume_nonnull end
