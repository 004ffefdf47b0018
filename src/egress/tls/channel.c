// SPDX-License-Identifier: Apache-2.0
/* OpenSSL asks for the header of a record and then for its body, and again to learn that there is
 * no more. The bytes of a socket are therefore received here at once, and a socket that gave less
 * than asked for is not asked again before epoll says so. */
#include "egress/tls/channel.h"

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum { IN_BYTES = 2 * CHANNEL_RECORD_MAX + 1024 };

static int socket_receive(struct channel *channel)
{
    ssize_t n;

    if (!channel->in)
        channel->in = xreallocarray(NULL, 1, IN_BYTES);
    n = recv(channel->fd, channel->in, IN_BYTES, MSG_DONTWAIT);
    channel->is_dry = n < IN_BYTES;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    channel->is_eof = n == 0;
    channel->in_at = 0;
    channel->in_len = (size_t)n;
    return n > 0;
}

static int bio_read(BIO *bio, char *data, int len)
{
    struct channel *channel = BIO_get_data(bio);
    size_t part;

    BIO_clear_retry_flags(bio);
    if (channel->in_at == channel->in_len) {
        int r = channel->is_dry || channel->is_eof ? 0 : socket_receive(channel);

        if (r < 0)
            return -1;
        if (r == 0 && channel->is_eof)
            return 0;
        if (r == 0) {
            BIO_set_retry_read(bio);
            return -1;
        }
    }
    part = channel->in_len - channel->in_at;
    part = part < (size_t)len ? part : (size_t)len;
    memcpy(data, channel->in + channel->in_at, part);
    channel->in_at += part;
    return (int)part;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    struct channel *channel = BIO_get_data(bio);
    ssize_t n;

    BIO_clear_retry_flags(bio);
    n = send(channel->fd, data, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        return (int)n;
    if (errno == EAGAIN || errno == EINTR) {
        channel->is_full = true;
        BIO_set_retry_write(bio);
    }
    return -1;
}

static long bio_ctrl(BIO *bio, int what, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method(void)
{
    static BIO_METHOD *method;

    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holt-net socket");
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
    return method;
}

int channel_open(struct channel *channel, SSL *ssl, int fd, const void *first, size_t len)
{
    BIO *bio = ssl && len <= IN_BYTES ? BIO_new(bio_method()) : NULL;

    if (!bio) {
        SSL_free(ssl);
        return -ENOMEM;
    }
    *channel = (struct channel){ .ssl = ssl, .fd = fd, .is_dry = true };
    BIO_set_data(bio, channel);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (len > 0) {
        channel->in = xreallocarray(NULL, 1, IN_BYTES);
        memcpy(channel->in, first, len);
        channel->in_len = len;
        channel->is_dry = false;
    }
    return 0;
}

void channel_close(struct channel *channel)
{
    SSL_free(channel->ssl);
    free(channel->in);
    *channel = (struct channel){ .fd = -EBADF };
}

void channel_wake(struct channel *channel)
{
    channel->is_dry = channel->is_full = false;
}

/* The memory is given back while the peer is silent: most connections wait. */
static void in_rest(struct channel *channel)
{
    if (channel->in && channel->in_at == channel->in_len && channel->is_dry) {
        free(TAKE_PTR(channel->in));
        channel->in_at = channel->in_len = 0;
    }
}

int channel_shake(struct channel *channel, const char **ret_why)
{
    int r = SSL_do_handshake(channel->ssl), error = SSL_get_error(channel->ssl, r);
    long verified;

    if (r == 1) {
        ERR_clear_error();
        return 1;
    }
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        in_rest(channel);
        return 0;
    }
    verified = SSL_get_verify_result(channel->ssl);
    *ret_why = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                     : ERR_reason_error_string(ERR_peek_error());
    if (!*ret_why)
        *ret_why = "the connection was closed in the TLS handshake";
    ERR_clear_error();
    return -EPROTO;
}

static long result_error(struct channel *channel, int r)
{
    int error = SSL_get_error(channel->ssl, r);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return 0;
    ERR_clear_error();
    return error == SSL_ERROR_ZERO_RETURN ? -EPIPE : -ECONNRESET;
}

long channel_read(struct channel *channel, void *data, size_t len)
{
    int r = SSL_read(channel->ssl, data, (int)(len < INT_MAX ? len : INT_MAX));

    if (r > 0)
        return r;
    in_rest(channel);
    return result_error(channel, r);
}

long channel_write(struct channel *channel, const void *data, size_t len)
{
    int r;

    if (channel->is_full || len == 0)
        return 0;
    r = SSL_write(channel->ssl, data, (int)(len < INT_MAX ? len : INT_MAX));
    return r > 0 ? r : result_error(channel, r);
}

void channel_shut(struct channel *channel)
{
    if (channel->ssl && SSL_is_init_finished(channel->ssl))
        (void)SSL_shutdown(channel->ssl);
    ERR_clear_error();
}

bool channel_is_http2(const struct channel *channel)
{
    const unsigned char *name = NULL;
    unsigned len = 0;

    SSL_get0_alpn_selected(channel->ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}
