/* The command's side of the system: a file of others that is put in the place of another in one
   step. Every function gives 0 or errno where nothing else is said. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Terminal.h"

#pragma clang assume_nonnull begin

/* The path without links, in at least PATH_MAX bytes; what does not exist stays as it is. */
static inline int swap_resolve(const char *path, char *resolved) {
  if (realpath(path, resolved) != NULL) return 0;
  if (errno != ENOENT || strlen(path) >= PATH_MAX) return errno;
  strcpy(resolved, path);
  return 0;
}

/* A descriptor of the directory, locked against others who do the same, or minus errno. */
static inline int swap_lock(const char *directory) {
  int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -errno;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  int problem = errno;
  close(descriptor);
  return -problem;
}

static inline void swap_unlock(int descriptor) { close(descriptor); }

static inline int swap_sync(int directory) { return fsync(directory) == 0 ? 0 : errno; }

static inline int swap_remove(const char *path) { return unlink(path) == 0 ? 0 : errno; }

/* Owner, group and mode of `like`; root's, or the caller's, and readable by all without one. */
static inline int swap_dress(int descriptor, const char *_Nullable like) {
  struct stat facts;
  if (like == NULL) return fchmod(descriptor, 0644) == 0 ? 0 : errno;
  if (stat(like, &facts) != 0) return errno;
  if (fchown(descriptor, facts.st_uid, facts.st_gid) != 0) return errno;
  return fchmod(descriptor, facts.st_mode & 07777) == 0 ? 0 : errno;
}

/* Writes the bytes to `temporary`, beside `path`, and moves it there: over what stood there, or
   with `fresh` only where nothing does (EEXIST). A `temporary` that is left over is replaced. */
static inline int swap_in(const char *temporary, const char *path, bool fresh,
                          const char *_Nullable like, const void *bytes, size_t count) {
  if (unlink(temporary) != 0 && errno != ENOENT) return errno;
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int problem = output_all(descriptor, bytes, count);
  if (problem == 0) problem = swap_dress(descriptor, like);
  if (problem == 0 && fsync(descriptor) != 0) problem = errno;
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0 && fresh && link(temporary, path) != 0) problem = errno;
  if (problem == 0 && !fresh && rename(temporary, path) != 0) problem = errno;
  if (problem != 0 || fresh) unlink(temporary);
  return problem;
}

#pragma clang assume_nonnull end
