/* A PAM application for tests: reads one login attempt per line, plays it, prints one JSON line.
 *
 *   driver CONFDIR [BARRIER-FD]
 *
 * A line is words of key=value; what may hold any byte is written in hex:
 *   service=NAME user=HEX rhost=HEX tty=HEX ruser=HEX silent=1
 *   sets=HEX          NAME=VALUE for PAM's own environment, before the first phase
 *   answers=A,A,...   what each prompt is given: live (prints {"event":"live","text":…} with what was
 *                     shown last, then reads a line of HEX) | HEX | null (no string) | none (no array) |
 *                     fail (PAM_CONV_ERR); a leading @ waits at the barrier first: prints
 *                     {"event":"prompt"}, then reads a byte from BARRIER-FD, which all share
 *   phases=P,P,...    auth (the default), setcred, acct, open, close, chauthtok,
 *                     user:HEX (sets PAM_USER)
 *   at=SECONDS        the wall clock of this attempt (0: the real one); see clock_gettime below
 *   repeat=N          N times, one summary line with the memory held after each 1000
 *   threads=N         the same in each of N threads at once, one summary line
 *   mark=N            the system calls access("/mark/begin") and ("/mark/end") around each phase from
 *                     the Nth on; with N > 1 "/mark/pause" and "/mark/resume" around what is host's
 *   flush=1           before each fdatasync and fsync prints {"event":"flush"}, waits at the barrier
 *   handover=1        each text that is shown is printed at once, and nothing of it kept here
 *   chatty=1          the application answers texts, too, which want no answer
 *   person=1          the conversation has data of its own: sshd's keyboard-interactive
 *   mute=1 full=N     no conversation function; no memory in libpam, see full.h
 *   halt=1            after each phase prints {"event":"phase"} and waits at the barrier
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <security/pam_appl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "full.h"
#include "handover.h"
#include "host_state.h"
#include "interfaces.h"
#include "registers.h"

enum { MAX_ANSWERS = 64, MAX_PROMPTS = 64, MAX_PHASES = 16 };

/* One attempt as asked for. The strings point into the line. */
struct attempt {
  char *service, *user, *rhost, *tty, *ruser, *sets, *answers[MAX_ANSWERS], *phases[MAX_PHASES];
  int answer_count, phase_count, silent, mark, repeat, threads, handover, halt, mute, chatty, person;
};

/* What the conversation saw. */
struct talk {
  const struct attempt *attempt;
  const char *shown; /* the last text that holds a URI */
  int next, prompts, unexpected, quiet;
  struct { int style; char *text; } seen[MAX_PROMPTS];
  struct timespec answered;
};

static const char *confdir;
static int barrier = -1;
static _Atomic long long wall_clock; /* seconds since 1970; 0: the real clock */

/* The program's own symbol comes before libc's for every module libpam loads: the clock that a
 * test sets is the one the module sees, and nothing in the module knows of it. */
int clock_gettime(clockid_t id, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, id, now);
  long long at = atomic_load(&wall_clock);
  if (at != 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec = (time_t)at;
  return result;
}

/* As above: a handle that a module starts has the services of this run. */
int pam_start(const char *service, const char *user, const struct pam_conv *conversation,
              pam_handle_t **handle) {
  return pam_start_confdir(service, user, conversation, confdir, handle);
}

static _Atomic int waits_to_flush;
static void wait_at_barrier(const char *event);

/* Of the C library, or of what is preloaded. */
static int next_sync(const char *name, int descriptor) {
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  return next(descriptor);
}

/* As above: the moment between a login's write and its flush. */
int fdatasync(int descriptor) {
  if (atomic_load(&waits_to_flush)) wait_at_barrier("flush");
  return next_sync("fdatasync", descriptor);
}

int fsync(int descriptor) {
  if (atomic_load(&waits_to_flush)) wait_at_barrier("flush");
  return next_sync("fsync", descriptor);
}

static void print_string(const char *text) {
  putchar('"');
  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
    if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\') printf("\\u%04x", *c);
    else putchar(*c);
  putchar('"');
}

/* Room for a copy that holds `hex` decoded, one byte more than needed for embedded NULs' sake. */
static char *reply_from(const char *hex) {
  char *copy = strdup(hex);
  return copy == NULL ? NULL : unhex(copy);
}

