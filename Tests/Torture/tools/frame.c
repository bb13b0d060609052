/* A PAM module that stands before and after the one that is tested, and lets the host look.
 *
 *   password   in the auth phase it leaves a password, as a module that asked for one
 */
#define PAM_SM_AUTH
#include <security/pam_modules.h>
#include <string.h>

void guest_frame(void);

static int look(void) {
  guest_frame();
  return PAM_SUCCESS;
}

#define PHASE(name)                                                                   \
  int pam_sm_##name(pam_handle_t *pamh, int flags, int count, const char **words) {   \
    (void)pamh, (void)flags, (void)count, (void)words;                                \
    return look();                                                                    \
  }

int pam_sm_authenticate(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)flags;
  if (count > 0 && strcmp(words[0], "password") == 0) pam_set_item(pamh, PAM_AUTHTOK, "pw");
  return look();
}

PHASE(setcred)
PHASE(acct_mgmt)
PHASE(open_session)
PHASE(close_session)
