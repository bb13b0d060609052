#include "CLinuxPAM.h"

#include "CSystem.h"

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
  if (conversation == NULL || conversation->conv != say_nothing) return false;
  *(bool *)conversation->appdata_ptr = true;
  return true;
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

int sp_pam_probe_account(pam_handle_t *handle, int flags, bool *is_ours) {
  const struct pam_conv conversation = {say_nothing, is_ours};
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
// for the program's name, which its user chooses. -EAGAIN: it is lost, and so would be another one.
static int send_as_root(const char *service, int phase, int level, const char *line) {
  static const char phases[][8] = {"auth", "account", "session"};
  char start[256];
  (void)snprintf(start, sizeof start, "<%d>%.64s[%d]: pam_sallyport(%.64s:%s): ",
                 LOG_AUTHPRIV | level, service, (int)getpid(), service, phases[phase]);
  return sys_log(start, line, true);
}

void sp_pam_log(pam_handle_t *handle, int phase, int level, const void *line) {
  const char *service = sp_pam_item(handle, PAM_SERVICE);
  if (getuid() != 0 && geteuid() == 0) {
    const int result = send_as_root(service == NULL ? "" : service, phase, level, line);
    if (result == 0 || result == -EAGAIN) return;
    // Without a journal nobody else can read the log.
    if (access("/run/systemd/journal", F_OK) == 0 || errno != ENOENT)
      line = "a line for root alone could not be sent to /dev/log";
  }
  pam_syslog(handle, level, "%s", (const char *)line);
}

int sp_pam_set_text(pam_handle_t *handle, const void *text) {
  if (text == NULL) return pam_putenv(handle, "SALLYPORT_TEXT");
  char *entry = NULL;
  if (asprintf(&entry, "SALLYPORT_TEXT=%s", (const char *)text) < 0) return PAM_BUF_ERR;
  for (char *byte = entry; *byte != '\0'; byte++)
    if (*byte == '\n') *byte = ' ';
  const int result = pam_putenv(handle, entry);
  free(entry);
  return result;
}
