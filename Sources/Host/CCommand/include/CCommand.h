/* Functions of the kernel and the C library that the command needs and Swift cannot call: variadic
   functions, macros, and what glibc declares only with _GNU_SOURCE. They decide nothing. */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <locale.h>
#include <nss.h>
#include <poll.h>
#include <shadow.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* -- This process */

/* What the process was started with, its own name first. Swift's CommandLine reads /proc, and has
   nothing in a root directory without it. */
int process_argument_count(void);

/* One of them; NULL behind the last. */
const char *_Nullable process_argument(int index);

/* O_PATH of open(2): finds a file without opening it. */
static const int32_t open_path_only = 010000000;

/* setfsuid(2): the user for file access, of this thread alone. Returns the one before; -1 changes
   nothing. */
static inline uint32_t rights_set_user(uint32_t user) { return (uint32_t)syscall(SYS_setfsuid, user); }

static inline uint32_t rights_set_group(uint32_t group) {
  return (uint32_t)syscall(SYS_setfsgid, group);
}

/* setgroups(2), of this thread alone: the C library would change all threads. 0 or errno. */
static inline int rights_set_groups(size_t count, const gid_t *_Nullable groups) {
  return syscall(SYS_setgroups, count, groups) == 0 ? 0 : errno;
}

/* -- Signals are read from a descriptor, only while the command waits, so that it needs no handler
   and is never interrupted halfway. */

/* Blocks the signals that users send to end a command, and returns a descriptor to read them from;
   -1 on failure, when they are not blocked. */
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

/* Returns the number of a signal that has arrived, or 0. */
static inline int signals_take(int descriptor) {
  struct signalfd_siginfo info;
  if (descriptor < 0) return 0;
  return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Waits until `input` can be read or has ended, or until a signal arrives. 0 or errno. */
static inline int signals_wait(int descriptor, int input) {
  struct pollfd both[2] = {{input, POLLIN, 0}, {descriptor, POLLIN, 0}};
  while (poll(both, 2, -1) < 0) {
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
  return 0;
}

/* -- Terminal */

/* Sets columns and lines; returns false if they are unknown. */
static inline bool terminal_size(int descriptor, int *columns, int *lines) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return false;
  *columns = size.ws_col;
  *lines = size.ws_row;
  return size.ws_col > 0 && size.ws_row > 0;
}

/* Turns the echo of typed characters on or off; does nothing if `descriptor` is not a terminal. */
static inline void terminal_echo(int descriptor, bool on) {
  struct termios mode;
  if (tcgetattr(descriptor, &mode) != 0) return;
  mode.c_lflag = on ? mode.c_lflag | ECHO : mode.c_lflag & ~(tcflag_t)ECHO;
  tcsetattr(descriptor, TCSADRAIN, &mode);
}

/* Whether the locale of the user has UTF-8. */
static inline bool locale_is_utf8(void) {
  if (setlocale(LC_CTYPE, "") == NULL) return false;
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* -- What doctor examines */

/* statx(2) of a path, with the birth time if the file system records it; follows symbolic links if
   `follow` is set. 0 or errno. */
static inline int inspect_file(const char *path, bool follow, struct statx *found) {
  int flags = follow ? 0 : 0x100; /* AT_SYMLINK_NOFOLLOW */
  unsigned wanted = STATX_BASIC_STATS | STATX_BTIME;
  return syscall(SYS_statx, AT_FDCWD, path, flags, wanted, found) == 0 ? 0 : errno;
}

/* The file system that holds `path`. 0 or errno. */
static inline int inspect_disk(const char *path, struct statfs *found) {
  return statfs(path, found) == 0 ? 0 : errno;
}

/* A file in memory, close-on-exec, gone with its last descriptor; `name` is for people. The descriptor,
   or -1 with errno. */
static inline int memory_file(const char *name) {
  return (int)syscall(SYS_memfd_create, name, 1U /* MFD_CLOEXEC */);
}

/* SELinux's label of `path`, with its NUL: the number of bytes, or a negative errno. */
static inline int64_t inspect_label(const char *path, void *_Nullable label, size_t size) {
  ssize_t length = getxattr(path, "security.selinux", label, size);
  return length < 0 ? -errno : length;
}

/* Whether btrfs writes an open file in place: 1, 0, or a negative errno. */
static inline int inspect_no_copy_on_write(int descriptor) {
  int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return -errno;
  return (flags & FS_NOCOW_FL) != 0;
}

/* Whether the kernel considers its clock synchronized: 1, 0, or a negative errno. */
static inline int inspect_clock(void) {
  struct timex clock;
  memset(&clock, 0, sizeof clock);
  if (adjtimex(&clock) < 0) return -errno;
  return (clock.status & STA_UNSYNC) == 0;
}

/* Of which sources this process asks names from now on, as a line of nsswitch.conf(5). */
static inline void names_ask(const char *database, const char *sources) {
  (void)__nss_configure_lookup(database, sources);
}

/* A pipe with the close-on-exec flag. 0 or errno. */
static inline int pipe_open(int *ends) {
  return syscall(SYS_pipe2, ends, O_CLOEXEC) != 0 ? errno : 0;
}

/* POSIX_SPAWN_SETSID of glibc and musl: the child is in a session of its own. */
static const int16_t spawn_in_own_session = 0x80;

/* Starts a child that loads a library as libpam would, looks up a function in it, and writes the
   reason to `reason` if that fails. Returns its process ID, or a negative errno. Swift has no
   fork. */
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
