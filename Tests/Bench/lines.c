/* Hosts of a fleet as a verifier sees them: as many lines, each with a key of its own, on which logins
 * are asked for as fast as they are answered.
 *
 *   lines keys N DIRECTORY    makes N keys, 0.pem and so on, and prints the pin of each
 *   lines ask PORT N THREADS DIRECTORY
 *       reads logins from standard input, each the number of its line and two questions (bodies of
 *       frames, their length before them; 0: none), and asks them, each thread one at a time. Prints
 *       for each login when it began and ended and the second byte of its last answer, then "done",
 *       and keeps the lines until its input is closed by a signal.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUESTION = 1, LONGEST = 65536 };

struct login {
  uint32_t line;
  const unsigned char *question[2];
  uint32_t length[2];
  int64_t begin, end;
  int answer;
};

static struct login *logins;
static size_t count;
static SSL **lines;
static int threads, port;
static const char *directory;

static void need(int done, const char *what) {
  if (done) return;
  perror(what);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void make_key(int number) {
  char path[512];
  EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
  X509 *certificate = X509_new();
  need(key != NULL && certificate != NULL, "keys");
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), number + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  need(X509_sign(certificate, key, NULL) > 0, "sign");
  snprintf(path, sizeof path, "%s/%d.pem", directory, number);
  FILE *file = fopen(path, "w");
  need(file != NULL, path);
  need(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) && PEM_write_X509(file, certificate), path);
  fclose(file);
  unsigned char *bytes = NULL, digest[32];
  int length = i2d_PUBKEY(key, &bytes);
  need(EVP_Digest(bytes, (size_t)length, digest, NULL, EVP_sha256(), NULL), "digest");
  for (int place = 0; place < 32; place++) printf("%02x", digest[place]);
  printf("\n");
  OPENSSL_free(bytes);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

static int take(SSL *line, void *place, size_t length) {
  for (size_t have = 0, more = 0; have < length; have += more)
    if (!SSL_read_ex(line, (char *)place + have, length - have, &more)) return 0;
  return 1;
}

/* The length of the next frame's body, and the body; 0 where the line was closed. */
static uint32_t receive(SSL *line, unsigned char *body) {
  unsigned char head[12];
  uint32_t length;
  if (!take(line, head, sizeof head)) return 0;
  memcpy(&length, head, 4);
  return length <= LONGEST && take(line, body, length) ? length : 0;
}

static void hang_up(SSL *line) {
  close(SSL_get_fd(line));
  SSL_free(line);
}

/* A new line, or NULL. */
static SSL *greet(int number) {
  char path[512];
  unsigned char hello[LONGEST];
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  snprintf(path, sizeof path, "%s/%d.pem", directory, number);
  need(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1 &&
         SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) == 1, path);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int one = 1, peer = socket(AF_INET, SOCK_STREAM, 0);
  need(peer >= 0 && connect(peer, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  SSL *line = SSL_new(context);
  SSL_CTX_free(context);
  if (SSL_set_fd(line, peer) && SSL_connect(line) == 1 && receive(line, hello) > 0) return line;
  hang_up(line);
  return NULL;
}

/* The second byte of the answer; negative where none came. */
static int ask(SSL *line, const unsigned char *question, uint32_t length, int64_t nonce) {
  unsigned char frame[LONGEST];
  uint32_t whole = length + 1;
  size_t sent;
  memcpy(frame, &whole, 4);
  memcpy(frame + 4, &nonce, 8);
  frame[12] = QUESTION;
  memcpy(frame + 13, question, length);
  if (!SSL_write_ex(line, frame, 13 + length, &sent) || (whole = receive(line, frame)) < 3) return -1;
  return frame[0] == (0x80 | QUESTION) ? frame[2] : -1;
}

static void *work(void *place) {
  for (size_t number = 0; number < count; number++) {
    struct login *one = &logins[number];
    if (one->line % (uint32_t)threads != (uint32_t)(intptr_t)place) continue;
    one->begin = now();
    /* As a host does: it opens a closed connection again, and does not repeat what it had asked. */
    SSL **line = &lines[one->line];
    for (int turn = 0; turn < 2 && one->answer >= 0; turn++) {
      if (one->length[turn] == 0) continue;
      if (*line == NULL) *line = greet((int)one->line);
      one->answer = *line == NULL ? -1 : ask(*line, one->question[turn], one->length[turn], now());
    }
    if (one->answer < 0 && *line != NULL) {
      hang_up(*line);
      *line = NULL;
    }
    one->end = now();
  }
  return NULL;
}

static void read_logins(void) {
  size_t room = 1 << 20, length = 0, more;
  unsigned char *text = malloc(room);
  while ((more = fread(text + length, 1, room - length, stdin)) > 0)
    if ((length += more) == room) need((text = realloc(text, room *= 2)) != NULL, "memory");
  for (size_t place = 0; place < length; count++) {
    if ((count & (count - 1)) == 0)
      need((logins = realloc(logins, (count ? 2 * count : 1) * sizeof *logins)) != NULL, "memory");
    struct login *one = &logins[count];
    *one = (struct login){ 0 };
    memcpy(&one->line, text + place, 4);
    place += 4;
    for (int turn = 0; turn < 2; turn++) {
      memcpy(&one->length[turn], text + place, 4);
      one->question[turn] = text + place + 4;
      place += 4 + one->length[turn];
    }
  }
}

int main(int words, char **word) {
  if (words == 4 && strcmp(word[1], "keys") == 0) {
    directory = word[3];
    for (int number = 0; number < atoi(word[2]); number++) make_key(number);
    return 0;
  }
  if (words != 6 || strcmp(word[1], "ask") != 0) return 64;
  int all = atoi(word[3]);
  port = atoi(word[2]);
  threads = atoi(word[4]);
  directory = word[5];
  signal(SIGPIPE, SIG_IGN);
  read_logins();
  lines = calloc((size_t)all, sizeof *lines);
  for (int number = 0; number < all; number++) lines[number] = greet(number);
  pthread_t *workers = calloc((size_t)threads, sizeof *workers);
  for (int number = 0; number < threads; number++)
    need(pthread_create(&workers[number], NULL, work, (void *)(intptr_t)number) == 0, "a thread");
  for (int number = 0; number < threads; number++) pthread_join(workers[number], NULL);
  for (size_t number = 0; number < count; number++)
    printf("%" PRId64 " %" PRId64 " %d\n", logins[number].begin, logins[number].end, logins[number].answer);
  printf("done\n");
  fflush(stdout);
  pause();
}
