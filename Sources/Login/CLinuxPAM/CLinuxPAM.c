#include "CLinuxPAM.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

// The conversation of the probe of the account stack: every message that needs an answer fails.
static int say_nothing(int count, const struct pam_message **messages,
                       struct pam_response **responses, void *data) {
  (void)data;
  *responses = NULL;
  for (int i = 0; i < count; i++)
    if (messages[i]->msg_style != PAM_TEXT_INFO && messages[i]->msg_style != PAM_ERROR_MSG)
      return PAM_CONV_ERR;
  *responses = calloc(count > 0 ? (size_t)count : 1, sizeof **responses);
  return *responses == NULL ? PAM_BUF_ERR : PAM_SUCCESS;
}

bool sp_pam_is_probe(pam_handle_t *handle) {
  const struct pam_conv *conversation = sp_pam_conversation(handle);
  return conversation != NULL && conversation->conv == say_nothing;
}

// The items on which a module may base its decision. Without PAM_AUTHTOK and PAM_OLDAUTHTOK: the
// account phase needs no password.
static int copy_items(pam_handle_t *from, pam_handle_t *to) {
  const int items[] = {PAM_TTY, PAM_RHOST, PAM_RUSER, PAM_XDISPLAY};
  int result = PAM_SUCCESS;
  for (size_t i = 0; i < sizeof items / sizeof *items && result == PAM_SUCCESS; i++) {
    const char *value = sp_pam_item(from, items[i]);
    if (value != NULL) result = pam_set_item(to, items[i], value);
  }
  return result;
}

static int copy_environment(pam_handle_t *from, pam_handle_t *to) {
  char **list = pam_getenvlist(from);
  int result = list == NULL ? PAM_BUF_ERR : PAM_SUCCESS;
  for (char **entry = list; entry != NULL && *entry != NULL; entry++) {
    if (result == PAM_SUCCESS) result = pam_putenv(to, *entry);
    sp_wipe_and_free(*entry);
  }
  free(list);
  return result;
}

int sp_pam_probe_account(pam_handle_t *handle, int flags) {
  static const struct pam_conv conversation = {say_nothing, NULL};
  const char *service = sp_pam_item(handle, PAM_SERVICE), *user = sp_pam_item(handle, PAM_USER);
  pam_handle_t *probe = NULL;
  if (service == NULL || user == NULL) return PAM_SYSTEM_ERR;
  int result = pam_start(service, user, &conversation, &probe);
  if (result != PAM_SUCCESS) return result;
  result = copy_items(handle, probe);
  if (result == PAM_SUCCESS) result = copy_environment(handle, probe);
  if (result == PAM_SUCCESS) result = pam_acct_mgmt(probe, flags | (int)PAM_SILENT);
  (void)pam_end(probe, result);
  return result;
}

// The line as syslog(3) and pam_syslog(3) write it, but for the time, which every daemon knows, and
// for the program's name, which its user chooses. syslog(3) waits for ever where the log's daemon
// has stopped and its socket is full; here the line is lost after three seconds.
static bool send_as_root(const char *service, int phase, int level, const char *line) {
  static const char phases[][8] = {"auth", "account", "session"};
  const struct sockaddr_un log = {AF_UNIX, "/dev/log"};
  const struct ucred root = {getpid(), 0, getegid()};
  union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof root)]; } control = {
    .head = {CMSG_LEN(sizeof root), SOL_SOCKET, SCM_CREDENTIALS}};
  memcpy(CMSG_DATA(&control.head), &root, sizeof root);
  char start[256];
  int length = snprintf(start, sizeof start, "<%d>%.64s[%d]: pam_sallyport(%.64s:%s): ",
                        LOG_AUTHPRIV | level, service, (int)root.pid, service, phases[phase]);
  struct iovec parts[] = {{start, (size_t)length}, {(void *)line, strlen(line)}};
  const struct msghdr message = {.msg_name = (void *)&log, .msg_namelen = sizeof log,
                                 .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control,
                                 .msg_controllen = sizeof control};
  static const struct timeval most = {3, 0};
  int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), tries = 0;
  ssize_t sent = -1;
  (void)setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  do sent = sendmsg(made, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR && ++tries < 100);
  const bool isOver = sent >= 0 || errno == EAGAIN;
  close(made);
  return isOver;
}

void sp_pam_log(pam_handle_t *handle, int phase, int level, const void *line) {
  const char *service = sp_pam_item(handle, PAM_SERVICE);
  if (getuid() != 0 && geteuid() == 0) {
    if (send_as_root(service == NULL ? "" : service, phase, level, line)) return;
    // Without a journal nobody else can read the log.
    if (access("/run/systemd/journal", F_OK) == 0 || errno != ENOENT)
      line = "a line for root alone could not be sent to /dev/log";
  }
  pam_syslog(handle, level, "%s", (const char *)line);
}
