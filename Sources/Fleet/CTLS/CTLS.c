#include "CTLS.h"

#include <poll.h>

/* Here and not in the header: what needs _GNU_SOURCE, which Swift's importer does not set, and what
   libssl calls back. */

/* -- Sockets */

static socklen_t line_address(const unsigned char *bytes, int count, uint16_t port,
                              struct sockaddr_storage *address) {
  memset(address, 0, sizeof *address);
  if (count == 4) {
    struct sockaddr_in *found = (void *)address;
    found->sin_family = AF_INET;
    found->sin_port = htons(port);
    memcpy(&found->sin_addr, bytes, 4);
    return sizeof *found;
  }
  struct sockaddr_in6 *found = (void *)address;
  found->sin6_family = AF_INET6;
  found->sin6_port = htons(port);
  memcpy(&found->sin6_addr, bytes, 16);
  return sizeof *found;
}

static int line_socket(const struct sockaddr_storage *address) {
  int made = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return made < 0 ? -errno : made;
}

/* A frame goes at once; what nobody acknowledges for so long is over. */
static void line_settle(int socket) {
  int on = 1;
  unsigned int patience = 10000;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

int tls_connect(const unsigned char *bytes, int count, uint16_t port) {
  struct sockaddr_storage address;
  socklen_t length = line_address(bytes, count, port, &address);
  int made = line_socket(&address);
  if (made < 0) return made;
  line_settle(made);
  if (connect(made, (const void *)&address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
    return made;
  int error = errno;
  close(made);
  return -error;
}

int tls_listen(const unsigned char *bytes, int count, uint16_t port) {
  struct sockaddr_storage address;
  static const unsigned char any[16] = { 0 };
  int on = 1, alone = count == 16 && memcmp(bytes, any, sizeof any) != 0;
  socklen_t length = line_address(bytes, count, port, &address);
  int made = line_socket(&address);
  if (made < 0) return made;
  if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      (count == 4 || setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof alone) == 0) &&
      bind(made, (const void *)&address, length) == 0 && listen(made, SOMAXCONN) == 0)
    return made;
  int error = errno;
  close(made);
  return -error;
}

int tls_port(int listener) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (getsockname(listener, (void *)&address, &length) < 0) return -errno;
  return ntohs(address.ss_family == AF_INET ? ((const struct sockaddr_in *)&address)->sin_port
                                            : ((const struct sockaddr_in6 *)&address)->sin6_port);
}

/* An IPv4 address that came to a socket of both kinds is itself. */
static uint64_t line_source(const struct sockaddr_storage *address) {
  uint64_t source = 0;
  if (address->ss_family == AF_INET) {
    memcpy(&source, &((const struct sockaddr_in *)address)->sin_addr, 4);
  } else {
    const struct in6_addr *found = &((const struct sockaddr_in6 *)address)->sin6_addr;
    int is_mapped = IN6_IS_ADDR_V4MAPPED(found);
    memcpy(&source, found->s6_addr + (is_mapped ? 12 : 0), is_mapped ? 4 : sizeof source);
  }
  return source;
}

