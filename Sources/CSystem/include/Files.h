/* Files that people name and edit, and the writing of answers: the command's side. The module uses
   nothing of it. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* Reads what a descriptor has, `capacity` bytes at most. 0 or errno. */
static inline int file_read_open(int descriptor, void *bytes, size_t capacity, size_t *count) {
  while (*count < capacity) {
    ssize_t got = read(descriptor, (char *)bytes + *count, capacity - *count);
    if (got == 0) return 0;
    if (got > 0) *count += (size_t)got;
    else if (errno != EINTR) return errno;
  }
  return 0;
}

enum { FILE_IS_NOT_REGULAR = -1, FILE_IS_TOO_LONG = -2 };

/* Reads a regular file of at most `capacity` bytes, whose last name is not a link. 0, errno, or one
   of the two above; `*count` bytes are there then. */
static inline int file_read(const char *path, void *bytes, size_t capacity, size_t *count) {
  *count = 0;
  int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return errno;
  struct stat facts;
  int problem = 0;
  if (fstat(descriptor, &facts) != 0) problem = errno;
  else if (!S_ISREG(facts.st_mode)) problem = FILE_IS_NOT_REGULAR;
  else if (facts.st_size > (off_t)capacity) problem = FILE_IS_TOO_LONG;
  else problem = file_read_open(descriptor, bytes, capacity, count);
  close(descriptor);
  return problem;
}

/* All of it. 0 or errno. */
static inline int output_all(int descriptor, const void *bytes, size_t count) {
  const char *next = (const char *)bytes;
  while (count > 0) {
    ssize_t written = write(descriptor, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    next += written;
    count -= (size_t)written;
  }
  return 0;
}

static inline void file_remove(const char *path) { (void)unlink(path); }

/* Makes the names in the directory of `path` outlive a power cut. 0 or errno. */
static inline int file_sync_directory(const char *path) {
  char directory[4096];
  int length = snprintf(directory, sizeof directory, "%s", path);
  if (length < 0 || (size_t)length >= sizeof directory) return ENAMETOOLONG;
  char *slash = strrchr(directory, '/');
  if (slash != NULL) slash[slash == directory] = 0;
  int descriptor = open(slash != NULL ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int problem = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return problem;
}

/* Makes a file of these bytes, the caller's alone, where nothing has that name yet; on disk with its
   name when this returns. 0, or errno and no file. */
static inline int file_create(const char *path, const void *bytes, size_t count) {
  int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int problem = fchmod(descriptor, 0600) != 0 ? errno : 0;
  if (problem == 0) problem = output_all(descriptor, bytes, count);
  if (problem == 0 && fsync(descriptor) != 0) problem = errno;
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0) problem = file_sync_directory(path);
  if (problem != 0) unlink(path);
  return problem;
}

/* Puts a file of these bytes in the place of `path` in one step and for good, with the owner and
   the mode of what is there, but for others' right to write; a new file is the caller's, 0644.
   0 or errno. */
static inline int file_replace(const char *path, const void *bytes, size_t count) {
  char made[4096];
  int length = snprintf(made, sizeof made, "%s.new-%d", path, (int)getpid());
  if (length < 0 || (size_t)length >= sizeof made) return ENAMETOOLONG;
  struct stat old;
  bool is_there = lstat(path, &old) == 0 && S_ISREG(old.st_mode);
  int descriptor = open(made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int problem = output_all(descriptor, bytes, count);
  if (problem == 0 && is_there && fchown(descriptor, old.st_uid, old.st_gid) != 0) problem = errno;
  mode_t mode = is_there ? old.st_mode & 0777 & ~(mode_t)022 : 0644;
  if (problem == 0 && fchmod(descriptor, mode) != 0) problem = errno;
  if (problem == 0 && fsync(descriptor) != 0) problem = errno;
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0 && rename(made, path) != 0) problem = errno;
  if (problem != 0) unlink(made);
  return problem != 0 ? problem : file_sync_directory(path);
}

/* -- Editing */

/* Makes and locks a file of that name, the caller's alone: a descriptor, or minus errno (-EAGAIN:
   somebody else has it). Whoever has it removes the name before it is closed. */
static inline int edit_lock(const char *path) {
  for (;;) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (descriptor < 0) return -errno;
    struct stat ours, named;
    int problem = flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (problem == 0 && fstat(descriptor, &ours) != 0) problem = errno;
    bool is_named = problem == 0 && lstat(path, &named) == 0 && ours.st_ino == named.st_ino &&
                    ours.st_dev == named.st_dev;
    if (is_named) return descriptor;
    close(descriptor);
    if (problem != 0) return -problem;
  }
}

static inline void edit_unlock(const char *path, int descriptor) {
  unlink(path);
  close(descriptor);
}

/* Runs `command` as a shell does, with `path` behind it, and waits: the exit status, 128 + n after
   a signal, or minus errno. What the keyboard sends meanwhile is the editor's, as in system(3). */
static inline int edit_run(const char *command, const char *path) {
  char line[4096];
  int length = snprintf(line, sizeof line, "%s \"$1\"", command);
  if (length < 0 || (size_t)length >= sizeof line) return -ENAMETOOLONG;
  char *words[] = {(char *)"sh", (char *)"-c", line, (char *)"sh", (char *)path, NULL};
  extern char **environ;
  sigset_t none, keyboard;
  sigemptyset(&none);
  sigemptyset(&keyboard);
  sigaddset(&keyboard, SIGINT);
  sigaddset(&keyboard, SIGQUIT);
  struct sigaction ignoring = {.sa_handler = SIG_IGN}, interrupt, quit;
  posix_spawnattr_t how;
  pid_t child = -1;
  int status = 0;
  int problem = posix_spawnattr_init(&how);
  if (problem != 0) return -problem;
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigdefault(&how, &keyboard);
  posix_spawnattr_setsigmask(&how, &none);
  sigaction(SIGINT, &ignoring, &interrupt);
  sigaction(SIGQUIT, &ignoring, &quit);
  problem = posix_spawn(&child, "/bin/sh", NULL, &how, words, environ);
  while (problem == 0 && waitpid(child, &status, 0) < 0)
    if (errno != EINTR) problem = errno;
  sigaction(SIGINT, &interrupt, NULL);
  sigaction(SIGQUIT, &quit, NULL);
  posix_spawnattr_destroy(&how);
  if (problem != 0) return -problem;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether something has that name, a link that leads nowhere included. */
static inline bool file_is_there(const char *path) {
  struct stat facts;
  return lstat(path, &facts) == 0;
}

#pragma clang assume_nonnull end
