/* What importing needs of the system: other people's files, all accounts, local times. Only the
   command uses it. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* -- Files that others may have made */

struct source {
  uint64_t size;
  uint32_t owner;
  uint32_t mode; /* the twelve permission bits */
  bool regular;
};

/* Opens a file to read, or the descriptor 0 for "-": no link at its end is followed, nothing is
   waited for. A descriptor, or minus errno. */
static inline int source_open(const char *path, struct source *source) {
  int descriptor = strcmp(path, "-") == 0
    ? fcntl(0, F_DUPFD_CLOEXEC, 0)
    : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return -errno;
  struct stat found;
  if (fstat(descriptor, &found) != 0) {
    int problem = errno;
    close(descriptor);
    return -problem;
  }
  *source = (struct source){ found.st_size > 0 ? (uint64_t)found.st_size : 0, found.st_uid,
                             found.st_mode & 07777, S_ISREG(found.st_mode) };
  return descriptor;
}

/* Fills `bytes` until they are full or the file ends. The number of bytes, or minus errno. */
static inline int64_t source_read(int descriptor, void *bytes, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t got = read(descriptor, (char *)bytes + done, count - done);
    if (got == 0) break;
    if (got > 0) done += (size_t)got;
    else if (errno != EINTR) return -errno;
  }
  return (int64_t)done;
}

static inline void source_close(int descriptor) { (void)close(descriptor); }

/* -- Whose rights count for files, of this thread alone */

struct file_rights {
  uint32_t user, group;
  int groups;
  gid_t *_Nullable list;
};

static inline uint32_t rights_user(void) { return (uint32_t)syscall(SYS_setfsuid, (uid_t)-1); }

/* Opens files as that user and his primary group from now on. 0 or errno; nothing has changed then.
   Only for root. */
static inline int rights_take(uint32_t user, uint32_t group, struct file_rights *before) {
  before->user = rights_user();
  before->group = (uint32_t)syscall(SYS_setfsgid, (gid_t)-1);
  before->groups = getgroups(0, NULL);
  if (before->groups < 0) return errno;
  before->list = malloc(sizeof(gid_t) * ((size_t)before->groups + 1));
  if (before->list == NULL) return ENOMEM;
  if (getgroups(before->groups, before->list) != before->groups
      || syscall(SYS_setgroups, (size_t)0, NULL) != 0) {
    int problem = errno;
    free(before->list);
    return problem;
  }
  (void)syscall(SYS_setfsgid, group);
  (void)syscall(SYS_setfsuid, user);
  if (rights_user() == user) return 0;
  (void)syscall(SYS_setfsgid, before->group);
  (void)syscall(SYS_setgroups, (size_t)before->groups, before->list);
  free(before->list);
  return EPERM;
}

/* A command that went on with another's rights could do harm: it ends where they stay. */
static inline void rights_put_back(const struct file_rights *before) {
  (void)syscall(SYS_setfsuid, before->user);
  (void)syscall(SYS_setfsgid, before->group);
  if (rights_user() != before->user) abort();
  if (syscall(SYS_setgroups, (size_t)before->groups, before->list) != 0) abort();
  free(before->list);
}

/* -- Accounts */

/* The next entry of the account database, after setpwent(): 1, 0 at the end, or minus errno. The
   texts hold until the next call. */
static inline int account_next(const char *_Nullable *_Nonnull name,
                               const char *_Nullable *_Nonnull home, uint32_t *user,
                               uint32_t *group) {
  errno = 0;
  struct passwd *entry = getpwent();
  /* At the end some sources leave ENOENT. */
  if (entry == NULL) return errno == 0 || errno == ENOENT ? 0 : -errno;
  *name = entry->pw_name;
  *home = entry->pw_dir;
  *user = entry->pw_uid;
  *group = entry->pw_gid;
  return 1;
}

/* The entry of that name, likewise: 1, 0 where there is none, or minus errno. */
static inline int account_named(const char *name, const char *_Nullable *_Nonnull home,
                                uint32_t *user, uint32_t *group) {
  errno = 0;
  struct passwd *entry = getpwnam(name);
  if (entry == NULL) return -errno;
  *home = entry->pw_dir;
  *user = entry->pw_uid;
  *group = entry->pw_gid;
  return 1;
}

static inline void accounts_begin(void) { setpwent(); }
static inline void accounts_end(void) { endpwent(); }

/* -- Time */

/* The moment of a local date with summer time or without; false where no clock here showed it. */
static inline bool time_of(int year, int month, int day, int hour, int minute, int second,
                           bool summer, int64_t *seconds) {
  struct tm wanted = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day,
                       .tm_hour = hour, .tm_min = minute, .tm_sec = second, .tm_isdst = summer };
  struct tm fields = wanted;
  time_t time = mktime(&fields);
  *seconds = time;
  return time != (time_t)-1 && fields.tm_isdst == wanted.tm_isdst
    && fields.tm_mday == wanted.tm_mday && fields.tm_hour == wanted.tm_hour
    && fields.tm_min == wanted.tm_min && fields.tm_sec == wanted.tm_sec;
}

/* -- Durability */

/* Everything written to the file system that holds this open file is on its disk. 0 or minus errno. */
static inline int system_sync(int descriptor) {
  return syscall(SYS_syncfs, descriptor) != 0 ? -errno : 0;
}

#pragma clang assume_nonnull end
