/* Locks on files and directories. Results as in CSystem.h. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>

#pragma clang assume_nonnull begin

#ifndef F_OFD_SETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

/* Takes a lock of this kind on a range of bytes, which need not exist. It belongs to the open file
   description. -EAGAIN if another lock conflicts. */
static inline int sys_lock(int descriptor, int kind, int64_t start, int64_t length) {
  struct flock range = {
    .l_type = (short)kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
  if (fcntl(descriptor, F_OFD_SETLK, &range) == 0) return 0;
  return errno == EACCES ? -EAGAIN : -errno;
}

/* 1 if another has a lock of either kind on this byte, 0 if none, or a negative errno. */
static inline int sys_is_locked(int descriptor, int64_t byte) {
  struct flock range = {
    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
  return fcntl(descriptor, F_OFD_GETLK, &range) < 0 ? -errno : range.l_type != F_UNLCK;
}

/* Releases all locks of this open file description. close(2) alone does not if a child that another
   thread forked has the descriptor too. */
static inline void sys_unlock(int descriptor) {
  (void)sys_lock(descriptor, F_UNLCK, 0, 0);
}

/* flock(2), which works on directories too. -EAGAIN if another process has the lock. */
static inline int sys_lock_directory(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static inline void sys_unlock_directory(int descriptor) { (void)flock(descriptor, LOCK_UN); }

#pragma clang assume_nonnull end
