/* Functions of the kernel and the C library that SallyportSystem needs, without variadic arguments,
   macros and errno, so that Swift can call them. They decide nothing. Every function that can fail
   returns a negative errno. Paths and names are C strings; their type is void because Swift passes
   bytes. Nothing here needs _GNU_SOURCE, which Swift's importer does not set. */
#pragma once

#include "Accounts.h"
#include "Interfaces.h"
#include "Locks.h"
#include "Schedule.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <time.h>

#pragma clang assume_nonnull begin

/* ---- files ---- */

/* How to open. None of them follows a symbolic link at the end of the path or blocks, and all have
   the close-on-exec flag. */
static const int32_t sys_for_reading = O_RDONLY;
static const int32_t sys_for_updating = O_RDWR;
static const int32_t sys_as_directory = O_RDONLY | O_DIRECTORY;
static const int32_t sys_as_new_file = O_RDWR | O_CREAT | O_EXCL;

enum sys_kind { sys_regular, sys_directory, sys_link, sys_socket_kind, sys_other_kind };

/* The fields of stat(2) that are used. */
typedef struct {
  uint64_t device, inode, links, size;
  uint32_t owner;
  uint32_t mode; /* the twelve permission bits */
  enum sys_kind kind;
  int64_t modified, changed;                         /* seconds */
  uint32_t modified_nanoseconds, changed_nanoseconds;
} sys_facts;

static inline int64_t sys_result(int64_t result) { return result < 0 ? -errno : result; }

/* Whether to repeat a call: one that was interrupted, up to 100 times. */
static inline int sys_again(int64_t result, int *tries) {
  return result < 0 && errno == EINTR && ++*tries < 100;
}

/* The result of a call that is repeated so. */
#define sys_repeated(call) ({ \
  int64_t done; \
  int tries = 0; \
  do done = (call); while (sys_again(done, &tries)); \
  sys_result(done); })

/* 1 or 0. For a process whose real uid may write there, but for the mount. */
static inline int sys_is_read_only(const void *path) {
  return access(path, W_OK) != 0 && errno == EROFS;
}

static inline int sys_open(int directory, const void *path, int how) {
  how |= O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  return sys_repeated(openat(directory, path, how, 0600));
}

/* Never repeated: Linux frees the descriptor even if close(2) fails. */
static inline void sys_close(int descriptor) { (void)close(descriptor); }

static inline void sys_take_facts(const struct stat *from, sys_facts *facts) {
  *facts = (sys_facts){
    .device = from->st_dev,
    .inode = from->st_ino,
    .links = from->st_nlink,
    .size = from->st_size < 0 ? 0 : (uint64_t)from->st_size,
    .owner = from->st_uid,
    .mode = from->st_mode & 07777,
    .kind = S_ISREG(from->st_mode) ? sys_regular
          : S_ISDIR(from->st_mode) ? sys_directory
          : S_ISLNK(from->st_mode) ? sys_link
          : S_ISSOCK(from->st_mode) ? sys_socket_kind : sys_other_kind,
    .modified = from->st_mtim.tv_sec,
    .changed = from->st_ctim.tv_sec,
    .modified_nanoseconds = (uint32_t)from->st_mtim.tv_nsec,
    .changed_nanoseconds = (uint32_t)from->st_ctim.tv_nsec,
  };
}

static inline int sys_facts_of(int descriptor, sys_facts *facts) {
  struct stat found;
  if (fstat(descriptor, &found) < 0) return -errno;
  sys_take_facts(&found, facts);
  return 0;
}

