/* The addresses of this machine, as a test sets them. */
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

/* The program's own symbol comes before libc's: INTERFACES is the address of one of this machine's two interfaces; else they cannot be had.
 * freeifaddrs frees one block, as libc makes it. */
int getifaddrs(struct ifaddrs **all) {
  const char *text = getenv("INTERFACES");
  if (text == NULL) return ((int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs"))(all);
  struct { struct ifaddrs all[2]; struct sockaddr_storage own; } *made = calloc(1, sizeof *made);
  int kind = strchr(text, ':') != NULL ? AF_INET6 : AF_INET, start = kind == AF_INET ? 4 : 8;
  made->own.ss_family = (sa_family_t)kind, made->all[1].ifa_addr = (struct sockaddr *)&made->own;
  *all = made->all, (*all)->ifa_next = &made->all[1];
  if (inet_pton(kind, text, (char *)&made->own + start) == 1) return 0;
  return free(made), errno = EMFILE, -1;
}
