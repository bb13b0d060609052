/* A PAM module that stands before and after the one that is tested, and lets the host look. */
#include <security/pam_modules.h>

void guest_frame(void);

int pam_sm_authenticate(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)pamh, (void)flags, (void)count, (void)words;
  guest_frame();
  return PAM_SUCCESS;
}

int pam_sm_setcred(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)pamh, (void)flags, (void)count, (void)words;
  return PAM_SUCCESS;
}
