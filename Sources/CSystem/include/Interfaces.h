/* Questions of SallyportSystem about this machine's network. Results as in CSystem.h. */
#pragma once

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#pragma clang assume_nonnull begin

/* getifaddrs(3). 1 if an interface of this machine has the address (16 bytes, network order, IPv4
   as ::ffff:a.b.c.d), 0 if none has it, or a negative errno. */
static inline int sys_is_own_address(const void *address) {
  struct ifaddrs *all = NULL;
  int found = 0;
  errno = 0;
  if (getifaddrs(&all) != 0) return errno > 0 ? -errno : -EIO;
  for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
    unsigned char own[16] = {0};
    if (one->ifa_addr == NULL) continue;
    if (one->ifa_addr->sa_family == AF_INET6) {
      memcpy(own, &((const struct sockaddr_in6 *)(const void *)one->ifa_addr)->sin6_addr, 16);
    } else if (one->ifa_addr->sa_family == AF_INET) {
      own[10] = own[11] = 0xff;
      memcpy(own + 12, &((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr, 4);
    } else {
      continue;
    }
    found |= memcmp(own, address, sizeof own) == 0;
  }
  freeifaddrs(all);
  return found;
}

#pragma clang assume_nonnull end
