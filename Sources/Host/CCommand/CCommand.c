#include "CCommand.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>

static int count;
static char **words;

/* glibc passes main's arguments to constructors. */
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
  count = argc;
  words = argv;
}

int process_argument_count(void) { return count; }

const char *process_argument(int index) { return index < count ? words[index] : NULL; }

void command_log(int priority, const char *text) {
  static bool is_full;
  static const struct timeval most = {3, 0};
  struct sockaddr_un log = {AF_UNIX, "/dev/log"};
  char start[64];
  int length = snprintf(start, sizeof start, "<%d>sallyport: ", LOG_AUTHPRIV | priority);
  struct iovec parts[] = {{start, (size_t)length}, {(void *)text, strlen(text)}};
  const struct msghdr line = {.msg_name = &log, .msg_namelen = sizeof log, .msg_iov = parts,
                              .msg_iovlen = 2};
  if (is_full) return;
  int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), tries = 0;
  if (made < 0) return;
  ssize_t sent = -1;
  (void)setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  do sent = sendmsg(made, &line, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR && ++tries < 100);
  is_full = sent < 0 && errno == EAGAIN;
  close(made);
}
