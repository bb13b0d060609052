/* What sallyport-session needs of libpam, the kernel and the C library beside CService, which comes
   with it. It decides nothing. */
#pragma once

#include "CService.h"

#include <dirent.h>
#include <security/pam_appl.h>

#pragma clang assume_nonnull begin

/* Leaves the keyring of our parent: what modules of PAM put there would be another
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

/* Whether each source says that there is no such group. One that does not answer is an error of the C
   library, which may be ENOENT too. */
static inline bool session_finds_no_group(const char *group) {
  char buffer[1024];
  struct group entry, *found = NULL;
  return getgrnam_r(group, &entry, buffer, sizeof buffer, &found) == 0 && found == NULL;
}

/* Whether there is no such group, for certain as far as this user goes: `is_local`, groups are in files
   of this machine alone. Where SSSD has them, it says that the directory was asked for all of his. */
static inline bool session_lacks_group(const void *user, const void *group, bool is_local) {
  if (!session_finds_no_group(group)) return false;
  return is_local || sys_file_has("/etc/passwd", user)
      || (sys_has_sssd() && sys_sssd_group(user, UINT32_MAX) == 0);
}

/* Whether it is certain that `user`, in whose list of groups sys_is_member does not see this one, is
   not in it, where groups are not in files of this machine alone. A directory lists accounts of this
   machine too, and the C library does not tell that it gave no list, or a part. So of an account of this
   machine in a group that is not, SSSD has to say that it asked for all of his groups, or another
   directory has to list others in the group. */
static inline bool session_is_outside(const void *user, const void *group) {
  if (sys_file_has("/etc/group", group) || !sys_file_has("/etc/passwd", user)) return true;
  uint32_t number = 0;
  int listed = sys_group(group, user, &number);
  return sys_has_sssd() ? listed >= 0 && sys_sssd_group(user, number) == 0 : listed == 2;
}

/* It belongs to the entry. */
static inline const char *session_name(const struct dirent *entry) { return entry->d_name; }

/* As daemon_harden; no inheritance of the connection, a keyring of its own where the kernel has any,
   the usual signals, and an end by SIGALRM after this many seconds whatever a module of PAM waits
   for. */
static inline int session_harden(int connection, unsigned seconds) {
  sigset_t none;
  sigemptyset(&none);
  int result = daemon_harden();
  if (result < 0) return result;
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

#pragma clang assume_nonnull end
