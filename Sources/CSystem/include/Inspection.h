/* What `sallyport doctor` looks at. Nothing is changed but a scratch file of its own. The module
   uses nothing of it. */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* -- Files */

struct inspected_file {
  uint32_t owner, mode; /* the twelve permission bits */
  uint64_t size, links;
  bool is_regular, is_directory;
  int64_t modified, born; /* seconds; `born` is 0 where the file system does not tell */
};

/* What a path is, links followed where `follow`. 0 or errno. */
static inline int inspect_file(const char *path, bool follow, struct inspected_file *file) {
  struct statx found;
  int flags = follow ? 0 : 0x100; /* AT_SYMLINK_NOFOLLOW */
  unsigned wanted = STATX_BASIC_STATS | STATX_BTIME;
  if (syscall(SYS_statx, AT_FDCWD, path, flags, wanted, &found) != 0) return errno;
  *file = (struct inspected_file){
    .owner = found.stx_uid,
    .mode = found.stx_mode & 07777u,
    .size = found.stx_size,
    .links = found.stx_nlink,
    .is_regular = S_ISREG(found.stx_mode),
    .is_directory = S_ISDIR(found.stx_mode),
    .modified = found.stx_mtime.tv_sec,
    .born = found.stx_mask & STATX_BTIME ? found.stx_btime.tv_sec : 0,
  };
  return 0;
}

/* The first `capacity` bytes of a regular file; links are followed. 0 or errno. */
static inline int inspect_read(const char *path, void *bytes, size_t capacity, size_t *count) {
  *count = 0;
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return errno;
  struct stat facts;
  int problem = fstat(descriptor, &facts) != 0 ? errno : S_ISREG(facts.st_mode) ? 0 : EINVAL;
  while (problem == 0 && *count < capacity) {
    ssize_t got = read(descriptor, (char *)bytes + *count, capacity - *count);
    if (got == 0) break;
    if (got > 0) *count += (size_t)got;
    else if (errno != EINTR) problem = errno;
  }
  close(descriptor);
  return problem;
}

/* The paths that match a shell pattern, sorted, each with a NUL at its end: how many bytes. */
static inline size_t inspect_glob(const char *pattern, char *names, size_t capacity) {
  glob_t found;
  size_t size = 0;
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t index = 0; index < found.gl_pathc; index++) {
    size_t length = strlen(found.gl_pathv[index]) + 1;
    if (size + length > capacity) break;
    memcpy(names + size, found.gl_pathv[index], length);
    size += length;
  }
  globfree(&found);
  return size;
}

struct inspected_disk {
  uint32_t type;
  bool is_read_only;
  uint64_t blocks, free_blocks, files, free_files; /* free: for others than root as well */
};

/* The file system that holds `path`. 0 or errno. */
static inline int inspect_disk(const char *path, struct inspected_disk *disk) {
  struct statfs found;
  if (statfs(path, &found) != 0) return errno;
  *disk = (struct inspected_disk){
    .type = (uint32_t)found.f_type,
    .is_read_only = (found.f_flags & 1) != 0,
    .blocks = found.f_blocks,
    .free_blocks = found.f_bavail,
    .files = found.f_files,
    .free_files = found.f_ffree,
  };
  return 0;
}

/* Whether a file is written in place on btrfs: 1, 0, or minus errno. */
static inline int inspect_no_copy_on_write(const char *path) {
  int flags = 0, descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return -errno;
  int result = ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0 ? -errno : (flags & FS_NOCOW_FL) != 0;
  close(descriptor);
  return result;
}

enum inspected_step { STEP_MAKE, STEP_FILL, STEP_LOCK, STEP_CHANGE, STEP_READ };

/* Makes a file as large as a login state, changes it in place as a login does, and removes it.
   0, or errno and the step that failed. */
static inline int inspect_writing(const char *path, enum inspected_step *step) {
  char page[4096], back[4096];
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int result = 0;
  memset(page, 0, sizeof page);
  *step = STEP_MAKE;
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  *step = STEP_FILL;
  for (off_t offset = 0; result == 0 && offset < 8192; offset += 4096) {
    errno = EIO;
    if (pwrite(file, page, sizeof page, offset) != sizeof page) result = errno;
  }
  if (result == 0 && fsync(file) != 0) result = errno;
  if (result == 0) {
    *step = STEP_LOCK;
    if (fcntl(file, 37 /* F_OFD_SETLK */, &whole) != 0) result = errno;
  }
  if (result == 0) {
    *step = STEP_CHANGE;
    memset(page, 0x5a, sizeof page);
    errno = EIO;
    if (pwrite(file, page, sizeof page, 4096) != sizeof page || fdatasync(file) != 0) result = errno;
  }
  if (result == 0) {
    *step = STEP_READ;
    errno = EIO;
    if (pread(file, back, sizeof back, 4096) != sizeof back) result = errno;
    else if (memcmp(page, back, sizeof page) != 0) result = EIO;
  }
  close(file);
  (void)unlink(path);
  return result;
}

/* -- Clock */

