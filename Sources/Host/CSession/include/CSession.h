/* What sallyport-session needs of libpam, the kernel and the C library. It decides nothing. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* Who connected: pid and effective uid at connect(). 0 or a negative errno. */
int session_peer(int connection, int32_t *process, uint32_t *user);

/* Leaves the keyring of whoever started this process: what modules of PAM put there would be another
   session's too. Where keyrings cannot be had, there is none to share. */
void session_join_keyring(void);

/* One message of a module. `answer` is set, by malloc, for the styles that ask. 0, or it fails. */
typedef int (*session_turn)(int style, const char *text, char *_Nullable *_Nonnull answer,
                            void *_Nullable context);

typedef struct {
  session_turn turn;
  void *_Nullable context;
} session_conversation;

/* A conversation function of libpam; its data is a session_conversation. */
int session_converse(int count, const struct pam_message *_Nonnull *_Nonnull messages,
                     struct pam_response *_Nullable *_Nonnull responses,
                     void *_Nullable conversation);

/* Starts a transaction; libpam keeps the conversation's pointer. A return code of PAM. */
static inline int session_start(const char *service, const char *user,
                                session_conversation *conversation,
                                pam_handle_t *_Nullable *_Nonnull handle) {
  struct pam_conv with = { session_converse, conversation };
  *handle = NULL;
  int result = pam_start(service, user, &with, handle);
  return result == PAM_SUCCESS ? pam_set_item(*handle, PAM_RUSER, user) : result;
}

/* PAM_USER, which a module may have changed; it belongs to the handle. */
static inline const char *_Nullable session_user(pam_handle_t *handle) {
  const void *user = NULL;
  return pam_get_item(handle, PAM_USER, &user) == PAM_SUCCESS ? user : NULL;
}

/* The first name of that uid, with its NUL. 1, 0 for none, or a negative errno. */
static inline int session_name(uint32_t user, char *name, size_t capacity) {
  for (size_t size = 1024; size <= 1u << 20; size *= 4) {
    struct passwd entry, *found = NULL;
    char *buffer = malloc(size);
    if (buffer == NULL) return -ENOMEM;
    int error = getpwuid_r(user, &entry, buffer, size, &found);
    int fits = error == 0 && found != NULL && strlen(entry.pw_name) < capacity;
    if (fits) strcpy(name, entry.pw_name);
    free(buffer);
    if (error == 0) return fits ? 1 : found == NULL ? 0 : -ENAMETOOLONG;
    if (error != ERANGE) return error > 0 ? -error : -EIO;
  }
  return -ERANGE;
}

/* No core file, no other process that reads this one's memory, no inheritance of the connection, a
   keyring of its own where the kernel has any, the usual signals, and an end by SIGALRM after so many
   seconds whatever a module of PAM waits for. */
static inline int session_harden(int connection, unsigned seconds) {
  sigset_t none;
  sigemptyset(&none);
  struct rlimit limit = { 0, 0 };
  for (int number = 0; number < 3; number++)
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number) return -EBADF;
  if (setrlimit(RLIMIT_CORE, &limit) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return -errno;
  int flags = fcntl(connection, F_GETFL);
  if (flags < 0 || fcntl(connection, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
      fcntl(connection, F_SETFD, FD_CLOEXEC) < 0)
    return -errno;
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGALRM, SIG_DFL) == SIG_ERR) return -errno;
  if (sigprocmask(SIG_SETMASK, &none, NULL) < 0) return -errno;
  session_join_keyring();
  umask(077);
  alarm(seconds);
  return 0;
}

static inline void session_open_log(void) { openlog("sallyport-session", LOG_PID, LOG_AUTHPRIV); }

static inline void session_log(int level, const char *text) {
  syslog(LOG_AUTHPRIV | level, "%s", text);
}

#pragma clang assume_nonnull end
