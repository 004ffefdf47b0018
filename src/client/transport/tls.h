/* TLS by OpenSSL. The library is loaded when the first https address is used: linking it would add
 * about two milliseconds to every start of holt, which is more than all the rest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address;
struct holt_error;
struct tls;
struct tls_session;

/* The TLS settings of a handle. Certificates are verified against ca_file, or if that is NULL
 * against the system's; verification cannot be turned off. Returns 0 or -1. */
int tls_open(const char *ca_file, struct tls **ret, struct holt_error *error);
void tls_close(struct tls *tls);

/* Does the TLS handshake over a connected socket, which stays the caller's and becomes
 * non-blocking, and verifies the name of the peer. */
int tls_session_open(struct tls *tls, const struct address *address, int fd, int64_t deadline,
                     struct tls_session **ret, struct holt_error *error);
void tls_session_free(struct tls_session *session);

/* Neither waits. Both return the number of bytes, 0 at the end of the connection (reading), -EAGAIN
 * with the events to poll for, or another -errno. One thread may read while another writes. */
ssize_t tls_read(struct tls_session *session, void *data, size_t size, short *ret_events);
ssize_t tls_write(struct tls_session *session, const void *data, size_t len, short *ret_events);

/* Returns whether the peer has neither sent anything that tls_read would return nor closed. Does
 * not wait. Records of TLS itself, such as session tickets, do not count. */
bool tls_is_quiet(struct tls_session *session);

/* Returns whether received bytes are buffered, which poll does not see. */
bool tls_has_bytes(struct tls_session *session);
