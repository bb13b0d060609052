/* Linked with the acceptance driver (-Wl,--wrap=pam_start_confdir,--wrap=pam_end), this measures
 * whole PAM transactions, from pam_start to pam_end, as its environment asks:
 *   BENCH_TIMES=FILE   appends {begin, end, processor time, PAM's result} of each, 64-bit numbers,
 *                      nanoseconds; begin and end by the monotonic clock
 *   BENCH_MARK=1       the system calls access("/mark/begin") and ("/mark/end") around each
 *   BENCH_WARM=1       libcrypto is loaded and has hashed once before the first, as in sshd
 *   BENCH_PEAK=FILE    writes at the end the most memory the host ever held, "VmHWM: N kB"
 *   BENCH_GATE=FD      starts only after reading a byte there
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <security/pam_appl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int __real_pam_start_confdir(const char *, const char *, const struct pam_conv *, const char *,
                             pam_handle_t **);
int __real_pam_end(pam_handle_t *, int);
int __wrap_pam_start_confdir(const char *, const char *, const struct pam_conv *, const char *,
                             pam_handle_t **);
int __wrap_pam_end(pam_handle_t *, int);

static FILE *times;
static int mark;
static int64_t begun, spent;

/* The peers ask time(), not clock_gettime(): they too get the clock that the driver sets. */
time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

static int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int __wrap_pam_start_confdir(const char *service, const char *user, const struct pam_conv *talk,
                             const char *confdir, pam_handle_t **pamh) {
  if (mark) access("/mark/begin", F_OK);
  if (times != NULL) {
    begun = nanoseconds(CLOCK_MONOTONIC);
    spent = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  }
  return __real_pam_start_confdir(service, user, talk, confdir, pamh);
}

int __wrap_pam_end(pam_handle_t *pamh, int result) {
  int done = __real_pam_end(pamh, result);
  if (times != NULL) {
    const int64_t took = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - spent;
    const int64_t record[4] = {begun, nanoseconds(CLOCK_MONOTONIC), took, result};
    fwrite(record, sizeof record, 1, times);
  }
  if (mark) access("/mark/end", F_OK);
  return done;
}

static void warm_libcrypto(void) {
  unsigned char digest[64];
  void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_GLOBAL);
  const void *(*sha1)(void) = (const void *(*)(void))dlsym(library, "EVP_sha1");
  int (*hash)(const void *, size_t, unsigned char *, unsigned *, const void *, void *) =
      (int (*)(const void *, size_t, unsigned char *, unsigned *, const void *, void *))dlsym(
          library, "EVP_Digest");
  if (hash("x", 1, digest, NULL, sha1(), NULL) != 1) abort();
}

__attribute__((constructor)) static void prepare(void) {
  const char *path = getenv("BENCH_TIMES"), *gate = getenv("BENCH_GATE");
  char byte;
  mark = getenv("BENCH_MARK") != NULL;
  if (path != NULL && (times = fopen(path, "ae")) == NULL) abort();
  if (getenv("BENCH_WARM") != NULL) warm_libcrypto();
  if (gate != NULL && read(atoi(gate), &byte, 1) != 1) abort();
}

/* ru_maxrss will not do: it counts what the parent held before exec. */
__attribute__((destructor)) static void report_peak(void) {
  const char *path = getenv("BENCH_PEAK");
  char line[256];
  FILE *out = path == NULL ? NULL : fopen(path, "we");
  FILE *status = out == NULL ? NULL : fopen("/proc/self/status", "re");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "VmHWM:", 6) == 0) fputs(line, out);
  if (status != NULL) fclose(status);
  if (out != NULL) fclose(out);
}
