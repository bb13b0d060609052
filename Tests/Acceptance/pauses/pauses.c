/* Preloaded into every program of ring 4's private machine: a refusal is told at once. The pauses of
   pam_unix and of our module are ring 3's subject; here they would be most of the time. */
#include <security/pam_modules.h>

int pam_fail_delay(pam_handle_t *handle, unsigned int microseconds) {
  (void)handle;
  (void)microseconds;
  return PAM_SUCCESS;
}