/* Of the link itself, if the name is a symbolic link. */
static inline int sys_facts_at(int directory, const void *path, sys_facts *facts) {
  struct stat found;
  if (fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
  sys_take_facts(&found, facts);
  return 0;
}

/* Whether there is such a name, or that cannot be determined. */
static inline bool sys_may_be_there(const void *path) {
  struct stat found;
  return fstatat(AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* One pread(2). Returns the number of bytes, which may be less than `count`. */
static inline int64_t sys_read(int descriptor, void *bytes, size_t count, uint64_t offset) {
  return sys_repeated(pread(descriptor, bytes, count, (off_t)offset));
}

/* One pwrite(2). Returns the number of bytes, which may be less than `count`. */
static inline int64_t sys_write(int descriptor, const void *bytes, size_t count, uint64_t offset) {
  return sys_repeated(pwrite(descriptor, bytes, count, (off_t)offset));
}

/* RLIMIT_FSIZE in bytes; 0 if unknown. */
static inline uint64_t sys_file_size_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 0;
}

static inline int sys_sync(int descriptor) { return sys_repeated(fsync(descriptor)); }

/* fdatasync(2): the content alone, as writing in place does not change the file's size. */
static inline int sys_sync_data(int descriptor) { return sys_repeated(fdatasync(descriptor)); }

static inline int sys_set_mode(int descriptor, uint32_t mode) {
  return sys_result(fchmod(descriptor, mode));
}

static inline int sys_make_directory(int directory, const void *name) {
  return sys_result(mkdirat(directory, name, 0700));
}

static inline int sys_remove_file(int directory, const void *name) {
  return sys_result(unlinkat(directory, name, 0));
}

static inline int sys_remove_directory(int directory, const void *name) {
  return sys_result(unlinkat(directory, name, AT_REMOVEDIR));
}

static inline int sys_rename(int from_directory, const void *from, int to_directory, const void *to) {
  return sys_result(renameat(from_directory, from, to_directory, to));
}

/* -EEXIST if `to` exists; -EINVAL or -ENOSYS if the file system does not support it. */
static inline int sys_rename_new(int directory, const void *from, const void *to) {
  return sys_result(syscall(SYS_renameat2, directory, from, directory, to, RENAME_NOREPLACE));
}

/* On btrfs, makes writes to this file, which must be empty, reuse its blocks, so that they need no
   free ones. Does nothing and returns 0 on other file systems. */
static inline int sys_no_copy_on_write(int descriptor) {
  struct statfs system;
  if (fstatfs(descriptor, &system) < 0) return -errno;
  if ((uint32_t)system.f_type != 0x9123683eu) return 0;
  int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) < 0) return -errno;
  flags |= FS_NOCOW_FL;
  return sys_result(ioctl(descriptor, FS_IOC_SETFLAGS, &flags));
}

/* ---- names in a directory ---- */

/* Returns a reader of the names in a directory, for sys_names_close; or NULL with *error set. */
static inline void *_Nullable sys_names_open(int directory, int *error) {
  int descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *names = descriptor < 0 ? NULL : fdopendir(descriptor);
  *error = names == NULL ? -errno : 0;
  if (names == NULL && descriptor >= 0) close(descriptor);
  return names;
}

/* Returns 1 with a name and its NUL in `name`, 0 at the end, or a negative errno. */
static inline int sys_names_next(void *names, void *name, size_t capacity) {
  errno = 0;
  const struct dirent *entry = readdir((DIR *)names);
  if (entry == NULL) return errno == 0 ? 0 : -errno;
  size_t length = strnlen(entry->d_name, sizeof entry->d_name);
  if (length >= capacity) return -ENAMETOOLONG;
  memcpy(name, entry->d_name, length);
  ((char *)name)[length] = 0;
  return 1;
}

static inline void sys_names_close(void *names) { (void)closedir((DIR *)names); }

/* ---- time ---- */

/* Seconds since 1970. */
static inline int sys_now(int64_t *seconds) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) < 0) return -errno;
  *seconds = now.tv_sec;
  return 0;
}

