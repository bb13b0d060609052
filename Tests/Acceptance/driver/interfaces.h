/* The addresses of this machine, as a test sets them. */
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static _Thread_local int is_to_itself; /* what was asked for last is an address of this machine */

static int is_about_routes(int line) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return getenv("INTERFACES") != NULL
      && getsockopt(line, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK;
}

/* The program's own symbols come before libc's: INTERFACES is the one address of this machine; where
 * it is none, the kernel cannot be asked. */
ssize_t send(int line, const void *bytes, size_t count, int flags) {
  if (!is_about_routes(line)) {
    ssize_t (*next)(int, const void *, size_t, int) =
        (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    return next(line, bytes, count, flags);
  }
  unsigned char own[16];
  const char *text = getenv("INTERFACES");
  const size_t size = strchr(text, ':') != NULL ? 16 : 4;
  if (inet_pton(size == 16 ? AF_INET6 : AF_INET, text, own) != 1) return errno = EMFILE, -1;
  is_to_itself = memcmp((const char *)bytes + count - size, own, size) == 0;
  return (ssize_t)count;
}

ssize_t recv(int line, void *bytes, size_t count, int flags) {
  if (!is_about_routes(line)) {
    ssize_t (*next)(int, void *, size_t, int) =
        (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    return next(line, bytes, count, flags);
  }
  struct { struct nlmsghdr head; struct rtmsg route; } answer = {
    .head = {.nlmsg_len = sizeof answer, .nlmsg_type = RTM_NEWROUTE},
    .route = {.rtm_type = is_to_itself ? RTN_LOCAL : RTN_UNICAST},
  };
  memcpy(bytes, &answer, sizeof answer);
  return sizeof answer;
}
