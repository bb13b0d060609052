/* The conditions a host can be in when somebody logs in. */
#define _GNU_SOURCE
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 4 };

static volatile sig_atomic_t alarms;
static _Atomic int over, wrong, started;
static pthread_t companions[THREADS];
static int has_companions, has_little_stack;
static const char *complaint = "";

static void on_signal(int number) { alarms += number == SIGALRM; }

static void handle_all(void) {
  struct sigaction action = {.sa_handler = on_signal};
  for (int number = 1; number < 32; number++) sigaction(number, &action, NULL);
}

static void ignore_all(void) {
  for (int number = 1; number < 32; number++)
    if (number != SIGCHLD) signal(number, SIG_IGN);
}

static void block_all(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}

static void alarm_pending(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigaddset(&set, SIGXFSZ);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGALRM);
  raise(SIGXFSZ);
}

/* Every call that can be interrupted is: a signal each 150 microseconds, without SA_RESTART. */
static void alarm_storm(void) {
  struct sigaction action = {.sa_handler = on_signal};
  struct itimerval often = {{0, 150}, {0, 150}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
}

static void closed(void) {
  for (int fd = 0; fd < 3; fd++) close(fd);
}

/* Leaves this number of free descriptors below the limit. */
static void fill(int room) {
  struct rlimit limit = {256, 256};
  int fd, last[16], count = 0;
  setrlimit(RLIMIT_NOFILE, &limit);
  while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) last[count++ % 16] = fd;
  for (int i = 0; i < room; i++) close(last[--count % 16]);
}

static void full(void) { fill(0); }
static void room_for_1(void) { fill(1); }
static void room_for_2(void) { fill(2); }
static void room_for_3(void) { fill(3); }
static void room_for_4(void) { fill(4); }
static void room_for_8(void) { fill(8); }

static void no_writing(void) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_FSIZE, &none); /* and SIGXFSZ ends the host, unless the module looks after it */
}

static void no_home(void) { unsetenv("HOME"); }
static void no_environment(void) { clearenv(); }
static void open_umask(void) { umask(0); }
static void shut_umask(void) { umask(0777); }
static void set_uid(void) { if (setresuid(3002, 0, 0) != 0) exit(71); }
static void other_locale(void) { setlocale(LC_ALL, "C.UTF-8"); }

static void no_directory(void) {
  char name[] = "/tmp/gone-XXXXXX";
  if (mkdtemp(name) == NULL || chdir(name) != 0 || rmdir(name) != 0) exit(71);
}

/* Looks at its own thread without end: nobody else may change it. */
static void *accompany(void *none) {
  uid_t first[3], now[3];
  unsigned long mask = 0, mask_now = 0;
  syscall(SYS_getresuid, &first[0], &first[1], &first[2]);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
  started++;
  while (!over) {
    syscall(SYS_getresuid, &now[0], &now[1], &now[2]);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask_now, 8);
    if (memcmp(first, now, sizeof now) != 0 || mask != mask_now) wrong++;
    free(malloc(100));
    sched_yield();
  }
  return none;
}

static void threads(void) {
  has_companions = 1;
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&companions[i], NULL, accompany, NULL) != 0) exit(71);
  while (started < THREADS) sched_yield();
}

static void threads_of_set_uid(void) {
  set_uid();
  threads();
}

/* Loaded and unloaded a thousand times, by a thread that is gone when somebody logs in. */
static void *reload(void *none) {
  for (int i = 0; i < 1000; i++) {
    void *module = dlopen(getenv("GUEST_MODULE"), RTLD_NOW);
    if (module == NULL || dlclose(module) != 0) exit(71);
  }
  return none;
}

static void reloaded(void) {
  pthread_t one;
  if (pthread_create(&one, NULL, reload, NULL) != 0) exit(71);
  pthread_join(one, NULL);
}

static void little_stack(void) { has_little_stack = 1; }
static void plain(void) {}

static const struct { const char *name; void (*bring_about)(void); } conditions[] = {
  {"plain", plain}, {"closed", closed}, {"no-home", no_home}, {"no-environment", no_environment},
  {"full", full}, {"room-for-1", room_for_1}, {"room-for-2", room_for_2},
  {"room-for-3", room_for_3}, {"room-for-4", room_for_4}, {"room-for-8", room_for_8},
  {"alarm-pending", alarm_pending}, {"alarm-storm", alarm_storm}, {"all-handled", handle_all},
  {"all-ignored", ignore_all}, {"all-blocked", block_all}, {"umask-0", open_umask},
  {"umask-777", shut_umask}, {"set-uid", set_uid}, {"locale", other_locale},
  {"no-directory", no_directory}, {"no-writing", no_writing}, {"threads", threads},
  {"threads-of-set-uid", threads_of_set_uid}, {"little-stack", little_stack},
  {"reloaded", reloaded},
};

int bring_about(const char *condition) {
  for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
    if (strcmp(conditions[i].name, condition) == 0) {
      conditions[i].bring_about();
      return 1;
    }
  return 0;
}

const char *end_condition(void) {
  over = 1;
  for (int i = 0; has_companions && i < THREADS; i++) pthread_join(companions[i], NULL);
  if (wrong > 0) complaint = "another thread saw its user or its signals changed";
  return complaint;
}

static void *call(void *play) {
  ((void (*)(void))play)();
  return NULL;
}

void in_condition(void (*play)(void)) {
  pthread_attr_t little;
  pthread_t one;
  if (!has_little_stack) return play();
  pthread_attr_init(&little);
  pthread_attr_setstacksize(&little, 64 << 10);
  if (pthread_create(&one, &little, call, (void *)play) != 0) exit(71);
  pthread_join(one, NULL);
}
