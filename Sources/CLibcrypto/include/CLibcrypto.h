/* What OneTimePassword needs of libcrypto, in a form that Swift can call safely.
   No shim decides anything. Each leaves the error queue of the host as it found it:
   sshd and others report the oldest error in it as their own. */
#pragma once

/* Else the name of this file, with its directory, would stand in what is shipped. */
#define OPENSSL_NO_FILENAMES

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stddef.h>
#include <string.h>

#pragma clang assume_nonnull begin

/* Zeroed memory, or NULL. At least one byte, because a request for none gives NULL. */
static inline void *_Nullable otp_allocate(size_t count) {
  ERR_set_mark();
  void *memory = OPENSSL_zalloc(count > 0 ? count : 1);
  ERR_pop_to_mark();
  return memory;
}

/* Wipes and frees what otp_allocate gave. */
static inline void otp_release(void *memory, size_t count) {
  OPENSSL_clear_free(memory, count);
}

/* For what is no secret: the time tells where two differ. 1 or 0. */
static inline int otp_same(const void *_Nullable a, const void *_Nullable b, size_t count) {
  return count == 0 || memcmp(a, b, count) == 0;
}

/* Where the byte stands first, or `count`. */
static inline size_t otp_first(const void *_Nullable bytes, unsigned char byte, size_t count) {
  const char *found = count > 0 ? memchr(bytes, byte, count) : NULL;
  return found != NULL ? (size_t)(found - (const char *)bytes) : count;
}

/* The HMAC implementation of the default library context, or NULL. */
static inline EVP_MAC *_Nullable otp_hmac_fetch(void) {
  ERR_set_mark();
  EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
  ERR_pop_to_mark();
  return mac;
}

/* The SHA-256 implementation of the default library context, or NULL. */
static inline EVP_MD *_Nullable otp_sha256_fetch(void) {
  ERR_set_mark();
  EVP_MD *digest = EVP_MD_fetch(NULL, OSSL_DIGEST_NAME_SHA2_256, NULL);
  ERR_pop_to_mark();
  return digest;
}

static inline EVP_MAC_CTX *_Nullable otp_hmac_new(EVP_MAC *mac) {
  ERR_set_mark();
  EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
  ERR_pop_to_mark();
  return context;
}

/* The digest of a HashAlgorithm by its raw value, or NULL. The parameter array is built here:
   from Swift a string constant would be a temporary copy, and OSSL_PARAM keeps the pointer. */
static inline const char *_Nullable otp_digest_name(int algorithm) {
  switch (algorithm) {
    case 1: return OSSL_DIGEST_NAME_SHA1;
    case 2: return OSSL_DIGEST_NAME_SHA2_256;
    case 3: return OSSL_DIGEST_NAME_SHA2_512;
    default: return NULL;
  }
}

/* Sets digest and key. 1 or 0. */
static inline int otp_hmac_key(EVP_MAC_CTX *context, int algorithm, const void *key,
                               size_t count) {
  const char *name = otp_digest_name(algorithm);
  if (name == NULL) return 0;
  OSSL_PARAM params[2] = {
    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)name, 0),
    OSSL_PARAM_construct_end(),
  };
  ERR_set_mark();
  int done = EVP_MAC_init(context, key, count, params);
  ERR_pop_to_mark();
  return done == 1;
}

/* The code of one message under the key set before: starts over without keying again, so that
   nothing of an earlier or half-done message stays. The number of bytes written, or 0. */
static inline size_t otp_hmac_code(EVP_MAC_CTX *context, const void *_Nullable message,
                                   size_t count, void *code, size_t capacity) {
  size_t written = 0;
  ERR_set_mark();
  int done = EVP_MAC_init(context, NULL, 0, NULL) == 1
          && EVP_MAC_update(context, message, count) == 1
          && EVP_MAC_final(context, code, &written, capacity) == 1;
  ERR_pop_to_mark();
  return done ? written : 0;
}

/* Wipes the key and frees. */
static inline void otp_hmac_free(EVP_MAC_CTX *context) {
  EVP_MAC_CTX_free(context);
}

/* 1, or 0. `output` holds 32 bytes. */
static inline int otp_sha256(const EVP_MD *digest, const void *_Nullable bytes, size_t count,
                             void *output) {
  if (EVP_MD_get_size(digest) != 32) return 0;
  ERR_set_mark();
  int done = EVP_Digest(bytes, count, output, NULL, digest, NULL);
  ERR_pop_to_mark();
  return done == 1;
}

#pragma clang assume_nonnull end
