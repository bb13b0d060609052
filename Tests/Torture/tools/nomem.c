/* Preloaded: lets one allocation fail, or all from one on, between the marks of the driver,
 * and not where it pauses.
 *
 *   NOMEM_AT=N         the N-th allocation after access("/mark/begin") fails (0: none)
 *   NOMEM_ON=1         and all after it until access("/mark/end")
 *   NOMEM_COUNT=FILE   writes the number of allocations there at the end mark
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static _Atomic long begun, paused, count;
static long at, on;
static const char *report;

__attribute__((constructor)) static void prepare(void) {
  const char *text = getenv("NOMEM_AT");
  at = text == NULL ? 0 : atol(text);
  on = getenv("NOMEM_ON") != NULL;
  report = getenv("NOMEM_COUNT");
}

static int fails(void) {
  if (!begun || paused) return 0;
  long number = atomic_fetch_add(&count, 1) + 1;
  if (at == 0 || (on ? number < at : number != at)) return 0;
  errno = ENOMEM;
  return 1;
}

/* The driver's marks, seen on their way to the kernel. */
int access(const char *path, int mode) {
  if (strcmp(path, "/mark/begin") == 0) begun = 1;
  if (strcmp(path, "/mark/pause") == 0) paused = 1;
  if (strcmp(path, "/mark/resume") == 0) paused = 0;
  if (strcmp(path, "/mark/end") == 0) {
    begun = 0;
    FILE *file = report == NULL ? NULL : fopen(report, "we");
    if (file != NULL) fprintf(file, "%ld\n", count), fclose(file);
  }
  return (int)syscall(SYS_access, path, mode);
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t many, size_t size) { return fails() ? NULL : __libc_calloc(many, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t align, size_t size) { return fails() ? NULL : __libc_memalign(align, size); }

void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

int posix_memalign(void **made, size_t align, size_t size) {
  int before = errno;
  *made = memalign(align, size);
  errno = before;
  return *made == NULL ? ENOMEM : 0;
}
