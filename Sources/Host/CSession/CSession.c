#include "CSession.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>

/* Here and not in the header: Swift's importer does not set _GNU_SOURCE. */

void session_join_keyring(void) { (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); }

static void forget(struct pam_response *answers, int count) {
  for (int index = 0; index < count; index++) {
    if (answers[index].resp == NULL) continue;
    explicit_bzero(answers[index].resp, strlen(answers[index].resp));
    free(answers[index].resp);
  }
  free(answers);
}

int session_converse(int count, const struct pam_message **messages, struct pam_response **responses,
                     void *conversation) {
  const session_conversation *with = conversation;
  if (count <= 0 || count > PAM_MAX_NUM_MSG || with == NULL) return PAM_CONV_ERR;
  struct pam_response *answers = calloc((size_t)count, sizeof *answers);
  if (answers == NULL) return PAM_BUF_ERR;
  for (int index = 0; index < count; index++) {
    const struct pam_message *message = messages[index];
    const char *text = message->msg == NULL ? "" : message->msg;
    if (with->turn(message->msg_style, text, &answers[index].resp, with->context) != 0) {
      forget(answers, count);
      return PAM_CONV_ERR;
    }
  }
  *responses = answers;
  return PAM_SUCCESS;
}
