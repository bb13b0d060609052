/* A host that looks at itself right before and right after the module, and before and after all of
 * PAM. The service's lines: frame.so, the module, frame.so, all `required`.
 *
 *   guest CONFDIR
 *
 * Reads lines "CONDITION USER ANSWERS AT TIMES SERVICE PHASES RHOST" and plays each in a child of
 * its own, TIMES times over.
 *   CONDITION   of conditions.c; behind "later:" one that is brought about after the first phase
 *   ANSWERS     to the prompts, in hex with commas between (-: empty, null: no string, fail:
 *               PAM_CONV_ERR, live: prints "live", a tab and the URI shown last, and reads a line)
 *   PHASES      letters: Auth, set Credentials, account Management, Open and close (S) a session
 *   RHOST       PAM_RHOST, or -
 * For each it prints the return codes of the phases with commas between or the signal (as -n), a
 * tab, and what was changed: "" or the lines that differ.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { STRANGE_ERRNO = 120, REPORT = 200, ASK = 201, MOST_ANSWERS = 16, MOST_PHASES = 8 };

static const char *confdir, *user, *answers[MOST_ANSWERS], *later;
static char service[64], phases[MOST_PHASES + 1], remote[64], uri[600];
static long wall_clock;
static int times, frames, answer_count, answered, results[MOST_PHASES];
static const char *phase = "";
static char outside[2][SNAPSHOT], inside[2][SNAPSHOT], difference[2048];

/* As the driver's: the clock of the test, for all callers. */
int clock_gettime(clockid_t id, struct timespec *now) {
  int done = (int)syscall(SYS_clock_gettime, id, now);
  if (wall_clock != 0 && id == CLOCK_REALTIME) now->tv_sec = wall_clock;
  return done;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

static int same_name(const char *a, const char *b) {
  size_t length = strcspn(a, ":");
  return length == strcspn(b, ":") && memcmp(a, b, length) == 0;
}

/* Adds the differing lines to the report, as long as they speak of the same. */
static void compare(const char *where, const char *before, const char *after) {
  while (*before != 0 || *after != 0) {
    size_t a = strcspn(before, "\n"), b = strcspn(after, "\n"), used = strlen(difference);
    if (a != b || memcmp(before, after, a) != 0)
      snprintf(difference + used, sizeof difference - used, "%s%s: %.*s became %.*s",
               used == 0 ? "" : "; ", where, (int)a, before, (int)b, after);
    if (!same_name(before, after)) return;
    before += a + (before[a] != 0);
    after += b + (after[b] != 0);
  }
}

/* Called by frame.so on both sides of the module. */
void guest_frame(void) {
  int second = frames++ & 1;
  if (!second) errno = STRANGE_ERRNO;
  take_snapshot(inside[second]);
  if (second) compare(phase, inside[0], inside[1]);
}

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static char *unhex(const char *hex) {
  char *text = calloc(1, strlen(hex) / 2 + 1);
  for (size_t i = 0; hex[2 * i] != 0 && hex[2 * i] != '-'; i++)
    text[i] = (char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return text;
}

/* A line from the reader of our reports, in hex. */
static char *ask_live(void) {
  char line[256];
  size_t count = 0;
  dprintf(REPORT, "live\t%s\n", uri);
  while (count < sizeof line - 1) {
    ssize_t done = read(ASK, line + count, 1);
    if (done == 1 && line[count++] == '\n') break;
    if (done == 0 || (done < 0 && errno != EINTR)) _exit(74);
  }
  line[count] = 0;
  line[strcspn(line, "\n")] = 0;
  return unhex(line);
}

static void see(const char *text) {
  const char *start = strstr(text, "otpauth://");
  if (start != NULL) snprintf(uri, sizeof uri, "%.*s", (int)strcspn(start, "\n"), start);
}

/* 0 if the conversation is to fail. */
static int reply(char **text) {
  const char *answer = answered < answer_count ? answers[answered++] : "fail";
  if (strcmp(answer, "fail") == 0) return 0;
  if (strcmp(answer, "live") == 0) *text = ask_live();
  else if (strcmp(answer, "null") != 0) *text = unhex(answer);
  return 1;
}

static int converse(int count, const struct pam_message **messages, struct pam_response **replies,
                    void *data) {
  (void)data;
  struct pam_response *made = calloc((size_t)count, sizeof *made);
  *replies = NULL;
  for (int i = 0; i < count; i++) {
    int style = messages[i]->msg_style;
    if (style != PAM_PROMPT_ECHO_OFF && style != PAM_PROMPT_ECHO_ON) see(messages[i]->msg);
    else if (!reply(&made[i].resp)) return free(made), PAM_CONV_ERR;
  }
  *replies = made;
  return PAM_SUCCESS;
}

static int enter(pam_handle_t *pamh, char letter) {
  switch (letter) {
  case 'a': phase = "the module"; return pam_authenticate(pamh, 0);
  case 'c': phase = "setcred"; return pam_setcred(pamh, PAM_ESTABLISH_CRED);
  case 'm': phase = "acct_mgmt"; return pam_acct_mgmt(pamh, 0);
  case 'o': phase = "open_session"; return pam_open_session(pamh, 0);
  case 's': phase = "close_session"; return pam_close_session(pamh, 0);
  default: exit(64);
  }
}

static void log_in(void) {
  const struct pam_conv conversation = {converse, NULL};
  pam_handle_t *pamh = NULL;
  answered = 0;
  int result = pam_start_confdir(service, user, &conversation, confdir, &pamh);
  for (size_t i = 0; phases[i] != 0; i++) results[i] = result;
  if (result != PAM_SUCCESS) return;
  if (strcmp(remote, "-") != 0) pam_set_item(pamh, PAM_RHOST, remote);
  for (size_t i = 0; phases[i] != 0; i++) {
    result = results[i] = enter(pamh, phases[i]);
    if (i > 0 || later == NULL) continue;
    if (!bring_about(later)) exit(64);
    take_snapshot(outside[0]);
  }
  pam_end(pamh, result);
}

/* errno is the caller's business only across the module, not across libpam. */
static char *without_errno(char *snapshot) { return snapshot + strcspn(snapshot, "\n") + 1; }

static void play(void) {
  ERR_new(); /* the host's own error, which it has yet to read */
  ERR_set_error(60, 1, NULL);
  take_snapshot(outside[0]);
  for (int i = 0; i < times; i++) log_in();
  take_snapshot(outside[1]);
  compare("PAM", without_errno(outside[0]), without_errno(outside[1]));
}

static void read_line(const char *line, char *condition) {
  static char name[600], typed[1200];
  if (sscanf(line, "%63s %599s %1199s %ld %d %63s %8s %63s", condition, name, typed, &wall_clock,
             &times, service, phases, remote) != 8)
    exit(64);
  user = unhex(name);
  for (char *rest = typed, *item; answer_count < MOST_ANSWERS && (item = strsep(&rest, ","));)
    answers[answer_count++] = item;
}

static void one(const char *line) {
  char condition[64], words[64] = "";
  read_line(line, condition);
  fcntl(1, F_DUPFD_CLOEXEC, REPORT); /* the first free one from there on */
  fcntl(0, F_DUPFD_CLOEXEC, ASK);
  unsigned char digest[64];
  EVP_Digest("x", 1, digest, NULL, EVP_sha1(), NULL);
  if (strncmp(condition, "later:", 6) == 0) later = condition + 6;
  else if (!bring_about(condition)) exit(64);
  in_condition(play);
  const char *complaint = end_condition();
  for (size_t i = 0, used = 0; phases[i] != 0; i++)
    used += (size_t)snprintf(words + used, sizeof words - used, i == 0 ? "%d" : ",%d", results[i]);
  dprintf(REPORT, "%s\t%s%s\n", words, difference, complaint);
  _exit(0);
}

int main(int argc, char **argv) {
  char line[4096];
  int status;
  if (argc != 2) return 64;
  confdir = argv[1];
  openlog("guest", LOG_NDELAY, LOG_AUTHPRIV); /* libc's own socket, or it would look left behind */
  while (fgets(line, sizeof line, stdin) != NULL) {
    pid_t child = fork();
    if (child == 0) one(line);
    if (waitpid(child, &status, 0) != child) return 71;
    if (WIFSIGNALED(status)) printf("-%d\tthe host died\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) printf("%d\tthe host ended\n", 1000 + WEXITSTATUS(status));
    fflush(stdout);
  }
  return 0;
}
