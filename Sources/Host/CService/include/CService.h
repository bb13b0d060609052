/* What the programs of a machine need of the kernel and the C library beside CSystem, which comes
   with it: sockets, threads, signals and log. Every function that can fail gives a negative errno. No
   shim decides anything. */
#pragma once

#include "CSystem.h"

#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <syslog.h>

#pragma clang assume_nonnull begin

/* -- Listening */

static inline int service_address(const char *path, struct sockaddr_un *address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  size_t length = strlen(path);
  if (length >= sizeof address->sun_path) return -ENAMETOOLONG;
  memcpy(address->sun_path, path, length);
  return 0;
}

/* Connects once to see whether somebody listens: 0, or why not. */
static inline int service_try(const char *path) {
  int probe = sys_socket_of(SOCK_SEQPACKET | SOCK_NONBLOCK);
  if (probe < 0) return probe;
  int result = sys_connect(probe, path);
  close(probe);
  return result;
}

/* A new socket with these permission bits, on which nobody listens yet. The mask of the process stays
   as it is, since it is that of all threads: the socket never has more bits than these, and those
   that the mask takes away are given back. */
static inline int service_bind(const char *path, mode_t mode) {
  struct sockaddr_un address;
  int result = service_address(path, &address);
  int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -errno;
  if (result == 0 && (fchmod(made, mode) < 0 || bind(made, (const void *)&address, sizeof address) < 0 ||
                      chmod(path, mode) < 0))
    result = -errno;
  if (result == 0) return made;
  close(made);
  return result;
}

static inline int service_listen(int socket, int backlog) {
  return listen(socket, backlog) < 0 ? -errno : 0;
}

/* Which path this descriptor listens on for packets, with its NUL, from our parent; it is no
   longer inherited and no longer blocks. -EINVAL for any other descriptor. */
static inline int service_adopt(int socket, char *path, size_t capacity) {
  int domain = 0, type = 0, listens = 0;
  socklen_t size = sizeof(int);
  struct sockaddr_un address;
  socklen_t length = sizeof address;
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
      getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
      getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0)
    return -errno;
  if (domain != AF_UNIX || type != SOCK_SEQPACKET || listens == 0) return -EINVAL;
  memset(&address, 0, sizeof address);
  if (getsockname(socket, (void *)&address, &length) < 0) return -errno;
  size_t count = strnlen(address.sun_path, sizeof address.sun_path);
  if (count >= capacity) return -ENAMETOOLONG;
  memcpy(path, address.sun_path, count);
  path[count] = 0;
  if (fcntl(socket, F_SETFD, FD_CLOEXEC) < 0) return -errno;
  int flags = fcntl(socket, F_GETFL);
  return flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* Each packet that is received tells who sent it. What is accepted inherits it. */
static inline int service_pass_credentials(int socket) {
  int on = 1;
  return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ? -errno : 0;
}

/* A lock that lasts as long as this process has the descriptor: -EAGAIN where another has it. */
static inline int service_lock(const char *path) {
  int file = sys_open(AT_FDCWD, path, O_RDWR | O_CREAT);
  if (file < 0) return file;
  int result = sys_lock_directory(file);
  if (result == 0) return file;
  close(file);
  return result;
}

/* -- A connection. Nothing here blocks. */

typedef struct { int32_t process; uint32_t user; } service_sender;

/* False for what the kernel says of every user that has no number in our user namespace, and for no
   uid at all. */
static inline bool service_is_user(uint32_t user) { return user != 65534 && user != UINT32_MAX; }

/* Who connected: pid and effective uid at connect(). 0 or a negative errno. */
int service_peer(int connection, service_sender *peer);

/* A connection, and who made it. */
int service_accept(int listener, service_sender *peer);

/* Starts a program with the connection as descriptor 3, nothing else of ours, and the usual signals, in
   a session of its own. Its pid, or a negative errno. */
int service_spawn(const char *program, int connection);

