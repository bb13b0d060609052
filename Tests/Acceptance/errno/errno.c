/* A PAM module that stands before and after another in a stack. "set" leaves a value in errno; "check"
 * succeeds only where that value is still there. */
#include <errno.h>
#include <security/pam_modules.h>
#include <string.h>

enum { MARK = 4242 };

static int answer(int count, const char **words) {
  if (count > 0 && strcmp(words[0], "check") == 0)
    return errno == MARK ? PAM_SUCCESS : PAM_CRED_INSUFFICIENT;
  errno = MARK;
  return PAM_SUCCESS;
}

int pam_sm_authenticate(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)pamh, (void)flags;
  return answer(count, words);
}

int pam_sm_acct_mgmt(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)pamh, (void)flags;
  return answer(count, words);
}

int pam_sm_open_session(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)pamh, (void)flags;
  return answer(count, words);
}
