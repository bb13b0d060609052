#include "CPostgres.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

static int64_t earlier(int64_t end, const X509 *certificate) {
  struct tm time;
  if (certificate == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return end;
  int64_t other = timegm(&time);
  return other < end ? other : end;
}

int64_t pg_certificates_end(const struct pg_line *line) {
  SSL *tls = PQsslStruct(line->connection, "OpenSSL");
  if (tls == NULL) return INT64_MAX;
  int64_t end = earlier(INT64_MAX, SSL_get_certificate(tls));
  STACK_OF(X509) *chain = SSL_get0_verified_chain(tls);
  for (int place = 0; chain != NULL && place < sk_X509_num(chain); place++)
    end = earlier(end, sk_X509_value(chain, place));
  return end;
}

int pg_lock(pthread_mutex_t *mutex, uint64_t until) {
  struct timespec end = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
  return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &end);
}

int pg_take(sem_t *semaphore, int milliseconds) {
  int64_t end = pg_now() + milliseconds;
  struct timespec until = { (time_t)(end / 1000), (long)(end % 1000) * 1000000 };
  int done;
  do done = sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
  while (done < 0 && errno == EINTR);
  return done;
}
