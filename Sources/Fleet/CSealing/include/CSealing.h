/* The functions of libcrypto that seal, in a form that Swift can call safely. They decide nothing.
   Each leaves the error queue as it was. */
#pragma once

/* Keeps the path of this file out of the binaries. */
#define OPENSSL_NO_FILENAMES

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

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

/* The key of a passphrase by scrypt (RFC 7914) with r = 8 and p = 1, which takes `n` KiB of memory.
   1 or 0. */
static inline int otp_scrypt(const char *passphrase, size_t count, const unsigned char *salt,
                             size_t salt_count, uint64_t n, unsigned char *key, size_t key_count) {
  ERR_set_mark();
  int done = EVP_PBE_scrypt(passphrase, count, salt, salt_count, n, 8, 1, (n + 1024) * 1024, key,
                            key_count);
  ERR_pop_to_mark();
  return done == 1;
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

/* AES-256-SIV (RFC 5297): encrypts, or decrypts and checks. 1 or 0. The key has 64 bytes, the tag
   16; neither what is authenticated beside the text nor the text may be empty, which libcrypto
   forgets in some versions; `output` must hold `count` bytes, and holds nothing to be used where
   this gives 0. */
static inline int otp_siv(int encrypts, const unsigned char *key, const unsigned char *beside,
                          size_t beside_count, const unsigned char *input, size_t count,
                          unsigned char *output, unsigned char *tag) {
  int length = 0, last = 0;
  if (count == 0 || count > INT_MAX || beside_count == 0 || beside_count > INT_MAX) return 0;
  ERR_set_mark();
  EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-SIV", NULL);
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int done = cipher != NULL && context != NULL
          && EVP_CipherInit_ex(context, cipher, NULL, key, NULL, encrypts) == 1
          && (encrypts || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1)
          && EVP_CipherUpdate(context, NULL, &length, beside, (int)beside_count) == 1
          && EVP_CipherUpdate(context, output, &length, input, (int)count) == 1
          && EVP_CipherFinal_ex(context, output + length, &last) == 1
          && (!encrypts || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1)
          && (size_t)length + (size_t)last == count;
  EVP_CIPHER_CTX_free(context);
  EVP_CIPHER_free(cipher);
  ERR_pop_to_mark();
  return done;
}

#pragma clang assume_nonnull end
