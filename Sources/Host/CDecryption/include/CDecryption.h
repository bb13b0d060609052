/* The functions of libcrypto by which the command reads encrypted key containers (RFC 6030), in a
   form that Swift can call safely. They decide nothing. Each leaves the error queue as it was. */
#pragma once

/* Keeps the path of this file out of the binaries. */
#define OPENSSL_NO_FILENAMES

#include <openssl/err.h>
#include <openssl/evp.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* AES in CBC mode, without a look at the padding. 1 or 0. The key has 16, 24 or 32 bytes, the
   initialization vector 16; `output` must hold `count` bytes, which are whole blocks. */
static inline int container_decrypt(const void *key, size_t key_count, const void *vector,
                                    const void *input, size_t count, void *output) {
  int length = 0, last = 0;
  const EVP_CIPHER *cipher = key_count == 16   ? EVP_aes_128_cbc()
                             : key_count == 24 ? EVP_aes_192_cbc()
                             : key_count == 32 ? EVP_aes_256_cbc()
                                               : NULL;
  if (cipher == NULL || count > INT_MAX || count % 16 != 0) return 0;
  ERR_set_mark();
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int done = context != NULL && EVP_DecryptInit_ex(context, cipher, NULL, key, vector) == 1
          && EVP_CIPHER_CTX_set_padding(context, 0) == 1
          && EVP_DecryptUpdate(context, output, &length, input, (int)count) == 1
          && EVP_DecryptFinal_ex(context, (unsigned char *)output + length, &last) == 1
          && (size_t)length + (size_t)last == count;
  EVP_CIPHER_CTX_free(context);
  ERR_pop_to_mark();
  return done;
}

static inline const EVP_MD *_Nullable container_hash(int bits) {
  return bits == 160 ? EVP_sha1() : bits == 256 ? EVP_sha256() : bits == 512 ? EVP_sha512() : NULL;
}

/* The key of a passphrase by PBKDF2 with the HMAC of a hash. 1 or 0. `bits`: 160, 256 or 512. */
static inline int container_derive(int bits, const void *passphrase, size_t count, const void *salt,
                                   size_t salt_count, int iterations, void *key, size_t key_count) {
  const EVP_MD *hash = container_hash(bits);
  if (hash == NULL || count > INT_MAX || salt_count > INT_MAX || key_count > INT_MAX) return 0;
  ERR_set_mark();
  int done = PKCS5_PBKDF2_HMAC((const char *)passphrase, (int)count, (const unsigned char *)salt,
                               (int)salt_count, iterations, hash, (int)key_count, key);
  ERR_pop_to_mark();
  return done == 1;
}

#pragma clang assume_nonnull end
