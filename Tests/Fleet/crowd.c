/* Many hosts of a fleet, or a machine that floods a verifier; one thread plays them all.
 *
 *   crowd hosts N SOURCES
 *       makes N keys and prints the pin of each, then reads the verifier's port. From then on each host
 *       does what sallyportd does: it connects, pings, says which start it is, has its reserve confirmed,
 *       and pings; what takes too long or fails it begins again a random time later, and one that was
 *       closed before it was greeted tries twice more at once. Host n comes from
 *       127.0.1.(1 + n % SOURCES). Prints each half second how many are there, how many questions were
 *       answered since, their median and 99th percentile in microseconds, how often a host had to begin
 *       again, how often it was refused for lack of room before it was greeted, and how often it was to ask
 *       again.
 *   crowd flood PORT RATE
 *       begins RATE handshakes a second from 127.0.2.1, and ends none of them. Prints each half second
 *       how many it has begun since.
 *
 * Both end with their input.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RESERVE = 3, PING = 4, LEAVING = 0xec, DATABASE_AWAY = 0xee, BUSY = 4 };
enum state { AWAY, GREETING, ASKING, PAUSING, IDLE, PINGING };
/* What a host asks when it was greeted, one after the other: ReserveSync and VerifierPool have it. */
enum question { IS_THERE, START, CONFIRM };
static const enum question questions[] = { IS_THERE, START, CONFIRM, CONFIRM, START };
enum { QUESTIONS = sizeof questions / sizeof *questions };

struct host {
  enum state state;
  int question, tries, misses;
  EVP_PKEY *key;
  X509 *certificate;
  SSL *line;
  unsigned char random[16];
  int is_told;
  int64_t at, asked, until; /* next step; the question; the end of patience with it */
  unsigned char have[256];
  size_t length;
};

static struct host *hosts;
static int count, port, sources, answered, again, refused, busy, events;
static int64_t *taken;
static SSL_CTX *context;

static void need(int done, const char *what) {
  if (done) return;
  perror(what);
  exit(1);
}

/* In microseconds. */
static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static int64_t between(int64_t least, int64_t most) { return least + random() % (most - least + 1); }

