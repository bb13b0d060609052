/* What the command needs of the kernel and the C library and Swift cannot call by itself: variadic
   calls, macros, and what glibc declares for _GNU_SOURCE alone. No shim decides anything. */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <linux/fs.h>
#include <linux/stat.h>
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* -- This process */

/* Neither a core file nor another process of the user may hold what this one has in memory.
   0 or errno. */
static inline int process_harden(void) {
  struct rlimit none = {0, 0};
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  return setrlimit(RLIMIT_CORE, &none) == 0 ? 0 : errno;
}

/* Whose rights count for files, of this thread alone: sets them and gives those before; -1 sets
   nothing. */
static inline uint32_t rights_set_user(uint32_t user) { return (uint32_t)syscall(SYS_setfsuid, user); }

static inline uint32_t rights_set_group(uint32_t group) {
  return (uint32_t)syscall(SYS_setfsgid, group);
}

/* The groups of this thread alone. 0 or errno. */
static inline int rights_set_groups(size_t count, const gid_t *_Nullable groups) {
  return syscall(SYS_setgroups, count, groups) == 0 ? 0 : errno;
}

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

/* -- What doctor looks at */

/* statx(2) of a path, with the time of birth where the file system tells; links are followed where
   `follow`. 0 or errno. */
static inline int inspect_file(const char *path, bool follow, struct statx *found) {
  int flags = follow ? 0 : 0x100; /* AT_SYMLINK_NOFOLLOW */
  unsigned wanted = STATX_BASIC_STATS | STATX_BTIME;
  return syscall(SYS_statx, AT_FDCWD, path, flags, wanted, found) == 0 ? 0 : errno;
}

/* The file system that holds `path`. 0 or errno. */
static inline int inspect_disk(const char *path, struct statfs *found) {
  return statfs(path, found) == 0 ? 0 : errno;
}

/* Whether an open file is written in place on btrfs: 1, 0, or minus errno. */
static inline int inspect_no_copy_on_write(int descriptor) {
  int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return -errno;
  return (flags & FS_NOCOW_FL) != 0;
}

/* Whether the kernel takes its clock for synchronised: 1, 0, or minus errno. */
static inline int inspect_clock(void) {
  struct timex clock;
  memset(&clock, 0, sizeof clock);
  if (adjtimex(&clock) < 0) return -errno;
  return (clock.status & STA_UNSYNC) == 0;
}

/* A pipe that no program inherits by itself. 0 or errno. */
static inline int pipe_open(int *ends) {
  return syscall(SYS_pipe2, ends, O_CLOEXEC) != 0 ? errno : 0;
}

/* A child of this process that loads a library as libpam would, looks for a function in it, and
   writes to `reason` why that does not go: its number, or minus errno. Swift has no fork. */
static inline int load_in_child(const char *path, const char *function, int reason) {
  pid_t child = fork();
  if (child != 0) return child > 0 ? child : -errno;
  int nowhere = open("/dev/null", O_RDWR);
  for (int n = 0; n < 3; n++) (void)dup2(nowhere, n);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *text = library == NULL ? dlerror() : NULL;
  if (library != NULL && dlsym(library, function) == NULL) text = "it is no PAM module";
  if (text != NULL) (void)!write(reason, text, strlen(text));
  _exit(text != NULL);
}

#pragma clang assume_nonnull end
