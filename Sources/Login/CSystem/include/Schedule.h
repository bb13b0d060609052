/* How the kernel schedules this thread. With 0 for the process, the calls mean the calling thread.
   sched_setattr(2) is not used: since Linux 6.12 it would turn the default time slice into one set
   for the thread. */
#pragma once

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* The policy with SCHED_RESET_ON_FORK, -1 if unknown; the nice value; the I/O priority, 0 if the
   thread has none of its own. */
typedef struct { int32_t policy, nice, disk; } sys_schedule;

enum { sys_other = 0, sys_batch = 3, sys_idle = 5, sys_reset_on_fork = 0x40000000,
       sys_disk_usual = 2 << 13 | 4 };

static inline sys_schedule sys_get_schedule(void) {
  sys_schedule found = { .policy = (int32_t)syscall(SYS_sched_getscheduler, 0) };
  errno = 0;
  found.nice = getpriority(PRIO_PROCESS, 0);
  if (errno != 0) found.policy = -1;
  long disk = syscall(SYS_ioprio_get, 1, 0);
  found.disk = disk < 0 ? 0 : (int32_t)disk;
  return found;
}

static inline int sys_set_schedule(int policy, int nice) {
  struct sched_param none = { 0 };
  if (syscall(SYS_sched_setscheduler, 0, policy, &none) < 0) return -errno;
  return setpriority(PRIO_PROCESS, 0, nice) < 0 ? -errno : 0;
}

static inline void sys_set_disk_priority(int priority) {
  (void)syscall(SYS_ioprio_set, 1, 0, priority);
}

#pragma clang assume_nonnull end
