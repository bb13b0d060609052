/* Runs a program and breaks one of its system calls, or every such call from one on.
 *
 *   fault [-t FILE] [-b NUMBER] [-n N -a ACTION [-c COUNT]] command…
 *
 * Calls are counted from 1 behind the beginning: access("/mark/begin"), or with -b the first call
 * of that number; until access("/mark/end") or the end; not between access("/mark/pause") and
 * access("/mark/resume"). -t writes "NUMBER PATH" for each: PATH is that of its first argument, a
 * descriptor, or the name it was given.
 *   -a kill        SIGKILL in place of the call: before it, and after the one that was before
 *   -a killed      SIGKILL after the call, before the program sees its result
 *   -a fail=ERRNO  the call does not happen and fails so; a close happens and fails
 *   -a short=N     reads, writes and sendings of more than N bytes are of N bytes
 *   -c COUNT       how many calls of that number are broken, in a row (1; 0: all from there on)
 * The program is this process; the one that breaks it is a child, as with `strace -D`. What a child
 * of the program does is not counted: its calls lie between the others by chance. A program
 * that makes more than 300,000 calls hangs, and is killed by SIGXCPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __x86_64__
#error "knows the registers of x86-64 only"
#endif

enum action { NOTHING, KILL, KILLED, FAIL, SHORT };
enum { MOST_CALLS = 300000, MOST_THREADS = 64 };

static enum action action;
static long begin_at = -1, chosen, value, broken_number = -1;
static long calls, seen, left = 1;
static int begun, ended, paused;
static FILE *trace;
static pid_t program;

/* What is known of a thread between the entry of a call and its exit. */
static struct thread {
  pid_t id;
  int inside, counted, broken, is_child;
  unsigned long count;
} threads[MOST_THREADS];

static int is_of_program(pid_t id) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d", program, id);
  return access(path, F_OK) == 0;
}

static struct thread *thread(pid_t id) {
  int free_one = -1;
  for (int i = 0; i < MOST_THREADS; i++) {
    if (threads[i].id == id) return &threads[i];
    if (threads[i].id == 0 && free_one < 0) free_one = i;
  }
  if (free_one < 0) exit(70);
  threads[free_one] = (struct thread){.id = id, .is_child = !is_of_program(id)};
  return &threads[free_one];
}

static void read_text(pid_t id, unsigned long address, char *text, size_t size) {
  struct iovec to = {text, size - 1}, from = {(void *)address, size - 1};
  size_t page = 4096 - address % 4096;
  if (page < from.iov_len) from.iov_len = page;
  ssize_t done = process_vm_readv(id, &to, 1, &from, 1, 0);
  text[done < 0 ? 0 : done] = 0;
}

static int takes_path(long number) { return number == SYS_access || number == SYS_open; }

static int takes_path_in_directory(long number) {
  return number == SYS_openat || number == SYS_newfstatat || number == SYS_mkdirat ||
         number == SYS_unlinkat || number == SYS_renameat2 || number == SYS_renameat ||
         number == SYS_faccessat || number == SYS_faccessat2 || number == SYS_readlinkat;
}

static void name_argument(pid_t id, const struct user_regs_struct *r, long number, char *path,
                          size_t size) {
  char link[64], name[256] = "";
  ssize_t length = -1;
  *path = 0;
  if (takes_path(number)) return read_text(id, r->rdi, path, size);
  if (takes_path_in_directory(number)) read_text(id, r->rsi, name, sizeof name);
  if (*name != '/' && (int)r->rdi >= 0) {
    snprintf(link, sizeof link, "/proc/%d/fd/%d", id, (int)r->rdi);
    length = readlink(link, path, size - 1);
  }
  path[length < 0 ? 0 : length] = 0;
  if (*name != 0) snprintf(path + strlen(path), size - strlen(path), "/%s", name);
}

static int has_count(long number) {
  return number == SYS_getrandom || number == SYS_read || number == SYS_pread64 ||
         number == SYS_write || number == SYS_pwrite64 || number == SYS_sendto;
}

#define REGISTER(name) offsetof(struct user_regs_struct, name)

/* Where a call has the number of bytes it is asked for. */
static size_t count_register(long number) {
  return number == SYS_getrandom ? REGISTER(rsi) : REGISTER(rdx);
}

static void set(pid_t id, size_t offset, unsigned long to) {
  ptrace(PTRACE_POKEUSER, id, (void *)offset, (void *)to);
}

/* Whether the marks of the driver open or close the time that counts; a mark does not count. */
static int is_mark(pid_t id, const struct user_regs_struct *r, long number) {
  char path[32];
  if (number == begin_at && !begun) begun = 1;
  if (number != SYS_access) return 0;
  read_text(id, r->rdi, path, sizeof path);
  if (strcmp(path, "/mark/begin") == 0) begun = 1;
  else if (strcmp(path, "/mark/end") == 0) ended = 1;
  else if (strcmp(path, "/mark/pause") == 0) paused = 1;
  else if (strcmp(path, "/mark/resume") == 0) paused = 0;
  else return 0;
  return 1;
}

