/* Preloaded into a host of ring 3: a disk that is slow, or that writes less than it is told to.
     DISK_FLUSH   milliseconds that fdatasync takes
     DISK_LOG     a file that gets a line for each flush: the process, begin and end in nanoseconds of
                  CLOCK_MONOTONIC
     DISK_WRITE   of a write of a whole slot no more than this number of bytes is written */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long number(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int fdatasync(int descriptor) {
  int (*original)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  long long begin = now(), end = begin + number("DISK_FLUSH") * 1000000LL;
  int done = original(descriptor);
  struct timespec until = { end / 1000000000LL, end % 1000000000LL };
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) { }
  if (getenv("DISK_LOG") != NULL) {
    char line[80];
    int length = snprintf(line, sizeof line, "%d %lld %lld\n", (int)getpid(), begin, now());
    int log = open(getenv("DISK_LOG"), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (write(log, line, (size_t)length) != length) abort();
    close(log);
  }
  return done;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  ssize_t (*original)(int, const void *, size_t, off64_t) =
      (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  size_t most = (size_t)number("DISK_WRITE");
  return original(descriptor, bytes, count == 4096 && most > 0 ? most : count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  return pwrite64(descriptor, bytes, count, offset);
}