int tls_accept(int listener, uint64_t *source) {
  struct sockaddr_storage address = { 0 };
  socklen_t length = sizeof address;
  int made = accept4(listener, (void *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (made < 0) return -errno;
  *source = line_source(&address);
  line_settle(made);
  int room = 128 << 10;
  (void)setsockopt(made, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  return made;
}

int tls_has_left(int socket) {
  struct pollfd asked = { .fd = socket, .events = POLLRDHUP };
  return poll(&asked, 1, 0) > 0;
}

/* -- What libssl reads and writes by: never SIGPIPE */

static int line_socket_of(BIO *bio) { return (int)(intptr_t)BIO_get_data(bio); }

static int line_write(BIO *bio, const char *bytes, int count) {
  BIO_clear_retry_flags(bio);
  ssize_t done = send(line_socket_of(bio), bytes, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_write(bio);
  return (int)done;
}

static int line_read(BIO *bio, char *bytes, int count) {
  BIO_clear_retry_flags(bio);
  ssize_t done = recv(line_socket_of(bio), bytes, (size_t)count, MSG_DONTWAIT);
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_read(bio);
  return (int)done;
}

static long line_control(BIO *bio, int what, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *line_method(void) {
  BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "line");
  if (made != NULL && BIO_meth_set_write(made, line_write) == 1 &&
      BIO_meth_set_read(made, line_read) == 1 && BIO_meth_set_ctrl(made, line_control) == 1)
    return made;
  BIO_meth_free(made);
  return NULL;
}

/* -- Sides */

/* Nobody reads anything of it but the key: there is no name in it, and it does not expire. */
static X509 *line_certificate(EVP_PKEY *key) {
  X509 *made = X509_new();
  if (made == NULL) return NULL;
  X509_NAME *name = X509_get_subject_name(made);
  if (X509_set_version(made, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notBefore(made), "20000101000000Z") == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notAfter(made), "99991231235959Z") == 1 &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"sallyport", -1,
                                 -1, 0) == 1 &&
      X509_set_issuer_name(made, name) == 1 && X509_set_pubkey(made, key) == 1 &&
      X509_sign(made, key, NULL) > 0)
    return made;
  X509_free(made);
  return NULL;
}

/* In place of all that X.509 has to say: the key alone counts. That the other side has it, its
   signature over the handshake shows. */
static int line_verify(X509_STORE_CTX *chain, void *argument) {
  const struct tls_side *side = argument;
  unsigned char pin[tls_pin_length];
  X509 *certificate = X509_STORE_CTX_get0_cert(chain);
  EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;
  int is_good = 0;
  if (key != NULL && EVP_PKEY_is_a(key, "ED25519") && tls_key_pin(key, pin)) {
    is_good = side->is_server;
    for (int n = 0; n < side->pins; n++)
      if (memcmp(side->pin[n], pin, sizeof pin) == 0) is_good = 1;
  }
  X509_STORE_CTX_set_error(chain, is_good ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return is_good;
}

static int line_configure(struct tls_side *side, EVP_PKEY *key) {
  SSL_CTX *context = side->context;
  X509 *certificate = line_certificate(key);
  int done = certificate != NULL && SSL_CTX_use_certificate(context, certificate) == 1 &&
             SSL_CTX_use_PrivateKey(context, key) == 1 &&
             SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
             SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
             SSL_CTX_set1_sigalgs_list(context, "ed25519") == 1 &&
             SSL_CTX_set1_client_sigalgs_list(context, "ed25519") == 1 &&
             SSL_CTX_set_num_tickets(context, 0) == 1;
  X509_free(certificate);
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  (void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_NO_RENEGOTIATION | SSL_OP_CLEANSE_PLAINTEXT);
  (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(context, 4096);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_cert_verify_callback(context, line_verify, side);
  return done;
}

struct tls_side *tls_side_new(EVP_PKEY *key, int is_server, const unsigned char *pins, int count) {
  struct tls_side *side = calloc(1, sizeof *side);
  if (side == NULL || count > 2) {
    free(side);
    return NULL;
  }
  side->is_server = is_server;
  side->pins = count;
  memcpy(side->pin, pins, (size_t)count * tls_pin_length);
  side->method = line_method();
  side->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  int done = side->method != NULL && side->context != NULL && line_configure(side, key);
  ERR_clear_error();
  if (done) return side;
  tls_side_free(side);
  return NULL;
}

void tls_side_free(struct tls_side *side) {
  SSL_CTX_free(side->context);
  BIO_meth_free(side->method);
  free(side);
}

/* -- Connections */

struct tls_line *tls_line_new(const struct tls_side *side, int socket) {
  struct tls_line *line = calloc(1, sizeof *line);
  SSL *ssl = line != NULL ? SSL_new(side->context) : NULL;
  BIO *bio = ssl != NULL ? BIO_new(side->method) : NULL;
  ERR_clear_error();
  if (bio == NULL) {
    SSL_free(ssl);
    free(line);
    close(socket);
    return NULL;
  }
  BIO_set_data(bio, (void *)(intptr_t)socket);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (side->is_server) SSL_set_accept_state(ssl);
  else SSL_set_connect_state(ssl);
  line->ssl = ssl;
  line->socket = socket;
  return line;
}

void tls_line_free(struct tls_line *line) {
  if (!line->is_broken && SSL_is_init_finished(line->ssl)) (void)SSL_shutdown(line->ssl);
  ERR_clear_error();
  SSL_free(line->ssl);
  close(line->socket);
  free(line);
}
