/* The command's side of the system: terminal, signals, dates and locale.
   The module uses nothing of it. */
#pragma once

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "Files.h"

#pragma clang assume_nonnull begin

/* Neither a core file nor another process of the user may hold what this one has in memory.
   0 or errno. */
static inline int process_harden(void) {
  struct rlimit none = {0, 0};
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  return setrlimit(RLIMIT_CORE, &none) == 0 ? 0 : errno;
}

/* Closed standard descriptors lead to /dev/null, in the direction in which they are not used: so no
   file that is opened later gets their numbers and what is said to people, and what is said to
   nobody is still trouble. 0 or errno. */
static inline int process_open_standard(void) {
  for (int number = 0; number <= 2; number++) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number) return EBADF;
  }
  return 0;
}

static inline uint32_t process_effective_user(void) { return geteuid(); }

/* -- Signals: taken from a descriptor while the command waits, and at no other moment, so that no
   handler is needed and nothing is ever left half done. */

/* Blocks the signals that end a command from outside, and gives a descriptor to take them from;
   -1 if there is none (they are not blocked then). */
static inline int signals_open(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGQUIT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor >= 0 && sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

/* The number of a signal that has arrived, or 0. */
static inline int signals_take(int descriptor) {
  struct signalfd_siginfo info;
  if (descriptor < 0) return 0;
  return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Waits until `input` can be read or has ended, or a signal has arrived. 0 or errno. */
static inline int signals_wait(int descriptor, int input) {
  struct pollfd both[2] = {{input, POLLIN, 0}, {descriptor, POLLIN, 0}};
  while (poll(both, 2, -1) < 0) {
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
  return 0;
}

/* -- Terminal */

static inline bool terminal_is(int descriptor) { return isatty(descriptor) == 1; }

/* Columns and lines; false where that is unknown. */
static inline bool terminal_size(int descriptor, int *columns, int *lines) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return false;
  *columns = size.ws_col;
  *lines = size.ws_row;
  return size.ws_col > 0 && size.ws_row > 0;
}

/* Whether typed characters are shown; does nothing where `descriptor` is no terminal. */
static inline void terminal_echo(int descriptor, bool on) {
  struct termios mode;
  if (tcgetattr(descriptor, &mode) != 0) return;
  mode.c_lflag = on ? mode.c_lflag | ECHO : mode.c_lflag & ~(tcflag_t)ECHO;
  tcsetattr(descriptor, TCSADRAIN, &mode);
}

/* Whether the reader's locale writes UTF-8. */
static inline bool locale_is_utf8(void) {
  if (setlocale(LC_CTYPE, "") == NULL) return false;
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* -- Reading */

/* What is there, up to so many bytes: their number, 0 at the end, or minus errno. */
static inline int64_t input_some(int descriptor, void *bytes, size_t capacity) {
  ssize_t count;
  do count = read(descriptor, bytes, capacity);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

/* -- Dates */

struct date {
  int year, month, day, hour, minute, second;
};

/* A moment in the reader's time zone, or in UTC; false where the year does not fit. */
static inline bool date_of(int64_t seconds, bool utc, struct date *date) {
  struct tm fields;
  time_t time = (time_t)seconds;
  if ((utc ? gmtime_r(&time, &fields) : localtime_r(&time, &fields)) == NULL) return false;
  *date = (struct date){fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday,
                        fields.tm_hour,        fields.tm_min,     fields.tm_sec};
  return true;
}

/* -- Facts */

/* glibc declares these two for _GNU_SOURCE alone, which Swift does not define. */
extern const char *_Nullable strerrordesc_np(int number);
extern const char *_Nullable strerrorname_np(int number);

/* The text of an error number in English, and its name; "" where there is none. */
static inline const char *errno_text(int number) {
  const char *text = strerrordesc_np(number);
  return text != NULL ? text : "";
}

static inline const char *errno_name(int number) {
  const char *name = strerrorname_np(number);
  return name != NULL ? name : "";
}

/* The working directory's path, NUL-terminated; false where it has none. */
static inline bool working_directory(char *path, size_t capacity) {
  return getcwd(path, capacity) != NULL && path[0] == '/';
}

#pragma clang assume_nonnull end
