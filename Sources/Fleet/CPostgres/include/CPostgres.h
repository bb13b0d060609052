/* What the verifier needs of libpq: a connection to a database, and a question
   with a limit of time. They decide nothing. No text of a question is put together from values:
   values are parameters. */
#pragma once

#include "CSystem.h"

#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#include <postgresql/libpq-fe.h>
#endif
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#pragma clang assume_nonnull begin

struct pg_line {
  PGconn *connection;
  int warnings; /* since the last question */
};

/* What came of a question. */
enum {
  pg_rows = 1,     /* done, with a result */
  pg_refused = 0,  /* the server says no, with a result that says why */
  pg_broken = -1,  /* the connection is gone, or did what it must not */
  pg_silent = -2,  /* no answer in time */
  pg_warned = -3,  /* done, but with a warning */
  pg_no_memory = -4,
};

/* Called for each message beside a result. A NOTICE tells nothing that counts; a WARNING may take
   back what the result says, as when synchronous replication was given up (syncrep.c of PostgreSQL). */
static inline void pg_receive(void *_Nullable line, const PGresult *_Nullable message) {
  const char *severity = PQresultErrorField(message, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == NULL || strcmp(severity, "WARNING") == 0) ((struct pg_line *)line)->warnings++;
}

/* A connection by this string of libpq, or NULL where memory is short. What `database` says
   overrides the defaults before it. Waits 2 s for each host of it. */
static inline struct pg_line *_Nullable pg_open(const char *database) {
  const char *const keys[] = { "connect_timeout", "tcp_user_timeout", "keepalives_idle",
    "keepalives_interval", "keepalives_count", "gssencmode", "target_session_attrs",
    "application_name", "dbname", "client_encoding", NULL };
  const char *const values[] = { "2", "2000", "5", "2", "2", "disable", "read-write",
    "sallyport-verifier", database, "UTF8", NULL };
  struct pg_line *line = calloc(1, sizeof *line);
  if (line == NULL) return NULL;
  PGconn *connection = PQconnectdbParams(keys, values, 1);
  if (connection == NULL) {
    free(line);
    return NULL;
  }
  line->connection = connection;
  (void)PQsetNoticeReceiver(connection, pg_receive, line);
  return line;
}

static inline void pg_close(struct pg_line *line) {
  PQfinish(line->connection);
  free(line);
}

/* 1 or 0. */
static inline int pg_is_open(const struct pg_line *line) {
  return PQstatus(line->connection) == CONNECTION_OK && PQsetnonblocking(line->connection, 1) == 0;
}

/* When the first of the certificates ends by which libpq knows the server, or shows itself to it, in
   seconds since 1970; INT64_MAX where there is none. */
int64_t pg_certificates_end(const struct pg_line *line);

/* What libpq says of the last fault. */
static inline const char *pg_fault(const struct pg_line *line) {
  return PQerrorMessage(line->connection);
}

static inline int64_t pg_now(void) { return (int64_t)(sys_monotonic() / 1000000); }

/* Waits until the socket can do one of these; 0, or what a question comes to. */
static inline int pg_wait(const struct pg_line *line, short events, int64_t end) {
  for (;;) {
    struct pollfd one = { PQsocket(line->connection), events, 0 };
    int64_t left = end - pg_now();
    if (left <= 0) return pg_silent;
    int ready = poll(&one, 1, (int)left);
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return pg_broken;
  }
}

/* The next result, NULL after the last one; or what a question comes to. */
static inline int pg_next(const struct pg_line *line, int64_t end, PGresult *_Nullable *_Nonnull next) {
  while (PQisBusy(line->connection)) {
    int waited = pg_wait(line, POLLIN, end);
    if (waited != 0) return waited;
    if (PQconsumeInput(line->connection) == 0) return pg_broken;
  }
  *next = PQgetResult(line->connection);
  return 0;
}

static inline int pg_send(const struct pg_line *line, int64_t end) {
  int left;
  while ((left = PQflush(line->connection)) > 0) {
    int waited = pg_wait(line, POLLIN | POLLOUT, end);
    if (waited != 0) return waited;
    if (PQconsumeInput(line->connection) == 0) return pg_broken;
  }
  return left < 0 ? pg_broken : 0;
}

enum { pg_most_values = 24 };

/* The result of the question that was sent, as of pg_ask. After pg_silent it may be waited for
   once more. */
static inline int pg_collect(struct pg_line *line, int milliseconds,
                             PGresult *_Nullable *_Nonnull result) {
  int64_t end = pg_now() + milliseconds;
  *result = NULL;
  PGresult *more = NULL;
  int done = pg_send(line, end);
  if (done == 0) done = pg_next(line, end, result);
  if (done == 0 && *result != NULL) done = pg_next(line, end, &more);
  if (done == 0 && (*result == NULL || more != NULL)) done = pg_broken;
  PQclear(more);
  if (done == 0) {
    ExecStatusType status = PQresultStatus(*result);
    done = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? pg_rows : pg_refused;
    if (status == PGRES_FATAL_ERROR && PQstatus(line->connection) != CONNECTION_OK) done = pg_broken;
    if (line->warnings > 0) done = pg_warned;
  }
  if (done < 0) {
    PQclear(*result);
    *result = NULL;
  }
  return done;
}

/* Has the server parse and plan a statement once, under this name; as of pg_ask. */
static inline int pg_prepare(struct pg_line *line, const char *name, const char *statement,
                             int milliseconds, PGresult *_Nullable *_Nonnull result) {
  *result = NULL;
  line->warnings = 0;
  if (!PQsendPrepare(line->connection, name, statement, 0, NULL)) return pg_broken;
  return pg_collect(line, milliseconds, result);
}

/* Asks one question of one statement, or of the prepared one of this `name` where there is one. The
   values stand one after the other in `bytes`: value n begins at `offsets[n]`, -1 for NULL; a text
   (format 0) ends with NUL. The result, in binary, is the caller's to free, also where the server
   refused. After anything but these two the line must be closed: whether the statement was carried
   out is not known. */
static inline int pg_ask(struct pg_line *line, const char *_Nullable name, const char *statement,
                         int count, const char *bytes, const int *offsets, const int *lengths,
                         const int *formats, int milliseconds, PGresult *_Nullable *_Nonnull result) {
  const char *values[pg_most_values];
  *result = NULL;
  if (count > pg_most_values) return pg_no_memory;
  for (int n = 0; n < count; n++) values[n] = offsets[n] < 0 ? NULL : bytes + offsets[n];
  line->warnings = 0;
  int isSent = name != NULL
      ? PQsendQueryPrepared(line->connection, name, count, values, lengths, formats, 1)
      : PQsendQueryParams(line->connection, statement, count, NULL, values, lengths, formats, 1);
  if (!isSent) return pg_broken;
  return pg_collect(line, milliseconds, result);
}

/* The code of an error (appendix A of PostgreSQL's manual), or "". */
static inline const char *pg_state(const PGresult *result) {
  const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state != NULL ? state : "";
}

/* Waits for a lock until then, in nanoseconds of CLOCK_MONOTONIC: 0, or an errno. */
int pg_lock(pthread_mutex_t *mutex, uint64_t until);

/* Takes one within this many milliseconds: 0, or -1. */
int pg_take(sem_t *semaphore, int milliseconds);

/* The time of day in milliseconds. */
static inline int64_t pg_time(void) { return (int64_t)(sys_clock(CLOCK_REALTIME) / 1000000); }

#pragma clang assume_nonnull end
