/* What the connection between hosts and verifiers needs of libssl, libcrypto and the sockets: a
   key, its pin, a connection. They decide nothing but whose key may be at the other end: the caller
   gives the pins. */
#pragma once

/* Keeps the path of this file out of the binaries. */
#define OPENSSL_NO_FILENAMES

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma clang assume_nonnull begin

/* -- Keys. All of them Ed25519. */

enum { tls_pin_length = 32 };

/* A new key, or NULL. */
static inline EVP_PKEY *_Nullable tls_key_new(void) {
  EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
  ERR_clear_error();
  return key;
}

static inline void tls_key_free(EVP_PKEY *key) { EVP_PKEY_free(key); }

/* Nobody is there to type a passphrase. */
static inline int tls_no_passphrase(char *buffer, int size, int writes, void *_Nullable context) {
  (void)buffer, (void)size, (void)writes, (void)context;
  return -1;
}

/* The key in this text (PEM, PKCS #8, not encrypted), or NULL. */
static inline EVP_PKEY *_Nullable tls_key_read(const void *text, size_t count) {
  if (count > INT_MAX) return NULL;
  BIO *from = BIO_new_mem_buf(text, (int)count);
  EVP_PKEY *key = from != NULL ? PEM_read_bio_PrivateKey(from, NULL, tls_no_passphrase, NULL) : NULL;
  BIO_free(from);
  ERR_clear_error();
  if (key == NULL || EVP_PKEY_is_a(key, "ED25519")) return key;
  EVP_PKEY_free(key);
  return NULL;
}

/* The length of the key's text, which is written where it fits; or 0. */
static inline size_t tls_key_write(const EVP_PKEY *key, void *text, size_t capacity) {
  char *found = NULL;
  size_t length = 0;
  BIO *to = BIO_new(BIO_s_secmem());
  if (to != NULL && PEM_write_bio_PKCS8PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1) {
    long count = BIO_get_mem_data(to, &found);
    if (count > 0 && (size_t)count <= capacity) memcpy(text, found, length = (size_t)count);
  }
  BIO_free(to);
  ERR_clear_error();
  return length;
}

/* SHA-256 of the SubjectPublicKeyInfo. 1 or 0. */
static inline int tls_key_pin(const EVP_PKEY *key, unsigned char *pin) {
  unsigned char *info = NULL;
  size_t written = 0;
  int length = i2d_PUBKEY(key, &info);
  int done = length > 0 &&
             EVP_Q_digest(NULL, "SHA256", NULL, info, (size_t)length, pin, &written) == 1 &&
             written == tls_pin_length;
  OPENSSL_free(info);
  ERR_clear_error();
  return done;
}

/* -- Sockets. None of them blocks; a negative errno where it fails. */

/* A connection that is being made to this address of 4 or 16 bytes. */
int tls_connect(const unsigned char *bytes, int count, uint16_t port);

/* A socket that listens there, at [::] for both kinds of addresses; port 0: any that is free. */
int tls_listen(const unsigned char *bytes, int count, uint16_t port);

/* Where it listens, or a negative errno. */
int tls_port(int listener);

/* The next connection, and the machine that it comes from, as far as addresses tell: an IPv4 address,
   or the first half of another one, since one machine may have all that begin so. */
int tls_accept(int listener, uint64_t *source);

/* Whether the peer has closed its side, whatever it sent before: 1 or 0. */
int tls_has_left(int socket);