static void make_key(struct host *host) {
  unsigned char *bytes = NULL, digest[32];
  host->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
  host->certificate = X509_new();
  need(host->key != NULL && host->certificate != NULL, "keys");
  X509_set_version(host->certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(host->certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(host->certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(host->certificate), 86400);
  X509_set_pubkey(host->certificate, host->key);
  need(X509_sign(host->certificate, host->key, NULL) > 0, "sign");
  int length = i2d_PUBKEY(host->key, &bytes);
  need(EVP_Digest(bytes, (size_t)length, digest, NULL, EVP_sha256(), NULL), "digest");
  for (int place = 0; place < 32; place++) printf("%02x", digest[place]);
  printf("\n");
  OPENSSL_free(bytes);
  for (int place = 0; place < 16; place++) host->random[place] = (unsigned char)random();
}

/* A connection that is being made, from that address; negative where there is none. */
static int reach(uint32_t source) {
  struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(source) };
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int one = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  need(made >= 0, "socket");
  setsockopt(made, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (bind(made, (struct sockaddr *)&from, sizeof from) == 0 &&
      (connect(made, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS))
    return made;
  close(made);
  return -1;
}

static void hang_up(struct host *host) {
  if (host->line != NULL) {
    close(SSL_get_fd(host->line));
    SSL_free(host->line);
  }
  host->line = NULL;
  host->length = 0;
}

/* One that was closed before it was greeted looks again soon, within a second. */
static void wait_for_turn(struct host *host) {
  int64_t time = now();
  int was_refused = host->state == GREETING && host->line != NULL && time < host->until;
  int64_t pause = host->tries == 0 ? 20000 : 60000;
  if (was_refused) refused++;
  else again++;
  hang_up(host);
  host->state = AWAY;
  host->tries = was_refused && host->tries < 2 ? host->tries + 1 : 0;
  host->at = time + (host->tries > 0 ? between(pause, 2 * pause) : between(1000000, 4000000));
}

static void begin(struct host *host) {
  hang_up(host);
  int made = reach(0x7f000101 + (uint32_t)((host - hosts) % sources));
  host->state = GREETING;
  if (host->tries == 0) host->until = now() + 1000000;
  if (made < 0) {
    wait_for_turn(host);
    return;
  }
  need((host->line = SSL_new(context)) != NULL && SSL_use_PrivateKey(host->line, host->key) == 1 &&
         SSL_use_certificate(host->line, host->certificate) == 1 && SSL_set_fd(host->line, made) == 1, "TLS");
  SSL_set_connect_state(host->line);
  host->is_told = 0;
  struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = (uint32_t)(host - hosts) };
  need(epoll_ctl(events, EPOLL_CTL_ADD, made, &event) == 0, "epoll");
}

static void ask(struct host *host, enum state next, int kind, const void *body, uint32_t length) {
  unsigned char frame[64] = { 0 };
  uint32_t whole = length + 1;
  size_t sent;
  memcpy(frame, &whole, 4);
  frame[4] = 1;
  frame[12] = (unsigned char)kind;
  memcpy(frame + 13, body, length);
  host->state = next;
  host->asked = now();
  if (SSL_write_ex(host->line, frame, 13 + length, &sent)) return;
  ERR_clear_error();
  wait_for_turn(host);
}

/* The question whose turn it is. */
static void put(struct host *host) {
  static const unsigned char none[2] = { 2, 0 };
  unsigned char start[25] = { 3 };
  memcpy(start + 1, host->random, 16);
  start[17] = 1;
  switch (questions[host->question]) {
  case IS_THERE: ask(host, ASKING, PING, "", 0); return;
  case START: ask(host, ASKING, RESERVE, start, sizeof start); return;
  case CONFIRM: ask(host, ASKING, RESERVE, none, sizeof none); return;
  }
}

static void begin_question(struct host *host, int question) {
  host->question = question;
  host->until = now() + 3000000;
  put(host);
}

static void go_on(struct host *host) {
  if (host->state == PAUSING) {
    now() < host->until ? put(host) : begin_question(host, 1);
  } else if (host->line == NULL) begin(host);
  else {
    host->until = now() + 1000000;
    ask(host, PINGING, PING, "", 0);
  }
}

/* Others are asked, or the database is away: the same again, or after a while all of it. */
static void pause_asking(struct host *host, int64_t time) {
  int64_t at = time + between(20000, 200000), wait = 1000000LL << (host->misses < 2 ? host->misses : 2);
  if (at >= host->until) {
    at = time + between(wait - wait / 4, wait + wait / 4);
    host->misses++;
    again++;
  }
  host->state = PAUSING;
  host->at = at;
  busy++;
}

static void take(struct host *host, int kind, const unsigned char *body) {
  if (kind == LEAVING) {
    host->is_told = 1;
    return;
  }
  if (host->state == GREETING) {
    host->tries = 0;
    begin_question(host, 0);
    return;
  }
  int64_t time = now();
  taken[answered++ % (1 << 20)] = time - host->asked;
  if (kind == DATABASE_AWAY) host->until = time;
  if (host->state == ASKING && (kind == DATABASE_AWAY || (questions[host->question] != IS_THERE && body[0] == BUSY)))
    pause_asking(host, time);
  else if (host->state == ASKING && host->question + 1 < QUESTIONS) begin_question(host, host->question + 1);
  else {
    host->state = IDLE;
    host->misses = 0;
    host->at = time + between(1500000, 2500000);
    if (host->is_told) hang_up(host);
  }
}

static void advance(struct host *host) {
  size_t more;
  if (host->line == NULL) return;
  /* What another line left there would be taken for this one's. */
  ERR_clear_error();
  while (SSL_read_ex(host->line, host->have + host->length, sizeof host->have - host->length, &more)) {
    host->length += more;
    uint32_t length;
    while (host->length >= 12 && (memcpy(&length, host->have, 4), host->length >= 12 + length)) {
      int kind = host->have[12];
      unsigned char body[256];
      memcpy(body, host->have + 13, length - 1);
      memmove(host->have, host->have + 12 + length, host->length -= 12 + length);
      take(host, kind, body);
      if (host->line == NULL) return;
    }
    need(host->length < sizeof host->have, "an answer that is too long");
  }
  int why = SSL_get_error(host->line, 0);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
  /* As a host: one that is idle notices it when it would ping. */
  if (host->state == IDLE) hang_up(host);
  else wait_for_turn(host);
}

static void look_at_clock(void) {
  int64_t time = now();
  for (struct host *host = hosts; host < hosts + count; host++) {
    int waits = host->state == AWAY || host->state == IDLE || host->state == PAUSING;
    if (waits && time >= host->at) host->state == AWAY ? begin(host) : go_on(host);
    else if (host->state != AWAY && host->state != IDLE && time >= host->until) wait_for_turn(host);
  }
}

static int by_size(const void *one, const void *other) {
  int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

static void report(void) {
  int there = 0, known = answered < 1 << 20 ? answered : 1 << 20;
  for (int n = 0; n < count; n++)
    there += hosts[n].line != NULL && (hosts[n].state == IDLE || hosts[n].state == PINGING);
  qsort(taken, (size_t)known, sizeof *taken, by_size);
  printf("%d %d %lld %lld %d %d %d\n", there, answered, known ? (long long)taken[known / 2] : 0,
         known ? (long long)taken[known * 99LL / 100] : 0, again, refused, busy);
  fflush(stdout);
  answered = again = refused = busy = 0;
}

static int is_over(void) {
  struct pollfd input = { .fd = 0, .events = POLLIN };
  char byte;
  return poll(&input, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

static void play(void) {
  struct epoll_event found[256];
  int64_t told = now(), looked = 0;
  need(scanf("%d", &port) == 1, "port");
  for (int n = 0; n < count; n++) hosts[n].at = now() + between(0, 2000000);
  while (!is_over()) {
    int all = epoll_wait(events, found, 256, 5);
    for (int n = 0; n < all; n++) advance(&hosts[found[n].data.u32]);
    if (now() >= looked + 5000) {
      look_at_clock();
      looked = now();
    }
    if (now() >= told + 500000) {
      report();
      told = now();
    }
  }
}

static void flood(int rate) {
  enum { KEPT = 1500 };
  static int kept[KEPT], is_sent[KEPT];
  char hello[2048];
  SSL *line = SSL_new(context);
  BIO *out = BIO_new(BIO_s_mem());
  SSL_set_bio(line, BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(line);
  SSL_do_handshake(line);
  int length = BIO_read(out, hello, sizeof hello);
  need(length > 0, "hello");
  memset(kept, -1, sizeof kept);
  int64_t first = now(), told = first, begun = 0, last = 0;
  while (!is_over()) {
    for (; begun * 1000000 / rate <= now() - first; begun++) {
      int place = (int)(begun % KEPT);
      if (kept[place] >= 0) close(kept[place]);
      kept[place] = reach(0x7f000201);
      is_sent[place] = 0;
    }
    for (int place = 0; place < KEPT; place++)
      if (kept[place] >= 0 && !is_sent[place])
        is_sent[place] = send(kept[place], hello, (size_t)length, MSG_NOSIGNAL) > 0 || errno != EAGAIN;
    if (now() >= told + 500000) {
      printf("%lld\n", (long long)(begun - last));
      fflush(stdout);
      told = now();
      last = begun;
    }
    poll(NULL, 0, 2);
  }
}

int main(int words, char **word) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
  context = SSL_CTX_new(TLS_client_method());
  need(context != NULL, "TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (words != 4) return 64;
  if (strcmp(word[1], "flood") == 0) {
    port = atoi(word[2]);
    flood(atoi(word[3]));
    return 0;
  }
  if (strcmp(word[1], "hosts") != 0) return 64;
  count = atoi(word[2]);
  sources = atoi(word[3]);
  srandom((unsigned)count);
  hosts = calloc((size_t)count, sizeof *hosts);
  taken = calloc(1 << 20, sizeof *taken);
  need(hosts != NULL && taken != NULL && (events = epoll_create1(0)) >= 0, "memory");
  for (int n = 0; n < count; n++) make_key(&hosts[n]);
  fflush(stdout);
  play();
}
