/* What SSSD says of a user's groups, by the socket through which its own library asks. */
#pragma once

#include "Sockets.h"

#include <stdlib.h>

#pragma clang assume_nonnull begin

enum { sys_sssd_version = 1, sys_sssd_groups = 0x26, sys_sssd_attributes = 0x115 };

/* One question: a header of four words (size, command, status, 0), then `count` bytes of `text`.
   Frees the `answer` to the one before. Returns the size of the new one, which ends with a NUL that
   does not count; 0 if the status is an error; or negative. */
static inline __attribute__((noinline)) int64_t sys_sssd_ask(
    int line, uint32_t command, const void *text, size_t count, uint32_t *_Nullable *_Nonnull answer) {
  struct { uint32_t head[4]; char text[256]; } question = { { 16 + (uint32_t)count, command } };
  free(*answer);
  *answer = NULL;
  if (count > sizeof question.text) return -1;
  memcpy(question.text, text, count);
  if (sys_send(line, &question, question.head[0]) != question.head[0]) return -1;
  if (recv(line, question.head, 16, MSG_WAITALL) != 16) return -1;
  uint32_t size = question.head[0] - 16;
  if (size > 1u << 20 || question.head[1] != command) return -1;
  char *room = calloc(size + 1, 1);
  *answer = (void *)room;
  if (room == NULL || recv(line, room, size, MSG_WAITALL) != size) return -1;
  return question.head[2] == 0 ? size : 0;
}

/* Of the answer about a user's attributes, when the list of his groups expires: 1 if it was asked
   for; -ENOENT if SSSD does not know the user; -EAGAIN if the list was never asked for (or no more
   than marked as expired), or SSSD does not tell. */
static inline int sys_sssd_has_asked(const uint32_t *_Nullable answer, int64_t size) {
  if (size == 8) return -ENOENT;
  if (size < 12 || answer[2] != 1) return -EAGAIN; /* 1: a user */
  const char *key = (const void *)(answer + 3), *end = (const char *)answer + size;
  while (key < end) {
    const char *value = key + strlen(key) + 1;
    if (value >= end) break;
    if (strcmp(key, "initgrExpireTimestamp") == 0) return strlen(value) > 1 ? 1 : -EAGAIN;
    key = value + strlen(value) + 1;
  }
  return -EAGAIN;
}

/* Of the answer about a user's groups: 1 if `group` is one, 0 if not, or -EPROTO. Since SSSD 2.10 a
   user in no group has the same answer as one that SSSD does not know. */
static inline int sys_sssd_find(const uint32_t *_Nullable answer, int64_t size, uint32_t group) {
  if (size < 8 || answer[0] > size / 4 - 2) return -EPROTO;
  for (uint32_t one = 0; one < answer[0]; one++)
    if (answer[one + 2] == group) return 1;
  return 0;
}

/* 1 if SSSD has `user` in `group`; 0 if not, and it says that the directory was asked for all of his
   groups; -ENOENT if it does not know him; or another negative errno, as where it is away or does not
   say so, because sssd.conf does not tell it to. It says so before it is asked the second
   time, so that this answer is no older. */
static inline int sys_sssd_group(const char *user, uint32_t group) {
  int line = sys_socket_of(SOCK_STREAM), asked = 0;
  if (line < 0) return line;
  uint32_t *answer = NULL;
  static const uint32_t version = 1;
  size_t length = strlen(user) + 1;
  (void)sys_set_time(line, SO_RCVTIMEO, 10000000);
  (void)sys_set_time(line, SO_SNDTIMEO, 10000000);
  int result = sys_connect(line, "/var/lib/sss/pipes/nss");
  /* It has ended; what it shares with programs may still answer. */
  if (result == -ENOENT) result = -EAGAIN;
  if (result == 0 && sys_sssd_ask(line, sys_sssd_version, &version, 4, &answer) < 0) result = -EPROTO;
  for (int turn = 0; turn < 2 && result == 0; turn++) {
    int64_t size = 0;
    if (turn == 1) {
      size = sys_sssd_ask(line, sys_sssd_attributes, user, length, &answer);
      asked = sys_sssd_has_asked(answer, size);
    }
    size = sys_sssd_ask(line, sys_sssd_groups, user, length, &answer);
    result = sys_sssd_find(answer, size, group);
  }
  free(answer);
  close(line);
  return result == 0 && asked < 0 ? asked : result;
}

#pragma clang assume_nonnull end
