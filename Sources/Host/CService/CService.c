#include "CService.h"

#include <dlfcn.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

/* Here and not in the header: Swift's importer does not set _GNU_SOURCE. */

int service_peer(int connection, service_sender *peer) {
  struct { int32_t process; uint32_t user, group; } found;
  socklen_t size = sizeof found;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &found, &size) < 0) return -errno;
  *peer = (service_sender){ found.process, found.user };
  return 0;
}

int service_accept(int listener, service_sender *peer) {
  int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (made < 0) return -errno;
  int result = service_peer(made, peer);
  if (result == 0) result = service_pass_credentials(made);
  if (result == 0) return made;
  close(made);
  return result;
}

int service_spawn(const char *program, int connection) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t how;
  sigset_t none, all;
  char *words[] = { (char *)"sallyport-session", NULL };
  char *environment[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
  pid_t child = 0;
  sigemptyset(&none);
  sigfillset(&all);
  int error = posix_spawn_file_actions_init(&actions);
  if (error != 0) return -error;
  if ((error = posix_spawnattr_init(&how)) == 0) {
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID;
    /* dup2 also clears FD_CLOEXEC, where both are the same number too. */
    if ((error = posix_spawn_file_actions_adddup2(&actions, connection, 3)) == 0 &&
        (error = posix_spawn_file_actions_addclosefrom_np(&actions, 4)) == 0 &&
        (error = posix_spawnattr_setflags(&how, flags)) == 0 &&
        (error = posix_spawnattr_setsigmask(&how, &none)) == 0 &&
        (error = posix_spawnattr_setsigdefault(&how, &all)) == 0)
      error = posix_spawn(&child, program, &actions, &how, words, environment);
    (void)posix_spawnattr_destroy(&how);
  }
  (void)posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : -error;
}

int service_read_options(int count, char *const *words, bool *sessions, const char **program) {
  static const struct option known[] = {
    { "sessions", no_argument, NULL, 's' },
    { "session-program", required_argument, NULL, 'p' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
  };
  int one = 0;
  while (one != '?' && (one = getopt_long(count, words, "h", known, NULL)) != -1) {
    if (one == 'h') return 1;
    if (one == 's') *sessions = true;
    if (one == 'p') *program = optarg;
  }
  if (one == -1 && optind == count) return 0;
  if (one == -1) fprintf(stderr, "%s: no operand is taken: '%s'\n", words[0], words[optind]);
  fprintf(stderr, "Try '%s --help'.\n", words[0]);
  return -EINVAL;
}

/* Swift's Glibc names hypotf(3), which has a new version in glibc 2.35; nothing calls it. With one of
 * their own, which they do not export, the programs run on glibc 2.34. */
__attribute__((visibility("hidden"))) float hypotf(float x, float y) {
  return isinf(x) || isinf(y) ? INFINITY : (float)sqrt((double)x * x + (double)y * y);
}

static const char *log_name = "";
static int log_options;

void service_open_log(const char *name, int options) {
  log_name = name;
  log_options = options;
  openlog(name, options, LOG_AUTHPRIV);
}

void service_log(int level, const char *text) {
  static _Atomic uint64_t silent_until;
  char start[128];
  if (sys_monotonic() < silent_until) return;
  const char *form = log_options & LOG_PID ? "<%d>%.64s[%d]: " : "<%d>%.64s: ";
  (void)snprintf(start, sizeof start, form, LOG_AUTHPRIV | level, log_name, (int)getpid());
  const int result = sys_log(start, text, false);
  if (result == -EAGAIN) silent_until = sys_monotonic() + 60000000000;
  /* A log that takes a stream, or none: it knows both. */
  else if (result != 0) syslog(LOG_AUTHPRIV | level, "%s", text);
}

typedef int (*audit_opens)(void);
typedef int (*audit_sends)(int, int, const char *_Nullable, const char *, const char *_Nullable,
                           unsigned int, const char *_Nullable, const char *_Nullable,
                           const char *_Nullable, int);

void service_audit(int type, const char *operation, const char *user, bool is_done) {
  void *library = dlopen("libaudit.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  const audit_opens opens = (audit_opens)dlsym(library, "audit_open");
  const audit_sends sends = (audit_sends)dlsym(library, "audit_log_acct_message");
  if (opens == NULL || sends == NULL) return;
  const int audit = opens();
  if (audit < 0) return;
  (void)sends(audit, type, NULL, operation, user, UINT_MAX, NULL, NULL, NULL, is_done);
  (void)close(audit);
}
