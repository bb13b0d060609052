/* How the kernel lets this thread run. Raw system calls: the C library has none for these. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* struct sched_attr of the kernel, version 0, and the priority of disk access; 0 where unknown. */
typedef struct {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
  int32_t disk;
} sys_schedule;

enum { sys_schedule_size = 48, sys_fifo = 1, sys_reset_on_fork = 1 };

/* Fills `schedule`; size 0 where the kernel does not tell. */
static inline void sys_get_schedule(sys_schedule *schedule) {
  *schedule = (sys_schedule){ 0 };
  if (syscall(SYS_sched_getattr, 0, schedule, sys_schedule_size, 0) < 0) schedule->size = 0;
  long disk = syscall(SYS_ioprio_get, 1, 0);
  schedule->disk = disk < 0 ? 0 : (int32_t)disk;
}

/* Ahead of all that is not real-time, for itself and not for its children; disk access as that of
   everybody else. Negative where it is not allowed, with nothing changed. */
static inline int sys_hurry(const sys_schedule *before) {
  sys_schedule first = { .size = sys_schedule_size, .policy = sys_fifo, .priority = 1,
                         .flags = before->flags | sys_reset_on_fork };
  if (syscall(SYS_sched_setattr, 0, &first, 0) < 0) return -errno;
  if (before->disk != 0) (void)syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4);
  return 0;
}

/* As it was. */
static inline int sys_put_back_schedule(const sys_schedule *before) {
  sys_schedule attributes = *before;
  attributes.size = sys_schedule_size;
  if (before->disk != 0) (void)syscall(SYS_ioprio_set, 1, 0, before->disk);
  return syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? -errno : 0;
}

#pragma clang assume_nonnull end
