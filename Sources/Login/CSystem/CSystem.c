#include "CSystem.h"

/* Not in the header, as they need _GNU_SOURCE, which Swift's importer does not set. */

/* musl has no names for them; its strerror(3) changes nothing. */
#ifdef __GLIBC__
const char *sys_errno_name(int number) { return strerrorname_np(number); }

const char *sys_errno_text(int number) { return strerrordesc_np(number); }
#else
const char *sys_errno_name(int number) { return NULL; }

const char *sys_errno_text(int number) { return strerror(number); }
#endif

int sys_log(const char *start, const char *line, _Bool as_root) {
  const struct sockaddr_un log = {AF_UNIX, "/dev/log"};
  const struct ucred root = {getpid(), 0, getegid()};
  union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof root)]; } control = {
    .head = {CMSG_LEN(sizeof root), SOL_SOCKET, SCM_CREDENTIALS}};
  memcpy(CMSG_DATA(&control.head), &root, sizeof root);
  struct iovec parts[] = {{(void *)start, strlen(start)}, {(void *)line, strlen(line)}};
  const struct msghdr message = {.msg_name = (void *)&log, .msg_namelen = sizeof log,
                                 .msg_iov = parts, .msg_iovlen = 2,
                                 .msg_control = as_root ? &control : NULL,
                                 .msg_controllen = as_root ? sizeof control : 0};
  int made = sys_socket_of(SOCK_DGRAM), result = 0, tries = 0;
  if (made < 0) return made;
  (void)sys_set_time(made, SO_SNDTIMEO, 3000000);
  do result = sendmsg(made, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
  while (result == -EINTR && ++tries < 100);
  close(made);
  return result;
}