/* Whether the kernel takes its clock for synchronised: 1, 0, or minus errno. */
static inline int inspect_clock(void) {
  struct timex clock;
  memset(&clock, 0, sizeof clock);
  if (adjtimex(&clock) < 0) return -errno;
  return (clock.status & STA_UNSYNC) == 0;
}

/* -- Other programs */

static inline int64_t inspect_now(void) {
  struct timespec now = {0, 0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* A pipe that no program inherits by itself. 0 or errno. */
static inline int inspect_pipe(int *ends) {
  return syscall(SYS_pipe2, ends, O_CLOEXEC) != 0 ? errno : 0;
}

/* Reads from up to two pipes until both end, `deadline` or what is more than fits: that is read and
   dropped. False where the time was over. */
static inline bool inspect_drain(const int *ends, int count, char *_Nonnull const *_Nonnull texts,
                                 size_t capacity, size_t *lengths, int64_t deadline) {
  struct pollfd pipes[2];
  int open_ends = count;
  char waste[4096];
  for (int n = 0; n < count; n++) pipes[n] = (struct pollfd){ends[n], POLLIN, 0};
  while (open_ends > 0) {
    int64_t left = deadline - inspect_now();
    if (left <= 0) return false;
    if (poll(pipes, (nfds_t)count, (int)left) < 0 && errno != EINTR) return false;
    for (int n = 0; n < count; n++) {
      if (pipes[n].fd < 0 || pipes[n].revents == 0) continue;
      size_t room = capacity - lengths[n];
      ssize_t got = room > 0 ? read(pipes[n].fd, texts[n] + lengths[n], room)
                             : read(pipes[n].fd, waste, sizeof waste);
      if (got > 0 && room > 0) lengths[n] += (size_t)got;
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      pipes[n].fd = -1;
      open_ends--;
    }
  }
  return true;
}

/* Waits for a child, and ends it and its group where the deadline comes first. Its wait status, or
   -1. */
static inline int inspect_wait(pid_t child, int64_t deadline) {
  int status = 0;
  struct timespec pause = {0, 2000000};
  for (;;) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) return status;
    if (done < 0 && errno != EINTR) return -1;
    if (inspect_now() >= deadline) break;
    (void)nanosleep(&pause, NULL);
  }
  (void)kill(-child, SIGKILL);
  (void)kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }
  return -1;
}

struct inspected_run {
  int status; /* exit status; 128 + n after a signal; -1 where the time was over */
  size_t out, error; /* bytes */
};

/* Runs a program with a clean environment, no input and a bounded time. `words` are its path and
   arguments, each with a NUL at its end; both texts have room for `capacity`. 0 or errno. */
static inline int inspect_run(const char *words, size_t size, int milliseconds, char *out, char *error,
                              size_t capacity, struct inspected_run *run) {
  char *arguments[32], *const environment[] = {
    (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C", (char *)"TZ=UTC", NULL};
  int count = 0, outs[2], errors[2];
  for (const char *word = words; word < words + size && count < 31; word += strlen(word) + 1)
    arguments[count++] = (char *)word;
  arguments[count] = NULL;
  int problem = inspect_pipe(outs);
  if (problem != 0) return problem;
  problem = inspect_pipe(errors);
  if (problem != 0) {
    close(outs[0]);
    close(outs[1]);
    return problem;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, outs[1], 1);
  posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t child = -1;
  int64_t deadline = inspect_now() + milliseconds;
  problem = posix_spawn(&child, arguments[0], &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(outs[1]);
  close(errors[1]);
  if (problem == 0) {
    int ends[2] = {outs[0], errors[0]};
    char *texts[2] = {out, error};
    size_t lengths[2] = {0, 0};
    bool ended = inspect_drain(ends, 2, texts, capacity, lengths, deadline);
    int status = inspect_wait(child, ended ? deadline : 0);
    run->status = status < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run->out = lengths[0];
    run->error = lengths[1];
  }
  close(outs[0]);
  close(errors[0]);
  return problem;
}

/* Loads a library in a process of its own, as libpam would, and looks for a function in it. The
   length of the reason why that does not go, 0 where it does; minus errno. */
static inline int64_t inspect_loading(const char *path, const char *function, char *reason,
                                      size_t capacity) {
  int ends[2], problem = inspect_pipe(ends);
  if (problem != 0) return -problem;
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_RDWR);
    for (int n = 0; n < 3; n++) (void)dup2(nowhere, n);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = library == NULL ? dlerror() : NULL;
    if (library != NULL && dlsym(library, function) == NULL) text = "it is no PAM module";
    if (text != NULL) (void)!write(ends[1], text, strlen(text));
    _exit(text != NULL);
  }
  close(ends[1]);
  size_t length = 0;
  int64_t deadline = inspect_now() + 10000;
  if (child > 0) {
    bool ended = inspect_drain(ends, 1, &reason, capacity, &length, deadline);
    int status = inspect_wait(child, ended ? deadline : 0);
    if (length == 0 && status != 0)
      length = (size_t)snprintf(reason, capacity, "loading it ends the process (status %d)", status);
  }
  close(ends[0]);
  return child < 0 ? -EAGAIN : (int64_t)(length < capacity ? length : capacity);
}

#pragma clang assume_nonnull end