static void wait_at_barrier(const char *event) {
  char byte;
  struct pollfd all = {.fd = barrier, .events = POLLIN}; /* poll wakes all, read one by one */
  printf("{\"event\":\"%s\"}\n", event);
  fflush(stdout);
  while (poll(&all, 1, -1) != 1) {}
  if (read(barrier, &byte, 1) != 1) exit(3);
}

/* Notes a prompt; true if it wants an answer. */
static int note(struct talk *talk, const struct pam_message *message) {
  if (talk->attempt->handover) hand_over(message->msg_style, message->msg);
  else if (!talk->quiet && talk->prompts < MAX_PROMPTS) {
    talk->seen[talk->prompts].style = message->msg_style;
    char *text = strdup(message->msg == NULL ? "(null)" : message->msg);
    if (strstr(text, "otpauth://") != NULL) talk->shown = text;
    talk->seen[talk->prompts++].text = text;
  }
  return message->msg_style == PAM_PROMPT_ECHO_OFF || message->msg_style == PAM_PROMPT_ECHO_ON;
}

/* The reply to what was shown last before this prompt, from the reader of our events. */
static char *reply_to(const struct talk *talk) {
  char *line = NULL;
  size_t room = 0;
  if (talk->attempt->handover) return handed_back();
  printf("{\"event\":\"live\",\"text\":");
  print_string(talk->shown == NULL ? "" : talk->shown);
  printf("}\n");
  fflush(stdout);
  if (getline(&line, &room, stdin) < 0) exit(3);
  line[strcspn(line, "\n")] = 0;
  return unhex(line);
}

static int talk_to(struct talk *talk, int count, const struct pam_message **messages,
                   struct pam_response **replies) {
  struct pam_response *made = calloc((size_t)count, sizeof *made);
  *replies = NULL;
  for (int i = 0; i < count; i++) {
    if (!note(talk, messages[i])) {
      if (talk->attempt->chatty) made[i].resp = calloc(1, 1000);
      continue;
    }
    if (talk->next >= talk->attempt->answer_count) {
      talk->unexpected++;
      goto broken;
    }
    const char *answer = talk->attempt->answers[talk->next++];
    if (*answer == '@') {
      wait_at_barrier("prompt");
      answer++;
    }
    if (strcmp(answer, "fail") == 0) goto broken;
    if (strcmp(answer, "none") == 0) {
      free(made);
      made = NULL;
      break;
    }
    if (strcmp(answer, "live") == 0) made[i].resp = reply_to(talk);
    else if (strcmp(answer, "null") != 0) made[i].resp = reply_from(answer);
  }
  *replies = made;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &talk->answered);
  return PAM_SUCCESS;
broken:
  free(made);
  return PAM_CONV_ERR;
}

static _Thread_local struct talk *talking;

static int converse(int count, const struct pam_message **messages, struct pam_response **replies,
                    void *data) {
  struct talk *talk = talking;
  (void)data;
  if (talk->attempt->mark > 1) access("/mark/pause", F_OK);
  int result = talk_to(talk, count, messages, replies);
  if (talk->attempt->mark > 1) access("/mark/resume", F_OK);
  return result;
}

static int call(pam_handle_t *pamh, const char *phase, int flags) {
  if (strcmp(phase, "auth") == 0) return pam_authenticate(pamh, flags);
  if (strcmp(phase, "setcred") == 0) return pam_setcred(pamh, flags | PAM_ESTABLISH_CRED);
  if (strcmp(phase, "acct") == 0) return pam_acct_mgmt(pamh, flags);
  if (strcmp(phase, "open") == 0) return pam_open_session(pamh, flags);
  if (strcmp(phase, "close") == 0) return pam_close_session(pamh, flags);
  if (strcmp(phase, "chauthtok") == 0) return pam_chauthtok(pamh, flags);
  if (strncmp(phase, "user:", 5) == 0) {
    char *user = reply_from(phase + 5);
    int result = pam_set_item(pamh, PAM_USER, user);
    free(user);
    return result;
  }
  exit(2);
}

