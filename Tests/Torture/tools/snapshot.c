/* What a host is: everything that a module must leave as it found it. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <linux/capability.h>
#include <locale.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;
static char *out;
static size_t used;

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...) {
  va_list words;
  if (used + 600 > SNAPSHOT) return;
  va_start(words, format);
  int size = vsnprintf(out + used, 600, format, words);
  va_end(words);
  used += size < 599 ? (size_t)size : 599;
  out[used++] = '\n';
  out[used] = 0;
}

static uint64_t hash(const void *data, size_t size) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return h;
}

static void signals(void) {
  struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } action;
  uint64_t mask = 0, pending = 0;
  stack_t stack;
  for (int number = 1; number <= 64; number++)
    if (syscall(SYS_rt_sigaction, number, NULL, &action, 8) == 0)
      line("handler of signal %d: %p, flags %lx, mask %lx", number, action.handler, action.flags,
           action.mask);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
  syscall(SYS_rt_sigpending, &pending, 8);
  line("blocked signals: %lx", mask);
  line("pending signals: %lx", pending);
  memset(&stack, 0, sizeof stack);
  sigaltstack(NULL, &stack);
  line("signal stack: %p %d", stack.ss_sp, stack.ss_flags);
}

static void users(void) {
  uid_t u[3];
  gid_t g[3], groups[64];
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct caps[2] = {{0}};
  syscall(SYS_getresuid, &u[0], &u[1], &u[2]);
  syscall(SYS_getresgid, &g[0], &g[1], &g[2]);
  line("users: %u %u %u %d", u[0], u[1], u[2], setfsuid((uid_t)-1));
  line("groups: %u %u %u %d", g[0], g[1], g[2], setfsgid((gid_t)-1));
  int count = getgroups(64, groups);
  size_t size = count < 0 ? 0 : (size_t)count * sizeof *groups;
  line("further groups: %d, %lx", count, hash(groups, size));
  syscall(SYS_capget, &head, caps);
  line("capabilities: %lx", hash(caps, sizeof caps));
}

static void descriptors(void) {
  struct stat s;
  for (int fd = 0; fd < 1024; fd++) {
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    int status = fcntl(fd, F_GETFL);
    if (fstat(fd, &s) != 0) memset(&s, 0, sizeof s);
    off_t at = S_ISREG(s.st_mode) ? lseek(fd, 0, SEEK_CUR) : 0;
    line("descriptor %d: flags %d %o, device %lx, inode %lu, at %ld", fd, flags, status, s.st_dev,
         s.st_ino, (long)at);
  }
}

static void limits(void) {
  struct rlimit limit;
  struct itimerval timer;
  for (int which = 0; which < RLIM_NLIMITS; which++)
    if (getrlimit((__rlimit_resource_t)which, &limit) == 0)
      line("limit %d: %lu %lu", which, limit.rlim_cur, limit.rlim_max);
  for (int which = 0; which < 3; which++)
    if (getitimer((__itimer_which_t)which, &timer) == 0)
      line("timer %d: every %ld.%06ld", which, timer.it_interval.tv_sec, timer.it_interval.tv_usec);
}

static void process(void) {
  char text[256] = "";
  mode_t mask = umask(0);
  umask(mask);
  int type;
  line("umask: %o", mask);
  line("directory: %s", syscall(SYS_getcwd, text, sizeof text) > 0 ? text : "none");
  line("dumpable: %d", prctl(PR_GET_DUMPABLE));
  line("no new privileges: %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  prctl(PR_GET_NAME, text);
  line("name: %.16s", text);
  line("schedule: %d, nice %d", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &type);
  pthread_setcancelstate(type, NULL);
  line("may be cancelled: %d", type);
  line("rounding: %d", fegetround()); /* libpam itself computes its delay in float */
}

static void library(void) {
  line("environment: %p", (void *)environ);
  for (int i = 0; environ != NULL && environ[i] != NULL; i++)
    line("variable %d: %p %lx %.40s", i, (void *)environ[i], hash(environ[i], strlen(environ[i])),
         environ[i]);
  line("locale: %s, of the thread: %p", setlocale(LC_ALL, NULL), (void *)uselocale((locale_t)0));
  line("OpenSSL's errors: first %lx, last %lx", ERR_peek_error(), ERR_peek_last_error());
}

void take_snapshot(char *text) {
  int before = errno;
  out = text;
  used = 0;
  line("errno: %d", before);
  signals();
  users();
  descriptors();
  limits();
  process();
  library();
  errno = before;
}
