/* A host that looks at itself right before and right after the module, and before and after all of
 * PAM. The service's lines: frame.so, the module, frame.so, all `required`.
 *
 *   guest CONFDIR
 *
 * Reads lines "CONDITION USER ANSWER AT TIMES", USER and ANSWER in hex (null: no string, fail:
 * PAM_CONV_ERR), and plays each in a child of its own, TIMES times over. For each it prints the
 * last return code or the signal (as -n), a tab, and what was changed: "" or the lines that differ.
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

enum { STRANGE_ERRNO = 120, REPORT = 200 };

static const char *confdir, *user, *answer;
static long wall_clock;
static int times, frames, result;
static char outside[2][SNAPSHOT], inside[2][SNAPSHOT], difference[2048];

/* As the driver's: the clock of the test, for whoever asks. */
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
  if (second) compare("the module", inside[0], inside[1]);
}

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

static char *unhex(const char *hex) {
  char *text = calloc(1, strlen(hex) / 2 + 1);
  for (size_t i = 0; hex[2 * i] != 0 && hex[2 * i] != '-'; i++)
    text[i] = (char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return text;
}

static int converse(int count, const struct pam_message **messages, struct pam_response **replies,
                    void *data) {
  (void)data;
  *replies = NULL;
  if (strcmp(answer, "fail") == 0) return PAM_CONV_ERR;
  *replies = calloc((size_t)count, sizeof **replies);
  for (int i = 0; i < count; i++)
    if (messages[i]->msg_style == PAM_PROMPT_ECHO_OFF && strcmp(answer, "null") != 0)
      (*replies)[i].resp = unhex(answer);
  return PAM_SUCCESS;
}

static void log_in(void) {
  const struct pam_conv conversation = {converse, NULL};
  for (int i = 0; i < times; i++) {
    pam_handle_t *pamh = NULL;
    result = pam_start_confdir("login", user, &conversation, confdir, &pamh);
    if (result != PAM_SUCCESS) continue;
    result = pam_authenticate(pamh, 0);
    pam_setcred(pamh, PAM_ESTABLISH_CRED);
    pam_end(pamh, result);
  }
}

/* errno is the caller's business only across the module, not across libpam. */
static char *without_errno(char *snapshot) { return snapshot + strcspn(snapshot, "\n") + 1; }

static void play(void) {
  ERR_new(); /* the host's own error, which it has yet to read */
  ERR_set_error(60, 1, NULL);
  take_snapshot(outside[0]);
  log_in();
  take_snapshot(outside[1]);
  compare("PAM", without_errno(outside[0]), without_errno(outside[1]));
}

static void one(char *line) {
  char condition[64], name[600], typed[600];
  if (sscanf(line, "%63s %599s %599s %ld %d", condition, name, typed, &wall_clock, &times) != 5)
    exit(64);
  user = unhex(name);
  answer = typed;
  fcntl(1, F_DUPFD_CLOEXEC, REPORT); /* the first free one from there on */
  unsigned char digest[64];
  EVP_Digest("x", 1, digest, NULL, EVP_sha1(), NULL);
  if (!bring_about(condition)) exit(64);
  in_condition(play);
  const char *complaint = end_condition();
  dprintf(REPORT, "%d\t%s%s\n", result, difference, complaint);
  _exit(0);
}

int main(int argc, char **argv) {
  char line[2048];
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