static int play(pam_handle_t *pamh, const char *phase, int flags) {
  int result = call(pamh, phase, flags);
  return keep_registers(), result;
}

static pam_handle_t *start(const struct attempt *attempt, struct talk *talk, int *result) {
  /* As in sshd's keyboard-interactive, or as in its method password. */
  const struct pam_conv conversation = {
      attempt->mute ? NULL : converse, attempt->person ? talk : NULL};
  talking = talk;
  pam_handle_t *pamh = NULL;
  *result = pam_start_confdir(attempt->service, attempt->user, &conversation, confdir, &pamh);
  if (*result != PAM_SUCCESS) return NULL;
  if (attempt->rhost != NULL) pam_set_item(pamh, PAM_RHOST, attempt->rhost);
  if (attempt->tty != NULL) pam_set_item(pamh, PAM_TTY, attempt->tty);
  if (attempt->ruser != NULL) pam_set_item(pamh, PAM_RUSER, attempt->ruser);
  if (attempt->sets != NULL) pam_putenv(pamh, attempt->sets);
  return pamh;
}

/* Plays all phases without printing; the result of the first one. */
static int play_quietly(const struct attempt *attempt) {
  struct talk talk = {.attempt = attempt, .quiet = 1};
  int result, first = -1;
  pam_handle_t *pamh = start(attempt, &talk, &result);
  if (pamh == NULL) return result;
  for (int i = 0; i < attempt->phase_count; i++) {
    result = play(pamh, attempt->phases[i], attempt->silent ? PAM_SILENT : 0);
    if (first < 0) first = result;
  }
  pam_end(pamh, result);
  return first;
}

static void print_talk(struct talk *talk) {
  printf("\"unexpected\":%d,\"unused\":%d,\"prompts\":[", talk->unexpected,
         talk->attempt->answer_count - talk->next);
  for (int i = 0; i < talk->prompts; i++) {
    printf("%s[%d,", i == 0 ? "" : ",", talk->seen[i].style);
    print_string(talk->seen[i].text);
    putchar(']');
    free(talk->seen[i].text);
  }
  printf("],");
}

static void print_environment(pam_handle_t *pamh) {
  char **list = pam_getenvlist(pamh);
  printf("\"env\":[");
  for (int i = 0; list != NULL && list[i] != NULL; i++) {
    if (i > 0) putchar(',');
    print_string(list[i]);
    free(list[i]);
  }
  free(list);
  printf("],");
}

static void play_one(const struct attempt *attempt) {
  char before[4096] = "", after[4096] = "";
  struct talk talk = {.attempt = attempt};
  struct timespec verdict;
  int result, results[MAX_PHASES];
  host_state(before, sizeof before);
  pam_handle_t *pamh = start(attempt, &talk, &result);
  if (pamh == NULL) {
    printf("{\"start\":%d}\n", result);
    return;
  }
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &talk.answered);
  for (int i = 0; i < attempt->phase_count; i++) {
    int is_marked = attempt->mark > 0 && i + 1 >= attempt->mark;
    if (is_marked) access("/mark/begin", F_OK);
    result = results[i] = play(pamh, attempt->phases[i], attempt->silent ? PAM_SILENT : 0);
    if (i == 0) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &verdict);
    if (is_marked) access("/mark/end", F_OK);
    if (attempt->halt) wait_at_barrier("phase");
  }
  host_state(after, sizeof after);
  printf("{\"rcs\":[");
  for (int i = 0; i < attempt->phase_count; i++) printf("%s%d", i == 0 ? "" : ",", results[i]);
  long long ns = (verdict.tv_sec - talk.answered.tv_sec) * 1000000000LL;
  ns += verdict.tv_nsec - talk.answered.tv_nsec;
  printf("],\"ns\":%lld,", ns);
  print_talk(&talk);
  print_environment(pamh);
  printf("\"changed\":");
  print_string(strcmp(before, after) == 0 ? "" : strcat(strcat(before, " became "), after));
  printf("}\n");
  pam_end(pamh, result);
}

static long resident_kilobytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) pages = -1;
  if (file != NULL) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static _Atomic int verdicts[64];

