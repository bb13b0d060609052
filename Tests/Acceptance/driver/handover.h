/* Words between this host and the test that leave no copy behind: no stdio, every buffer wiped. */
#ifndef HANDOVER_H
#define HANDOVER_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

/* Hex in place to bytes; a NUL is put behind them. */
static char *unhex(char *text) {
  char *out = text;
  for (char *in = text; in[0] != 0 && in[1] != 0; in += 2)
    *out++ = (char)(nibble(in[0]) << 4 | nibble(in[1]));
  *out = 0;
  return text;
}

static char handed[4096];
static size_t handed_count;

static void hand_flush(void) {
  for (size_t done = 0; done < handed_count;) {
    ssize_t part = write(STDOUT_FILENO, handed + done, handed_count - done);
    if (part < 1) exit(3);
    done += (size_t)part;
  }
  explicit_bzero(handed, sizeof handed);
  handed_count = 0;
}

static void hand(char c) {
  if (handed_count == sizeof handed) hand_flush();
  handed[handed_count++] = c;
}

static void hand_text(const char *text) {
  for (; *text != 0; text++) hand(*text);
}

/* {"event":"shown","style":N,"text":…} of a message, as soon as it is shown. */
static void hand_over(int style, const char *text) {
  const char *digits = "0123456789abcdef";
  hand_text("{\"event\":\"shown\",\"style\":");
  hand((char)('0' + style));
  hand_text(",\"text\":\"");
  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
    if (*c >= 0x20 && *c <= 0x7e && *c != '"' && *c != '\\') {
      hand((char)*c);
    } else {
      hand_text("\\u00");
      hand(digits[*c >> 4]);
      hand(digits[*c & 15]);
    }
  hand_text("\"}\n");
  hand_flush();
}

/* The event "live", and the line of hex that answers it, decoded, in memory of its size. */
static char *handed_back(void) {
  static char line[1024];
  size_t count = 0;
  hand_text("{\"event\":\"live\"}\n");
  hand_flush();
  while (count < sizeof line - 1 && read(STDIN_FILENO, line + count, 1) == 1 &&
         line[count] != '\n')
    count++;
  line[count] = 0;
  char *answer = strdup(unhex(line));
  explicit_bzero(line, sizeof line);
  return answer;
}

#endif
