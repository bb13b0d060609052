#include "CLibcrypto.h"

#include <dlfcn.h>
#include <stdatomic.h>

/* -- libcrypto */

#define EACH_FUNCTION(USE) \
  USE(ERR_set_mark) USE(ERR_pop_to_mark) USE(EVP_MAC_fetch) USE(EVP_MAC_CTX_new) \
  USE(EVP_MAC_CTX_free) USE(EVP_MAC_init) USE(EVP_MAC_update) USE(EVP_MAC_final) \
  USE(EVP_MD_fetch) USE(EVP_MD_get_size) USE(EVP_Digest)
#define FIELD(name) __typeof__(&name) name;
#define NAME(name) #name "\0"

typedef struct { EACH_FUNCTION(FIELD) } functions;
static const char names[] = EACH_FUNCTION(NAME);

/* NULL, or complete: no thread sees a part of it. */
static functions *_Atomic libcrypto;

/* Threads that come at once fill one each, and the first one stays: nobody waits for anybody, not in
   a child either that was forked in between. libcrypto is never unloaded. */
int otp_load(void) {
  if (libcrypto != NULL) return 1;
  void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  functions *found = library != NULL ? malloc(sizeof *found) : NULL;
  if (found == NULL) return 0;
  void **slot = (void **)found;
  for (const char *name = names; *name != 0; name += strlen(name) + 1)
    if ((*slot++ = dlsym(library, name)) == NULL) {
      free(found);
      return 0;
    }
  functions *none = NULL;
  if (!atomic_compare_exchange_strong(&libcrypto, &none, found)) free(found);
  return 1;
}

/* A caller that has an HMAC, a context or a digest has it from functions that are there. */
#define CALL(name) libcrypto->name

/* Leaves the application's error queue as it was. */
#define QUIETLY(calls) ({ \
  CALL(ERR_set_mark)(); \
  __auto_type result = (calls); \
  CALL(ERR_pop_to_mark)(); \
  result; })

EVP_MAC *otp_hmac_fetch(void) {
  if (!otp_load()) return NULL;
  return QUIETLY(CALL(EVP_MAC_fetch)(NULL, OSSL_MAC_NAME_HMAC, NULL));
}

EVP_MD *otp_sha256_fetch(void) {
  if (!otp_load()) return NULL;
  return QUIETLY(CALL(EVP_MD_fetch)(NULL, OSSL_DIGEST_NAME_SHA2_256, NULL));
}

EVP_MAC_CTX *otp_hmac_new(EVP_MAC *mac) { return QUIETLY(CALL(EVP_MAC_CTX_new)(mac)); }

int otp_hmac_key(EVP_MAC_CTX *context, int algorithm, const void *key, size_t count) {
  const char *name = otp_digest_name(algorithm);
  if (name == NULL) return 0;
  /* As OSSL_PARAM_construct_utf8_string and OSSL_PARAM_construct_end make them. */
  OSSL_PARAM params[2] = {
    { OSSL_MAC_PARAM_DIGEST, OSSL_PARAM_UTF8_STRING, (char *)name, strlen(name),
      OSSL_PARAM_UNMODIFIED },
    { NULL, 0, NULL, 0, 0 },
  };
  return QUIETLY(CALL(EVP_MAC_init)(context, key, count, params) == 1);
}

size_t otp_hmac_code(EVP_MAC_CTX *context, const void *message, size_t count, void *code,
                     size_t capacity) {
  size_t written = 0;
  int done = QUIETLY(CALL(EVP_MAC_init)(context, NULL, 0, NULL) == 1
                     && CALL(EVP_MAC_update)(context, message, count) == 1
                     && CALL(EVP_MAC_final)(context, code, &written, capacity) == 1);
  return done ? written : 0;
}

void otp_hmac_free(EVP_MAC_CTX *context) { CALL(EVP_MAC_CTX_free)(context); }

int otp_sha256(const EVP_MD *digest, const void *bytes, size_t count, void *output) {
  if (CALL(EVP_MD_get_size)(digest) != 32) return 0;
  return QUIETLY(CALL(EVP_Digest)(bytes, count, output, NULL, digest, NULL) == 1);
}

/* -- Wiping */

#if defined(__x86_64__)
/* Whether the system lets programs use XRSTOR: CPUID 1, ECX, bit 27. */
static inline int has_xrstor(void) {
  static _Atomic unsigned known; /* 0: not asked yet */
  if (known == 0) {
    unsigned a = 1, b, c, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    known = 1 + (c >> 27 & 1);
  }
  return known == 2;
}

/* Puts the vector registers back into their initial state without naming them: all that this
   processor has, since the C library copies through those of AVX-512, too. What counts of the area is
   its header and MXCSR, which stays as it is; but all of it must be there: a processor may look whether
   it can be read, and the stack may end right behind. Intel SDM volume 1, section 13.8. */
static inline void clear_vectors(void) {
  enum { sse = 1 << 1, avx = 1 << 2, avx512 = 7 << 5, mxcsr = 24 / 4, header = 512 / 4,
         whole = 2816 / 4 /* to the end of AVX-512's */ };
  _Alignas(64) uint32_t area[whole];
  if (!has_xrstor()) {
    __asm__ volatile(
      "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3;"
      "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7"
      : : : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return;
  }
  memset(area + header, 0, 64);
  __asm__ volatile("stmxcsr %0" : "=m"(area[mxcsr]));
  __asm__ volatile("xrstor %0" : : "m"(area), "a"(sse | avx | avx512), "d"(0)
                   : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                     "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#define CLEARED "all-gpr"
#else
static inline void clear_vectors(void) {}
#define CLEARED "all"
#endif

__attribute__((noinline, zero_call_used_regs(CLEARED)))
void otp_wipe(void *memory, size_t count) {
  explicit_bzero(memory, count);
  clear_vectors();
}

/* -- Comparing */

int otp_equal(const void *a, const void *b, size_t count) {
  const volatile unsigned char *left = a, *right = b;
  unsigned char difference = 0;
  for (size_t index = 0; index < count; index++) difference |= left[index] ^ right[index];
  return difference == 0;
}