/* 1 where that child has ended, and what it left in its process group with it; else 0. The group has
   its number as long as the child is not waited for. */
static inline int service_has_ended(int32_t child) {
  siginfo_t found = { 0 };
  /* The number of a child that is not ours any more may be somebody else's. */
  if (waitid(P_PID, (id_t)child, &found, WEXITED | WNOHANG | WNOWAIT) < 0) return errno != EINTR;
  if (found.si_pid == 0) return 0;
  (void)kill(-child, SIGKILL);
  (void)waitpid(child, NULL, WNOHANG);
  return 1;
}

/* The size of the packet that is there, 0 at the end, -EAGAIN where there is none yet. */
static inline int64_t service_size(int connection) {
  char none;
  ssize_t size = recv(connection, &none, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  return size < 0 ? -errno : size;
}

/* The packet, and who sent it: pid and real uid by the kernel's word. -EBADMSG where it does not fit,
   or brings more than itself: descriptors that come with it are not taken. */
static inline int64_t service_receive(int connection, void *bytes, size_t count,
                                      service_sender *sender) {
  struct { int32_t process; uint32_t user, group; } found;
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof found)];
  } control;
  struct iovec place = { bytes, count };
  struct msghdr message = { .msg_iov = &place, .msg_iovlen = 1, .msg_control = &control,
                            .msg_controllen = sizeof control };
  ssize_t done = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (done < 0) return -errno;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return -EBADMSG;
  const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != 2 /* SCM_CREDENTIALS */ ||
      head->cmsg_len != CMSG_LEN(sizeof found))
    return -EBADMSG;
  memcpy(&found, CMSG_DATA(head), sizeof found);
  *sender = (service_sender){ found.process, found.user };
  return done;
}

/* One packet, which fits or is not sent: a peer that reads nothing holds nobody. */
static inline int64_t service_send(int connection, const void *bytes, size_t count) {
  ssize_t done = send(connection, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  return done < 0 ? -errno : done;
}

/* 1 or 0: is there an account of this uid? Its first name, with its NUL, where there is room for
   one. Or a negative errno. */
static inline int service_account(uint32_t user, char *_Nullable name, size_t capacity) {
  for (size_t size = 1024; size <= 1u << 20; size *= 4) {
    struct passwd entry, *found = NULL;
    char *buffer = malloc(size);
    if (buffer == NULL) return -ENOMEM;
    int error = getpwuid_r(user, &entry, buffer, size, &found);
    int fits = error == 0 && found != NULL && strlen(entry.pw_name) < capacity;
    if (fits) strcpy(name, entry.pw_name);
    free(buffer);
    if (error == 0) return found == NULL ? 0 : fits || capacity == 0 ? 1 : -ENAMETOOLONG;
    if (error != ERANGE) return error > 0 ? -error : -EIO;
  }
  return -ERANGE;
}

/* 1 with its uid, or 0: is there an account of this name? Or a negative errno. */
static inline int service_uid(const char *name, uint32_t *user) {
  int result = -ERANGE;
  for (size_t size = 1024; size <= 1u << 20 && result == -ERANGE; size *= 4) {
    const char *spelling = NULL;
    uint32_t group = 0;
    char *buffer = malloc(size);
    if (buffer == NULL) return -ENOMEM;
    result = sys_account(name, buffer, size, &spelling, user, &group);
    free(buffer);
  }
  return result;
}

/* -- What changes of the store need beyond a login */

/* syncfs(2): the whole file system that holds this open file. */
static inline int sys_sync_file_system(int descriptor) {
  return sys_result(syscall(SYS_syncfs, descriptor));
}

static inline int sys_exchange(int directory, const void *a, const void *b) {
  return sys_result(syscall(SYS_renameat2, directory, a, directory, b, RENAME_EXCHANGE));
}

/* -- A file that is read again when it has changed */

typedef struct { uint64_t file, size; int64_t changed; } service_stamp;

static inline int service_stamp_of(const char *path, service_stamp *stamp) {
  struct stat found;
  if (stat(path, &found) < 0) return -errno;
  *stamp = (service_stamp){ (uint64_t)found.st_ino, (uint64_t)found.st_size,
                            (int64_t)found.st_ctim.tv_sec * 1000000000 + found.st_ctim.tv_nsec };
  return 0;
}

/* What a regular file begins with. */
static inline int64_t service_read_file(const char *path, void *bytes, size_t count) {
  struct stat found;
  size_t done = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return -errno;
  if (fstat(file, &found) < 0 || !S_ISREG(found.st_mode)) count = 0;
  while (done < count) {
    ssize_t more = read(file, (char *)bytes + done, count - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    done += (size_t)more;
  }
  close(file);
  return (int64_t)done;
}

/* -- Threads, signals, log */

/* Starts a thread that nobody waits for, with so much of a stack. */
static inline int service_start(size_t stack, void *_Nullable (*_Nonnull body)(void *_Nullable),
                                void *_Nullable argument) {
  pthread_attr_t how;
  pthread_t thread;
  int error = pthread_attr_init(&how);
  if (error != 0) return -error;
  if ((error = pthread_attr_setstacksize(&how, stack)) == 0 &&
      (error = pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED)) == 0)
    error = pthread_create(&thread, &how, body, argument);
  (void)pthread_attr_destroy(&how);
  return -error;
}

/* A number that threads wait for: each `service_wait` takes one. */
static inline int service_counter(void) {
  int made = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return made < 0 ? -errno : made;
}

static inline void service_count_up(int counter, uint64_t by) {
  while (write(counter, &by, sizeof by) < 0 && errno == EINTR) { }
}

static inline void service_count_down(int counter) {
  uint64_t one;
  while (read(counter, &one, sizeof one) < 0 && errno == EINTR) { }
}

/* Keeps the signals that end the service for service_wait_for_end, in this thread and those that it
   starts; nobody who went away ends it; and its children wait for it, by whatever it was started. */
static inline int service_hold_signals(void) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGHUP, SIG_IGN) == SIG_ERR ||
      signal(SIGCHLD, SIG_DFL) == SIG_ERR)
    return -errno;
  return -pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

