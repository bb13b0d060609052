/* A PAM module that looks at how it is asked. "display X" sets PAM_XDISPLAY in the auth phase, and its
 * account phase says yes only where it is X; that of "silent" only where nothing is to be shown. */
#include <security/pam_modules.h>
#include <stddef.h>
#include <string.h>

int pam_sm_authenticate(pam_handle_t *pamh, int flags, int count, const char **words) {
  (void)flags;
  return count == 2 ? pam_set_item(pamh, PAM_XDISPLAY, words[1]) : PAM_IGNORE;
}

int pam_sm_acct_mgmt(pam_handle_t *pamh, int flags, int count, const char **words) {
  const void *display = NULL;
  if (count < 2) return (flags & (int)PAM_SILENT) != 0 ? PAM_SUCCESS : PAM_PERM_DENIED;
  int result = pam_get_item(pamh, PAM_XDISPLAY, &display);
  return result == PAM_SUCCESS && display != NULL && strcmp(display, words[1]) == 0
             ? PAM_SUCCESS : PAM_PERM_DENIED;
}