static void break_call(pid_t id, struct thread *one, const struct user_regs_struct *r,
                       long number) {
  if (action == KILL) kill(id, SIGKILL);
  one->broken = 1;
  if (action == FAIL && number != SYS_close) set(id, REGISTER(orig_rax), -1);
  if (action != SHORT) return;
  one->count = number == SYS_getrandom ? r->rsi : r->rdx;
  if (one->count > (unsigned long)value) set(id, count_register(number), (unsigned long)value);
}

static void enter(pid_t id, struct thread *one) {
  struct user_regs_struct r;
  char path[512];
  if (ptrace(PTRACE_GETREGS, id, NULL, &r) != 0) return;
  long number = (long)r.orig_rax;
  one->inside = 1;
  one->counted = one->broken = 0;
  if (++seen > MOST_CALLS) kill(id, SIGXCPU), ended = 1;
  if (is_mark(id, &r, number) || !begun || ended || paused || one->is_child)
    return;
  calls++;
  one->counted = 1;
  if (trace != NULL) {
    name_argument(id, &r, number, path, sizeof path);
    fprintf(trace, "%ld %s\n", number, path);
    fflush(trace);
  }
  if (chosen == 0 || calls < chosen || left == 0) return;
  if (calls == chosen) broken_number = number;
  if (number != broken_number) return;
  if (action == SHORT && !has_count(number)) return;
  if (left > 0) left--;
  break_call(id, one, &r, number);
}

static void leave(pid_t id, struct thread *one) {
  struct user_regs_struct r;
  one->inside = 0;
  if (!one->broken || ptrace(PTRACE_GETREGS, id, NULL, &r) != 0) return;
  if (action == KILLED) kill(id, SIGKILL);
  if (action == FAIL) set(id, REGISTER(rax), (unsigned long)-value);
  if (action == SHORT) set(id, count_register((long)r.orig_rax), one->count);
}

/* Follows the program until nothing of it is left. */
static void follow(void) {
  int status;
  pid_t id;
  while ((id = waitpid(-1, &status, __WALL)) > 0) {
    int signal = 0;
    if (!WIFSTOPPED(status)) {
      thread(id)->id = 0;
      continue;
    }
    int event = status >> 16, stop = WSTOPSIG(status);
    struct thread *one = thread(id);
    if (stop == (SIGTRAP | 0x80)) {
      if (one->inside) leave(id, one);
      else enter(id, one);
    } else if (event == PTRACE_EVENT_EXEC) {
      one->inside = 1; /* what follows is the exit of execve */
    } else if (event == PTRACE_EVENT_STOP && (stop == SIGSTOP || stop == SIGTSTP)) {
      ptrace(PTRACE_LISTEN, id, NULL, NULL);
      continue;
    } else if (event == 0) {
      signal = stop;
    }
    ptrace(PTRACE_SYSCALL, id, NULL, (void *)(long)signal);
  }
}

static void choose(const char *text) {
  const char *equals = strchr(text, '=');
  value = equals == NULL ? 0 : atol(equals + 1);
  if (strcmp(text, "kill") == 0) action = KILL;
  else if (strcmp(text, "killed") == 0) action = KILLED;
  else if (strncmp(text, "fail=", 5) == 0) action = FAIL;
  else if (strncmp(text, "short=", 6) == 0) action = SHORT;
  else exit(64);
}

int main(int argc, char **argv) {
  int ready[2], option;
  char byte = 0;
  while ((option = getopt(argc, argv, "+t:b:n:a:c:")) != -1) {
    if (option == 't') trace = fopen(optarg, "we");
    else if (option == 'b') begin_at = atol(optarg);
    else if (option == 'n') chosen = atol(optarg);
    else if (option == 'a') choose(optarg);
    else if (option == 'c') left = atol(optarg) == 0 ? -1 : atol(optarg);
    else return 64;
  }
  if (optind >= argc || pipe2(ready, O_CLOEXEC) != 0) return 64;
  program = getpid();
  if (fork() == 0) {
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, program, NULL, (void *)options) != 0) _exit(71);
    ptrace(PTRACE_INTERRUPT, program, NULL, NULL);
    if (write(ready[1], "x", 1) != 1) _exit(71);
    for (int i = 0; i < 256; i++) /* its pipes must end with it, not with us */
      if (trace == NULL || i != fileno(trace)) close(i);
    follow();
    _exit(0);
  }
  close(ready[1]);
  if (read(ready[0], &byte, 1) != 1) return 71;
  if (trace != NULL) fclose(trace);
  execvp(argv[optind], argv + optind);
  perror(argv[optind]);
  return 127;
}