static inline void service_wait_for_end(void) {
  sigset_t ends;
  int which;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  while (sigwait(&ends, &which) != 0) { }
}

/* No core file, and no other process of the user that reads this one's memory. */
static inline int process_harden(void) {
  struct rlimit none = { 0, 0 };
  return setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/* The same, and none of 0, 1 and 2 closed, where a socket would get what somebody prints. */
static inline int daemon_harden(void) {
  for (int number = 0; number < 3; number++)
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number) return -EBADF;
  return process_harden();
}

/* The same, and as many descriptors as it may have, up to this number. How many, or a negative errno. */
static inline int service_harden(int descriptors) {
  struct rlimit limit;
  int result = daemon_harden();
  if (result < 0) return result;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -errno;
  if (limit.rlim_max > (rlim_t)descriptors) limit.rlim_max = (rlim_t)descriptors;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : (int)limit.rlim_max;
}

/* What the words of the service's command line say; the program stays where none is named. 0; 1
   where help is asked for; or -EINVAL, after it was told what is wrong. */
int service_read_options(int count, char *_Nullable const *_Nonnull words, bool *sessions,
                         const char *_Nullable *_Nonnull program);

/* A line in the log of the system, with a priority of syslog(3). Where the log's daemon has stopped
   it is lost after three seconds, and all lines of the next minute are lost at once. */
void service_log(int level, const char *text);

/* Before the first line. The name is kept as it is. `options`: LOG_PID or none. */
void service_open_log(const char *name, int options);

/* A record in the kernel's audit log, as shadow and Linux-PAM write theirs; nothing where libaudit
   is missing or the kernel audits nothing. `type`: of libaudit.h. `user`: NULL for nobody alone. */
void service_audit(int type, const char *operation, const char *_Nullable user, bool is_done);

#pragma clang assume_nonnull end
