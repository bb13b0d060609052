/* Preloaded into a program where a test needs a clock that is kept right, whatever the machine says
   of its own, and one that runs ahead by AHEAD seconds. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int adjtimex(struct timex *clock) {
  clock->status = 0;
  return TIME_OK;
}

int clock_gettime(clockid_t id, struct timespec *time) {
  const char *ahead = getenv("AHEAD");
  int done = (int)syscall(SYS_clock_gettime, id, time);
  if (done == 0 && id == CLOCK_REALTIME && ahead != NULL) time->tv_sec += atol(ahead);
  return done;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
  return 0;
}
