// Linux-PAM's variadic functions, macros and `const void **` parameters as plain functions, which
// decide nothing. An `int` result is a PAM return code.
#pragma once

#include <errno.h>
#include <security/pam_appl.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/// Returns a string item, which belongs to the handle; NULL if it is not set or cannot be read.
static inline const char *_Nullable sp_pam_item(pam_handle_t *_Nonnull handle, int item) {
  const void *value = NULL;
  return pam_get_item(handle, item, &value) == PAM_SUCCESS ? value : NULL;
}

/// Returns the application's conversation, which belongs to the handle; NULL if there is none.
static inline const struct pam_conv *_Nullable sp_pam_conversation(pam_handle_t *_Nonnull handle) {
  const void *value = NULL;
  return pam_get_item(handle, PAM_CONV, &value) == PAM_SUCCESS ? value : NULL;
}

/// Sets `name` to the user's name, which belongs to the handle. If it is not set yet, the
/// application asks for it with its own prompt.
static inline int sp_pam_user(pam_handle_t *_Nonnull handle,
                              const char *_Nullable *_Nonnull name) {
  *name = NULL;
  return pam_get_user(handle, name, NULL);
}

/// Shows a prompt of the style PAM_PROMPT_ECHO_ON or PAM_PROMPT_ECHO_OFF. `text` is a C string; its
/// type is void because Swift passes bytes. The caller wipes and frees the answer, also after a
/// failure.
static inline int sp_pam_ask(pam_handle_t *_Nonnull handle, int style, const void *_Nonnull text,
                             char *_Nullable *_Nonnull answer) {
  *answer = NULL;
  return pam_prompt(handle, style, answer, "%s", (const char *)text);
}

/// Shows `text`, a C string as above, in the style PAM_TEXT_INFO or PAM_ERROR_MSG. Does not use
/// pam_prompt(3): its vasprintf(3) leaves parts of a long text, which may be a secret, in buffers
/// that it frees while it grows.
static inline int sp_pam_show(pam_handle_t *_Nonnull handle, int style,
                              const void *_Nullable text) {
  const struct pam_conv *conversation = sp_pam_conversation(handle);
  if (conversation == NULL || conversation->conv == NULL) return PAM_CONV_ERR;
  const struct pam_message message = {style, text == NULL ? "" : (const char *)text};
  const struct pam_message *messages = &message;
  struct pam_response *responses = NULL;
  int result = conversation->conv(1, &messages, &responses, conversation->appdata_ptr);
  if (result == PAM_SUCCESS && responses != NULL) {
    free(responses->resp);
    free(responses);
  }
  return result;
}

/// Whether the conversation of the application has data of its own. That of sshd's
/// keyboard-interactive always has: it refuses to run without ("null context"). That of its method
/// `password`, and of its account phase without one, never has.
static inline bool sp_pam_has_conversation_data(pam_handle_t *_Nonnull handle) {
  const struct pam_conv *conversation = sp_pam_conversation(handle);
  return conversation != NULL && conversation->appdata_ptr != NULL;
}

typedef void (*sp_pam_cleanup)(pam_handle_t *_Nonnull handle, void *_Nullable data, int status);

/// Returns the data that the module keeps on the handle between phases; NULL if there is none.
static inline void *_Nullable sp_pam_mark(pam_handle_t *_Nonnull handle) {
  const void *data = NULL;
  return pam_get_data(handle, "pam_sallyport", &data) == PAM_SUCCESS ? (void *)data : NULL;
}

static inline int sp_pam_set_mark(pam_handle_t *_Nonnull handle, void *_Nullable data,
                                  sp_pam_cleanup _Nonnull cleanup) {
  return pam_set_data(handle, "pam_sallyport", data, cleanup);
}

// Variables in PAM's environment. Their names are here because converting a Swift string to a C
// string would add kilobytes to the module.

static inline const char *_Nullable sp_pam_ssh_info(pam_handle_t *_Nonnull handle) {
  return pam_getenv(handle, "SSH_AUTH_INFO_0");
}

static inline bool sp_pam_has_environment_mark(pam_handle_t *_Nonnull handle) {
  return pam_getenv(handle, "SALLYPORT_MARK") != NULL;
}

static inline int sp_pam_set_environment_mark(pam_handle_t *_Nonnull handle, bool is_there) {
  return pam_putenv(handle, is_there ? "SALLYPORT_MARK=required" : "SALLYPORT_MARK");
}

/// What the session phase shows; it belongs to the handle. NULL if there is none.
static inline const char *_Nullable sp_pam_text(pam_handle_t *_Nonnull handle) {
  return pam_getenv(handle, "SALLYPORT_TEXT");
}

/// `text`: a C string as above, of any length, which is left in one line; NULL removes it.
int sp_pam_set_text(pam_handle_t *_Nonnull handle, const void *_Nullable text);

static inline void sp_wipe_and_free(char *_Nullable text) {
  if (text == NULL) return;
  explicit_bzero(text, strlen(text));
  free(text);
}

/// Runs the account stack of the handle's service for the handle's user, on another handle, whose
/// conversation shows and answers nothing. Returns the code of the stack, or of a call that failed
/// before it. Side effects of modules in the account phase happen here too. `is_ours` becomes true
/// where a line of this module is asked.
int sp_pam_probe_account(pam_handle_t *_Nonnull handle, int flags, bool *_Nonnull is_ours);

/// Whether `handle` is the one of such a probe. It is recognized by its conversation function,
/// which only this module has; a variable could be set by others. The probe then knows that it was
/// asked.
bool sp_pam_is_probe(pam_handle_t *_Nonnull handle);

/// Logs `line`, a C string as above, with a priority of syslog(3). In a program that somebody who is
/// not root has started with root's rights (su, sudo) it is sent under uid 0: the journal files a
/// line under the uid of its sender, who could read there why he was refused. `phase`: 0 to 2 for
/// auth, account and session.
void sp_pam_log(pam_handle_t *_Nonnull handle, int phase, int level, const void *_Nonnull line);

/// errno of the application, which the module restores when it returns.
static inline int sp_errno(void) { return errno; }
static inline void sp_put_back_errno(int before) { errno = before; }