/* Whether the peer is there, and has sent nothing that was not read: 1 or 0. */
static inline int tls_is_quiet(int socket) {
  char one;
  ssize_t count;
  do count = recv(socket, &one, 1, MSG_PEEK | MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static inline int tls_epoll(void) {
  int made = epoll_create1(EPOLL_CLOEXEC);
  return made < 0 ? -errno : made;
}

enum { tls_in = 1, tls_out = 2, tls_always = 4 };

/* Tells one waiter, once, when the socket can be read (or written); always: each, each time. */
static inline int tls_watch(int epoll, int socket, uint64_t tag, int what, int is_new) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = (what & tls_out ? EPOLLOUT : EPOLLIN | EPOLLRDHUP) |
                 (what & tls_always ? 0 : (uint32_t)EPOLLONESHOT);
  event.data.u64 = tag;
  return epoll_ctl(epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) < 0 ? -errno : 0;
}

static inline void tls_unwatch(int epoll, int socket) {
  (void)epoll_ctl(epoll, EPOLL_CTL_DEL, socket, NULL);
}

/* 1 with the tag of a socket that is ready, 0 where there is none in time. */
static inline int tls_wait(int epoll, int milliseconds, uint64_t *tag) {
  struct epoll_event event;
  int count = epoll_wait(epoll, &event, 1, milliseconds);
  if (count > 0) *tag = event.data.u64;
  return count < 0 ? -errno : count;
}

/* -- Connections: TLS 1.3 alone, Ed25519 alone, no tickets, no resumption, no early data */

/* What all connections of one side have in common. */
struct tls_side {
  SSL_CTX *context;
  BIO_METHOD *method;
  int is_server;
  int pins;
  unsigned char pin[2][tls_pin_length];
};

struct tls_line {
  SSL *ssl;
  int socket;
  int is_broken;
};

/* What a call comes to where it is not done. */
enum {
  tls_more_in = -1,  /* again, when there is something to read */
  tls_more_out = -2, /* again, when something can be written */
  tls_gone = -3,     /* the line is over */
  tls_unpinned = -4, /* the other side has another key */
};

/* With this key; NULL where memory is short. A server takes any Ed25519 key, and asks who it is
   afterwards. A client takes the pins that stand one after the other, 0 to 2. */
struct tls_side *_Nullable tls_side_new(EVP_PKEY *key, int is_server, const unsigned char *pins,
                                        int count);
void tls_side_free(struct tls_side *side);

/* Takes the socket over, also where it gives NULL. */
struct tls_line *_Nullable tls_line_new(const struct tls_side *side, int socket);

/* Tells the other side that it is over, if that costs no time, and closes. */
void tls_line_free(struct tls_line *line);

/* Why a call of libssl is not done. */
static inline int tls_why(struct tls_line *line, int result) {
  int error = SSL_get_error(line->ssl, result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return tls_more_in;
  if (error == SSL_ERROR_WANT_WRITE) return tls_more_out;
  line->is_broken = error != SSL_ERROR_ZERO_RETURN;
  long verified = SSL_get_verify_result(line->ssl);
  return verified == X509_V_ERR_APPLICATION_VERIFICATION ? tls_unpinned : tls_gone;
}

/* 1 when it is done. */
static inline int tls_handshake(struct tls_line *line) {
  ERR_clear_error();
  int result = SSL_do_handshake(line->ssl);
  return result == 1 ? 1 : tls_why(line, result);
}

/* How many bytes were read, at least 1. */
static inline int64_t tls_read(struct tls_line *line, void *bytes, size_t count) {
  size_t done = 0;
  ERR_clear_error();
  int result = SSL_read_ex(line->ssl, bytes, count, &done);
  return result == 1 ? (int64_t)done : tls_why(line, result);
}

/* How many bytes were taken, at least 1. After `more` the same bytes have to follow. */
static inline int64_t tls_write(struct tls_line *line, const void *bytes, size_t count) {
  size_t done = 0;
  ERR_clear_error();
  int result = SSL_write_ex(line->ssl, bytes, count, &done);
  return result == 1 ? (int64_t)done : tls_why(line, result);
}

/* How many bytes the kernel has taken, of everything. */
static inline uint64_t tls_sent(const struct tls_line *line) {
  return BIO_number_written(SSL_get_wbio(line->ssl));
}

/* Bytes that were decrypted and not read. */
static inline int tls_pending(const struct tls_line *line) { return SSL_pending(line->ssl); }

/* Of the other side's key, after the handshake. 1 or 0. */
static inline int tls_peer(const struct tls_line *line, unsigned char *pin) {
  X509 *certificate = SSL_get0_peer_certificate(line->ssl);
  EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;
  return key != NULL && tls_key_pin(key, pin);
}

#pragma clang assume_nonnull end
