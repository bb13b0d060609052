/* What OneTimePassword needs of libcrypto, in a form that Swift can call safely. The shims decide
   nothing. Each leaves the application's error queue as it was: sshd and others report the oldest
   error in it as their own.

   libcrypto is loaded when something is first computed: in su and sudo, for which the service
   computes, it never is. A host that has it already has the same one. */
#pragma once

/* Keeps the path of this file out of the binaries. */
#define OPENSSL_NO_FILENAMES

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#pragma clang assume_nonnull begin

/* Has libcrypto and all its functions that are called: 1, or 0 where one cannot be had. That is
   tried again by the next call; what has been had once stays. For any thread at any time. */
int otp_load(void);

/* Returns zeroed memory, at least one byte; or NULL. */
static inline void *_Nullable otp_allocate(size_t count) {
  return calloc(1, count > 0 ? count : 1);
}

/* Wipes memory, whatever the optimizer knows of it, and the registers that a call may change: they
   may still hold what was copied through them, and a later call of the host's that is bound lazily
   saves them on the stack. */
void otp_wipe(void *memory, size_t count);

/* Wipes and frees memory from otp_allocate. */
static inline void otp_release(void *memory, size_t count) {
  otp_wipe(memory, count);
  free(memory);
}

/* Whether both are equal: 1 or 0, in a time that depends on the count alone. */
int otp_equal(const void *_Nullable a, const void *_Nullable b, size_t count);

/* Whether both are equal: 1 or 0. Not for secrets, as the time reveals where they differ. */
static inline int otp_same(const void *_Nullable a, const void *_Nullable b, size_t count) {
  return count == 0 || memcmp(a, b, count) == 0;
}

/* The index of the first such byte, or `count`. */
static inline size_t otp_first(const void *_Nullable bytes, unsigned char byte, size_t count) {
  const char *found = count > 0 ? memchr(bytes, byte, count) : NULL;
  return found != NULL ? (size_t)(found - (const char *)bytes) : count;
}

/* The HMAC implementation of the default library context, or NULL. */
EVP_MAC *_Nullable otp_hmac_fetch(void);

/* The SHA-256 implementation of the default library context, or NULL. */
EVP_MD *_Nullable otp_sha256_fetch(void);

EVP_MAC_CTX *_Nullable otp_hmac_new(EVP_MAC *mac);

/* The digest for the raw value of a HashAlgorithm, or NULL. It is C because OSSL_PARAM keeps the
   pointer, and a string constant from Swift would be a temporary copy. */
static inline const char *_Nullable otp_digest_name(int algorithm) {
  switch (algorithm) {
    case 1: return OSSL_DIGEST_NAME_SHA1;
    case 2: return OSSL_DIGEST_NAME_SHA2_256;
    case 3: return OSSL_DIGEST_NAME_SHA2_512;
    default: return NULL;
  }
}

/* Sets the digest and the key. 1 or 0. */
int otp_hmac_key(EVP_MAC_CTX *context, int algorithm, const void *key, size_t count);

/* The HMAC of a message with the key set before. It reinitializes the context without the key,
   which drops what an earlier message left. Returns the number of bytes written, or 0. */
size_t otp_hmac_code(EVP_MAC_CTX *context, const void *_Nullable message, size_t count, void *code,
                     size_t capacity);

/* Wipes the key and frees the context. */
void otp_hmac_free(EVP_MAC_CTX *context);

/* 1 or 0. `output` must hold 32 bytes. */
int otp_sha256(const EVP_MD *digest, const void *_Nullable bytes, size_t count, void *output);

#pragma clang assume_nonnull end
