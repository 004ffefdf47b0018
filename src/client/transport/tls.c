// SPDX-License-Identifier: Apache-2.0
#include "client/transport/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/library.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "client/transport/address.h"
#include "client/transport/deadline.h"
#include "holt.h"

#define LIBRARY "libssl.so.3"

enum {
    RECORD_MAX = 16 * 1024, /* plaintext bytes of one record */
    OUT_MAX = 4 * RECORD_MAX,
};

/* Functions of libssl and libcrypto. */
#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(BIO_ctrl_pending)                                                                     \
    FUNCTION(BIO_new)                                                                              \
    FUNCTION(BIO_read)                                                                             \
    FUNCTION(BIO_s_mem)                                                                            \
    FUNCTION(BIO_write)                                                                            \
    FUNCTION(ERR_clear_error)                                                                      \
    FUNCTION(ERR_get_error)                                                                        \
    FUNCTION(ERR_reason_error_string)                                                              \
    FUNCTION(SSL_CTX_ctrl)                                                                         \
    FUNCTION(SSL_CTX_free)                                                                         \
    FUNCTION(SSL_CTX_load_verify_locations)                                                        \
    FUNCTION(SSL_CTX_new)                                                                          \
    FUNCTION(SSL_CTX_set_default_verify_paths)                                                     \
    FUNCTION(SSL_CTX_set_verify)                                                                   \
    FUNCTION(SSL_connect)                                                                          \
    FUNCTION(SSL_ctrl)                                                                             \
    FUNCTION(SSL_free)                                                                             \
    FUNCTION(SSL_get0_param)                                                                       \
    FUNCTION(SSL_get_error)                                                                        \
    FUNCTION(SSL_get_verify_result)                                                                \
    FUNCTION(SSL_new)                                                                              \
    FUNCTION(SSL_peek)                                                                             \
    FUNCTION(SSL_pending)                                                                          \
    FUNCTION(SSL_read)                                                                             \
    FUNCTION(SSL_set1_host)                                                                        \
    FUNCTION(SSL_set_bio)                                                                          \
    FUNCTION(SSL_write)                                                                            \
    FUNCTION(TLS_client_method)                                                                    \
    FUNCTION(X509_VERIFY_PARAM_set1_ip_asc)                                                        \
    FUNCTION(X509_verify_cert_error_string)

#define ROW(name) LIBRARY_ROW(struct functions, name)

struct functions {
    FUNCTIONS(LIBRARY_MEMBER)
};

static const struct library_row function_rows[] = { FUNCTIONS(ROW) };

struct tls {
    struct functions call;
    SSL_CTX *context;
};

/* OpenSSL uses memory BIOs and never the socket: its own writes would raise SIGPIPE in the user's
 * program. No call waits while it holds the lock. */
struct tls_session {
    const struct functions *call;
    int fd;
    SSL *ssl;
    BIO *received, *sent; /* of ssl */
    struct buf out;       /* bytes of `sent` that are written to the socket */
    size_t owed;          /* bytes that tls_write has accepted and not reported yet */
    struct lock lock;
};

static int functions_load(struct tls *tls, struct holt_error *error)
{
    const char *problem =
        library_load(LIBRARY, function_rows, ARRAY_SIZE(function_rows), &tls->call);

    return problem ? error_set(error, "unimplemented", "https needs OpenSSL: %s", problem) : 0;
}

static const char *last_reason(const struct functions *call)
{
    const char *reason = call->ERR_reason_error_string(call->ERR_get_error());

    return reason ? reason : "unknown reason";
}

static int context_make(struct tls *tls, const char *ca_file, struct holt_error *error)
{
    const struct functions *call = &tls->call;
    int r;

    tls->context = call->SSL_CTX_new(call->TLS_client_method());
    if (!tls->context)
        return error_set(error, "internal", "prepare TLS: %s", last_reason(call));
    (void)call->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    call->SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    r = ca_file ? call->SSL_CTX_load_verify_locations(tls->context, ca_file, NULL)
                : call->SSL_CTX_set_default_verify_paths(tls->context);
    if (r != 1)
        return error_set(error, "invalid_argument", "cannot read certificates from %.200s: %s",
                         ca_file ? ca_file : "the system's store", last_reason(call));
    return 0;
}

DEFINE_CLEANUP(tls_close, struct tls *);

