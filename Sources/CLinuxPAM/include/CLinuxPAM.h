// The edge to Linux-PAM: what is variadic, a macro or a bare `const void **`, as plain functions.
// No decisions here.
#pragma once

#include <errno.h>
#include <security/pam_appl.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/// A string item; NULL where it is not set or cannot be read.
static inline const char *_Nullable sp_pam_item(pam_handle_t *_Nonnull handle, int item) {
  const void *value = NULL;
  return pam_get_item(handle, item, &value) == PAM_SUCCESS ? value : NULL;
}

/// The user's name, asked for by the application's own prompt where it is not set.
static inline int sp_pam_user(pam_handle_t *_Nonnull handle,
                              const char *_Nullable *_Nonnull name) {
  *name = NULL;
  return pam_get_user(handle, name, NULL);
}

/// One prompt. `text` is a C string; void, because Swift has it as bytes. The answer is the caller's to wipe and free, also after a failure.
static inline int sp_pam_ask(pam_handle_t *_Nonnull handle, int style, const void *_Nonnull text,
                             char *_Nullable *_Nonnull answer) {
  *answer = NULL;
  return pam_prompt(handle, style, answer, "%s", (const char *)text);
}

/// Shows a text, a C string as above. Not by pam_prompt, whose vasprintf leaves parts of a long text
/// in the buffers that it outgrows: a secret's.
static inline int sp_pam_show(pam_handle_t *_Nonnull handle, const void *_Nullable text) {
  const void *item = NULL;
  int result = pam_get_item(handle, PAM_CONV, &item);
  const struct pam_conv *conversation = item;
  if (result != PAM_SUCCESS) return result;
  if (conversation == NULL || conversation->conv == NULL) return PAM_CONV_ERR;
  const struct pam_message message = {PAM_TEXT_INFO, text == NULL ? "" : (const char *)text};
  const struct pam_message *messages = &message;
  struct pam_response *responses = NULL;
  result = conversation->conv(1, &messages, &responses, conversation->appdata_ptr);
  if (result == PAM_SUCCESS && responses != NULL) {
    free(responses->resp);
    free(responses);
  }
  return result;
}

static const int sp_pam_silent = (int)PAM_SILENT;

typedef void (*sp_pam_cleanup)(pam_handle_t *_Nonnull handle, void *_Nullable data, int status);

/// What the module keeps on the handle from one phase to the next; NULL where there is nothing.
static inline void *_Nullable sp_pam_mark(pam_handle_t *_Nonnull handle) {
  const void *data = NULL;
  return pam_get_data(handle, "pam_sallyport", &data) == PAM_SUCCESS ? (void *)data : NULL;
}

static inline int sp_pam_set_mark(pam_handle_t *_Nonnull handle, void *_Nullable data,
                                  sp_pam_cleanup _Nonnull cleanup) {
  return pam_set_data(handle, "pam_sallyport", data, cleanup);
}

// PAM's own environment. The names stand here, because a Swift string's way into C brings kilobytes.

static inline const char *_Nullable sp_pam_ssh_info(pam_handle_t *_Nonnull handle) {
  return pam_getenv(handle, "SSH_AUTH_INFO_0");
}

static inline bool sp_pam_has_environment_mark(pam_handle_t *_Nonnull handle) {
  return pam_getenv(handle, "SALLYPORT_MARK") != NULL;
}

static inline int sp_pam_set_environment_mark(pam_handle_t *_Nonnull handle, bool is_there) {
  return pam_putenv(handle, is_there ? "SALLYPORT_MARK=required" : "SALLYPORT_MARK");
}

static inline void sp_wipe_and_free(char *_Nullable text) {
  if (text == NULL) return;
  explicit_bzero(text, strlen(text));
  free(text);
}

/// Asks the account stack of the handle's service about the handle's user, on a handle of its own
/// whose conversation shows nothing and answers nothing: the stack's return code, or that of a call
/// that failed before it. Modules that do something in that phase do it here too.
int sp_pam_probe_account(pam_handle_t *_Nonnull handle, int flags);

/// Whether `handle` is such a handle: known by its conversation, a function that only this module
/// has, so that no variable that somebody can set says so.
bool sp_pam_is_probe(pam_handle_t *_Nonnull handle);

/// `line` as `text` above.
static inline void sp_pam_log(pam_handle_t *_Nonnull handle, int level,
                              const void *_Nonnull line) {
  pam_syslog(handle, level, "%s", (const char *)line);
}

/// The host's errno: a module puts it back when it returns.
static inline int sp_errno(void) { return errno; }
static inline void sp_put_back_errno(int before) { errno = before; }