static void *play_many(void *data) {
  const struct attempt *attempt = data;
  for (int i = 1; i <= attempt->repeat; i++) {
    int result = play_quietly(attempt);
    atomic_fetch_add(&verdicts[result & 63], 1);
    if (attempt->threads == 0 && i % 1000 == 0)
      printf("%s%ld", i == 1000 ? "" : ",", resident_kilobytes());
  }
  return NULL;
}

static void play_summary(struct attempt *attempt) {
  pthread_t threads[64];
  memset(verdicts, 0, sizeof verdicts);
  printf("{\"rss\":[");
  if (attempt->threads == 0) play_many(attempt);
  for (int i = 0; i < attempt->threads; i++) pthread_create(&threads[i], NULL, play_many, attempt);
  for (int i = 0; i < attempt->threads; i++) pthread_join(threads[i], NULL);
  printf("],\"verdicts\":{");
  for (int i = 0, any = 0; i < 64; i++)
    if (verdicts[i] > 0) printf("%s\"%d\":%d", any++ ? "," : "", i, verdicts[i]);
  printf("}}\n");
}

/* Cuts `text` at its commas. */
static int list(char *text, char **items, int most) {
  int count = 0;
  for (char *rest = text, *item; count < most && (item = strsep(&rest, ",")) != NULL;)
    items[count++] = item;
  return count;
}

static void set(struct attempt *attempt, const char *key, char *value) {
  if (strcmp(key, "service") == 0) attempt->service = value;
  else if (strcmp(key, "user") == 0) attempt->user = unhex(value);
  else if (strcmp(key, "rhost") == 0) attempt->rhost = unhex(value);
  else if (strcmp(key, "tty") == 0) attempt->tty = unhex(value);
  else if (strcmp(key, "ruser") == 0) attempt->ruser = unhex(value);
  else if (strcmp(key, "sets") == 0) attempt->sets = unhex(value);
  else if (strcmp(key, "answers") == 0)
    attempt->answer_count = list(value, attempt->answers, MAX_ANSWERS);
  else if (strcmp(key, "phases") == 0)
    attempt->phase_count = list(value, attempt->phases, MAX_PHASES);
  else if (strcmp(key, "at") == 0) atomic_store(&wall_clock, atoll(value));
  else if (strcmp(key, "silent") == 0) attempt->silent = atoi(value);
  else if (strcmp(key, "mark") == 0) attempt->mark = atoi(value);
  else if (strcmp(key, "handover") == 0) attempt->handover = atoi(value);
  else if (strcmp(key, "chatty") == 0) attempt->chatty = atoi(value);
  else if (strcmp(key, "mute") == 0) attempt->mute = atoi(value);
  else if (strcmp(key, "person") == 0) attempt->person = atoi(value);
  else if (strcmp(key, "full") == 0) atomic_store(&full, atoi(value));
  else if (strcmp(key, "halt") == 0) attempt->halt = atoi(value);
  else if (strcmp(key, "flush") == 0) atomic_store(&waits_to_flush, atoi(value));
  else if (strcmp(key, "repeat") == 0) attempt->repeat = atoi(value);
  else if (strcmp(key, "threads") == 0) attempt->threads = atoi(value) & 63;
  else exit(2);
}

int main(int argc, char **argv) {
  char *line = NULL;
  size_t room = 0;
  if (argc < 2) return 2;
  confdir = argv[1];
  if (argc > 2) barrier = atoi(argv[2]);
  openlog("driver", LOG_NDELAY, LOG_AUTHPRIV); /* or libc's own socket would look left behind */
  while (getline(&line, &room, stdin) > 0) {
    struct attempt attempt = {.phases = {"auth"}, .phase_count = 1};
    line[strcspn(line, "\n")] = 0;
    atomic_store(&wall_clock, 0);
    atomic_store(&waits_to_flush, 0);
    atomic_store(&full, 0);
    for (char *rest = line, *word; (word = strsep(&rest, " ")) != NULL;) {
      char *value = strchr(word, '=');
      if (value == NULL) return 2;
      *value = 0;
      set(&attempt, word, value + 1);
    }
    if (attempt.repeat > 0) play_summary(&attempt);
    else play_one(&attempt);
    fflush(stdout);
  }
  free(line);
  return 0;
}