int tls_open(const char *ca_file, struct tls **ret, struct holt_error *error)
{
    cleanup_with(tls_close_slot) struct tls *tls = xcalloc(1, sizeof(*tls));

    if (functions_load(tls, error) < 0 || context_make(tls, ca_file, error) < 0)
        return -1;
    *ret = TAKE_PTR(tls);
    return 0;
}

/* The library is never unloaded, as OpenSSL installs exit handlers. */
void tls_close(struct tls *tls)
{
    if (!tls)
        return;
    if (tls->context)
        tls->call.SSL_CTX_free(tls->context);
    free(tls);
}

/* Flushes OpenSSL's output. Returns 0, -EAGAIN or another -errno. */
static int flush(struct tls_session *session)
{
    char data[RECORD_MAX];
    ssize_t n;

    for (;;) {
        if (session->out.len == 0) {
            int len = session->call->BIO_read(session->sent, data, sizeof(data));

            if (len <= 0)
                return 0;
            if (buf_add(&session->out, data, (size_t)len) < 0)
                return -ENOMEM;
        }
        n = send(session->fd, session->out.data, session->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return -errno;
        buf_consume(&session->out, (size_t)n);
    }
}

/* Passes received bytes to OpenSSL. Returns their number, 0 at the end of the connection, -EAGAIN
 * or another -errno. */
static ssize_t fill(struct tls_session *session)
{
    char data[RECORD_MAX];
    ssize_t n = recv(session->fd, data, sizeof(data), MSG_DONTWAIT);

    if (n < 0)
        return -errno;
    if (n > 0 && session->call->BIO_write(session->received, data, (int)n) != (int)n)
        return -ENOMEM;
    return n;
}

/* Returns 1 when a call that returned r can be retried, 0 at the end of the connection, -EAGAIN
 * with the events to poll for, or another -errno. */
static ssize_t advance(struct tls_session *session, int r, short *ret_events)
{
    int reason = session->call->SSL_get_error(session->ssl, r), sent = flush(session);
    ssize_t n;

    if (reason == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (reason != SSL_ERROR_WANT_READ)
        return -EPROTO;
    if (sent < 0 && sent != -EAGAIN)
        return sent;
    n = fill(session);
    *ret_events = POLLIN;
    if (sent == -EAGAIN)
        *ret_events |= POLLOUT;
    return n > 0 ? 1 : n;
}

ssize_t tls_read(struct tls_session *session, void *data, size_t size, short *ret_events)
{
    const int most = size < INT_MAX ? (int)size : INT_MAX;
    ssize_t n;
    int r;

    lock_take(&session->lock);
    session->call->ERR_clear_error();
    do {
        r = session->call->SSL_read(session->ssl, data, most);
        n = r > 0 ? r : advance(session, r, ret_events);
    } while (r <= 0 && n > 0);
    lock_release(&session->lock);
    return n;
}

bool tls_is_quiet(struct tls_session *session)
{
    short events;
    ssize_t n;
    char byte;
    int r;

    lock_take(&session->lock);
    session->call->ERR_clear_error();
    do {
        r = session->call->SSL_peek(session->ssl, &byte, 1);
        n = r > 0 ? r : advance(session, r, &events);
    } while (r <= 0 && n > 0);
    lock_release(&session->lock);
    return n == -EAGAIN;
}

static ssize_t write_locked(struct tls_session *session, const void *data, size_t len)
{
    int r;

    if (session->owed == 0) {
        session->call->ERR_clear_error();
        r = session->call->SSL_write(session->ssl, data,
                                     (int)(len < RECORD_MAX ? len : RECORD_MAX));
        if (r <= 0)
            return -EPROTO;
        session->owed = (size_t)r;
    }
    r = flush(session);
    if (r < 0)
        return r;
    len = session->owed;
    session->owed = 0;
    return (ssize_t)len;
}

ssize_t tls_write(struct tls_session *session, const void *data, size_t len, short *ret_events)
{
    ssize_t n;

    lock_take(&session->lock);
    n = write_locked(session, data, len);
    lock_release(&session->lock);
    *ret_events = POLLOUT;
    return n;
}

/* Received bytes may hold records that OpenSSL has not read yet, or a partial one. */
static bool has_bytes_locked(struct tls_session *session)
{
    const struct functions *call = session->call;
    char byte;
    int r;

    if (call->SSL_pending(session->ssl) > 0)
        return true;
    if (call->BIO_ctrl_pending(session->received) == 0)
        return false;
    call->ERR_clear_error();
    r = call->SSL_peek(session->ssl, &byte, 1);
    return r > 0 || call->SSL_get_error(session->ssl, r) != SSL_ERROR_WANT_READ;
}

bool tls_has_bytes(struct tls_session *session)
{
    bool has_bytes;

    lock_take(&session->lock);
    has_bytes = has_bytes_locked(session);
    lock_release(&session->lock);
    return has_bytes;
}

/* Sets the name to verify. An IP address is verified without SNI. */
static bool set_peer(struct tls_session *session, const char *host)
{
    const struct functions *call = session->call;
    unsigned char ignored[sizeof(struct in6_addr)];
    bool is_ip = inet_pton(AF_INET, host, ignored) == 1 || inet_pton(AF_INET6, host, ignored) == 1;
    char name[ADDRESS_HOST_MAX];

    if (is_ip)
        return call->X509_VERIFY_PARAM_set1_ip_asc(call->SSL_get0_param(session->ssl), host) == 1;
    (void)snprintf(name, sizeof(name), "%s", host);
    return call->SSL_set1_host(session->ssl, name) == 1 &&
           call->SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                          name) == 1;
}

static int handshake_failed(struct tls_session *session, const struct address *address,
                            struct holt_error *error)
{
    const struct functions *call = session->call;
    long verdict = call->SSL_get_verify_result(session->ssl);

    if (verdict == X509_V_OK)
        return error_set(error, "unavailable", "no TLS with %s: %s", address->authority,
                         last_reason(call));
    error_fill(error, "unauthenticated", "the certificate of %s is not trusted: %s",
               address->authority, call->X509_verify_cert_error_string(verdict));
    (void)snprintf(error->remedy, sizeof(error->remedy),
                   "name the file with the daemon's certificate, or its CA's, in HOLT_CACERT");
    return -1;
}

static int shake_hands(struct tls_session *session, const struct address *address, int64_t deadline,
                       struct holt_error *error)
{
    for (;;) {
        short events = POLLIN;
        ssize_t n;
        int r;

        session->call->ERR_clear_error();
        r = session->call->SSL_connect(session->ssl);
        /* The end of the handshake is flushed here or with the first data. */
        if (r == 1)
            return flush(session) == 0 ? 0 : handshake_failed(session, address, error);
        n = advance(session, r, &events);
        if (n == -EAGAIN)
            n = deadline_wait(session->fd, events, deadline);
        if (n == -ETIMEDOUT)
            return error_set(error, "deadline_exceeded", "the TLS handshake with %s timed out",
                             address->authority);
        if (n == -EPROTO)
            return handshake_failed(session, address, error);
        if (n <= 0)
            return error_set(error, "unavailable", "the TLS handshake with %s failed: %s",
                             address->authority,
                             n < 0 ? strerror((int)-n) : "it closed the connection");
    }
}

DEFINE_CLEANUP(tls_session_free, struct tls_session *);

int tls_session_open(struct tls *tls, const struct address *address, int fd, int64_t deadline,
                     struct tls_session **ret, struct holt_error *error)
{
    cleanup_with(tls_session_free_slot) struct tls_session *session = xcalloc(1, sizeof(*session));
    const struct functions *call = &tls->call;

    *session = (struct tls_session){ .call = call, .fd = fd, .out = BUF_INIT(OUT_MAX) };
    lock_init(&session->lock, LOCK_TLS_SESSION);
    session->ssl = call->SSL_new(tls->context);
    session->received = call->BIO_new(call->BIO_s_mem());
    session->sent = call->BIO_new(call->BIO_s_mem());
    if (!session->ssl || !session->received || !session->sent)
        return error_set(error, "resource_exhausted", "no memory for TLS");
    call->SSL_set_bio(session->ssl, session->received, session->sent);
    if (!set_peer(session, address->host))
        return error_set(error, "invalid_argument", "'%.200s' is not a valid host name for TLS",
                         address->host);
    if (shake_hands(session, address, deadline, error) < 0)
        return -1;
    *ret = TAKE_PTR(session);
    return 0;
}

void tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    if (session->ssl)
        session->call->SSL_free(session->ssl);
    buf_done(&session->out);
    lock_destroy(&session->lock);
    free(session);
}
