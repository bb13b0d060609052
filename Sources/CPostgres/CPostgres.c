#include "CPostgres.h"

int pg_lock(pthread_mutex_t *mutex, uint64_t until) {
  struct timespec end = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
  return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &end);
}

int pg_take(sem_t *semaphore, int milliseconds) {
  int64_t end = pg_now() + milliseconds;
  struct timespec until = { (time_t)(end / 1000), (long)(end % 1000) * 1000000 };
  int done;
  do done = sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
  while (done < 0 && errno == EINTR);
  return done;
}
