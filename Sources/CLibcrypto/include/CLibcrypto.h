/* The functions of libcrypto that OneTimePassword and the verifier need, in a form that Swift can
   call safely. They decide nothing. Each leaves the application's error queue as it was: sshd and others report the
   oldest error in it as their own. */
#pragma once

/* Keeps the path of this file out of the binaries. */
#define OPENSSL_NO_FILENAMES

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#pragma clang assume_nonnull begin

/* Returns zeroed memory, at least one byte, as OPENSSL_zalloc(0) returns NULL; or NULL. */
static inline void *_Nullable otp_allocate(size_t count) {
  ERR_set_mark();
  void *memory = OPENSSL_zalloc(count > 0 ? count : 1);
  ERR_pop_to_mark();
  return memory;
}

/* Wipes and frees memory from otp_allocate. */
static inline void otp_release(void *memory, size_t count) {
  OPENSSL_clear_free(memory, count);
}

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

/* The HMAC of a message with the key set before. It reinitializes the context without the key,
   which drops what an earlier message left. Returns the number of bytes written, or 0. */
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

/* Wipes the key and frees the context. */
static inline void otp_hmac_free(EVP_MAC_CTX *context) {
  EVP_MAC_CTX_free(context);
}

/* 1 or 0. `output` must hold 32 bytes. */
static inline int otp_sha256(const EVP_MD *digest, const void *_Nullable bytes, size_t count,
                             void *output) {
  if (EVP_MD_get_size(digest) != 32) return 0;
  ERR_set_mark();
  int done = EVP_Digest(bytes, count, output, NULL, digest, NULL);
  ERR_pop_to_mark();
  return done == 1;
}

/* HMAC-SHA-256 of a message, once. 1 or 0. `code` must hold 32 bytes. */
static inline int otp_hmac_sha256(const void *key, size_t key_count, const void *message,
                                  size_t count, void *code) {
  unsigned int written = 0;
  if (key_count > INT_MAX) return 0;
  ERR_set_mark();
  void *done = HMAC(EVP_sha256(), key, (int)key_count, message, count, code, &written);
  ERR_pop_to_mark();
  return done != NULL && written == 32;
}

/* AES-256-GCM: encrypts, or decrypts and checks. 1 or 0. The key has 32 bytes, the nonce 12, the tag
   16; `output` must hold `count` bytes, and holds nothing to be used where this gives 0. */
static inline int otp_gcm(int encrypts, const unsigned char *key, const unsigned char *nonce,
                          const unsigned char *beside, size_t beside_count,
                          const unsigned char *input, size_t count, unsigned char *output,
                          unsigned char *tag) {
  int length = 0, last = 0;
  if (count > INT_MAX || beside_count > INT_MAX) return 0;
  ERR_set_mark();
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int done = context != NULL
          && EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce, encrypts) == 1
          && EVP_CipherUpdate(context, NULL, &length, beside, (int)beside_count) == 1
          && EVP_CipherUpdate(context, output, &length, input, (int)count) == 1
          && (encrypts || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, 16, tag) == 1)
          && EVP_CipherFinal_ex(context, output + length, &last) == 1
          && (!encrypts || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, tag) == 1)
          && (size_t)length + (size_t)last == count;
  EVP_CIPHER_CTX_free(context);
  ERR_pop_to_mark();
  return done;
}

#pragma clang assume_nonnull end
