/* TLS, by OpenSSL. The library is loaded when the first https address is opened: linked in, it
 * would cost every start of holt about two milliseconds, more than all the rest of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address;
struct holt_error;
struct tls;
struct tls_session;

/* What all connections of one handle share. Certificates are checked against ca_file, or where that
 * is NULL against those that the system trusts; there is no way to leave that out. 0 or -1. */
int tls_open(const char *ca_file, struct tls **ret, struct holt_error *error);
void tls_close(struct tls *tls);

/* Does the TLS handshake over a connected socket, which stays the caller's and becomes
 * non-blocking, and verifies the name of the peer. */
int tls_session_open(struct tls *tls, const struct address *address, int fd, int64_t deadline,
                     struct tls_session **ret, struct holt_error *error);
void tls_session_free(struct tls_session *session);

/* Never wait: how many bytes were taken, 0 at the end of the connection (of reading), -EAGAIN with
 * what to poll for, or another -errno. One thread may read while another writes. */
ssize_t tls_read(struct tls_session *session, void *data, size_t size, short *ret_events);
ssize_t tls_write(struct tls_session *session, const void *data, size_t len, short *ret_events);

/* Whether bytes are here that poll knows nothing of. */
bool tls_has_bytes(struct tls_session *session);