/* In nanoseconds. */
static inline uint64_t sys_clock(clockid_t clock) {
  struct timespec now = { 0, 0 };
  (void)clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t sys_monotonic(void) { return sys_clock(CLOCK_MONOTONIC); }

/* Sleeps for less than a second; a signal ends it early. */
static inline void sys_sleep(uint32_t nanoseconds) {
  struct timespec time = { 0, nanoseconds < 1000000000u ? nanoseconds : 999999999u };
  (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* ---- this process and this thread ---- */

/* The signals to block: they would stop the process while others wait for our lock, or kill it
   because of a write. Other signals that kill are not blocked: a save is a single write, so that
   dying is harmless. */
static const int sys_guarded[] = { SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ };
enum { sys_guarded_count = sizeof sys_guarded / sizeof sys_guarded[0] };

/* Blocks them for this thread. Sets bit n of *blocked for each that was not blocked before, and
   *pending if a SIGXFSZ was pending before. */
static inline int sys_block_signals(uint32_t *blocked, int *pending) {
  sigset_t ours, before, waiting;
  sigemptyset(&ours);
  for (int n = 0; n < sys_guarded_count; n++) sigaddset(&ours, sys_guarded[n]);
  *blocked = 0;
  *pending = 0;
  int error = pthread_sigmask(SIG_BLOCK, &ours, &before);
  if (error != 0) return -error;
  for (int n = 0; n < sys_guarded_count; n++)
    if (sigismember(&before, sys_guarded[n]) == 0) *blocked |= 1u << n;
  *pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
  return 0;
}

/* Takes a pending SIGXFSZ, which would kill the process once the mask is restored. */
static inline void sys_take_file_size_signal(void) {
  sigset_t only;
  struct timespec none = { 0, 0 };
  sigemptyset(&only);
  sigaddset(&only, SIGXFSZ);
  (void)sys_repeated(sigtimedwait(&only, NULL, &none));
}

static inline int sys_file_size_signal_waits(void) {
  sigset_t waiting;
  return sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
}

/* Unblocks the signals that sys_block_signals blocked. */
static inline void sys_unblock_signals(uint32_t blocked) {
  sigset_t ours;
  sigemptyset(&ours);
  for (int n = 0; n < sys_guarded_count; n++)
    if (blocked >> n & 1u) sigaddset(&ours, sys_guarded[n]);
  (void)pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
}

/* On other machines the calls of these names take uids of 16 bits. */
_Static_assert(sizeof(long) == 8, "amd64 or arm64");

/* `files` is the uid for file access, usually the effective one. */
typedef struct { uint32_t real, effective, saved, files; } sys_users;

static inline int sys_get_users(sys_users *users) {
  uid_t real, effective, saved;
  if (syscall(SYS_getresuid, &real, &effective, &saved) < 0) return -errno;
  /* -1 is not a valid uid: changes nothing, and returns the present one. */
  *users = (sys_users){ real, effective, saved, (uint32_t)syscall(SYS_setfsuid, (uid_t)-1) };
  return 0;
}

/* setfsuid(2). Needed after setresuid(2), which sets this uid to the effective one. */
static inline void sys_set_file_user(uint32_t files) { (void)syscall(SYS_setfsuid, files); }

/* Sets the real and the saved uid of this thread alone, and keeps the effective one. The C
   library's function would change all threads of the application. */
static inline int sys_set_real_and_saved_user(uint32_t real, uint32_t saved) {
  return sys_result(syscall(SYS_setresuid, real, (uid_t)-1, saved));
}

/* Whether this thread may set any uid, and so could restore one (CAP_SETUID). 1 or 0. */
static inline int sys_may_change_users(void) {
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct sets[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
  if (syscall(SYS_capget, &header, sets) < 0) return 0;
  return (sets[0].effective >> CAP_SETUID & 1u) != 0;
}

/* ---- random bytes, addresses ---- */

/* One getrandom(2). Returns the number of bytes, which may be less than `count`. */
static inline int64_t sys_random(void *bytes, size_t count) {
  return sys_result(getrandom(bytes, count, 0));
}

/* Returns the size of the address, 4 or 16, or 0 if it is not one. `bytes` must hold 16 bytes. */
static inline int sys_parse_address(const void *text, void *bytes) {
  if (inet_pton(AF_INET, text, bytes) == 1) return 4;
  return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}

/* 1 or 0. `text` must hold INET6_ADDRSTRLEN bytes. */
static inline int sys_address_text(const void *bytes, int count, char *text) {
  int family = count == 4 ? AF_INET : AF_INET6;
  return inet_ntop(family, bytes, text, INET6_ADDRSTRLEN) != NULL;
}

/* Such as "ENOSPC"; NULL for a number without a name. */
const char *_Nullable sys_errno_name(int number);

/* Such as "No space left on device", in English in every locale; NULL as above. */
const char *_Nullable sys_errno_text(int number);

#pragma clang assume_nonnull end
