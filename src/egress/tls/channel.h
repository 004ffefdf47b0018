/* One side of a connection whose TLS ends here, on a socket that never blocks. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum { CHANNEL_RECORD_MAX = 16 * 1024 };

struct channel {
    SSL *ssl; /* NULL: none */
    int fd;
    char *in; /* bytes that were received and not yet decrypted */
    size_t in_len, in_at;
    bool is_dry;  /* the socket has no more for now */
    bool is_full; /* the socket takes no more for now */
    bool is_eof;  /* the socket has ended */
};

/* Takes the SSL. `first` are bytes that were received before. */
int channel_open(struct channel *channel, SSL *ssl, int fd, const void *first, size_t len);
void channel_close(struct channel *channel);

/* Notes what epoll says of the socket. */
void channel_wake(struct channel *channel);

/* Returns 1 when the handshake is over, 0 if it waits, or -EPROTO; the reason is in ret_why. */
int channel_shake(struct channel *channel, const char **ret_why);

/* Returns the bytes read, 0 if there are none for now, -EPIPE at the end that the peer has
 * announced, or -ECONNRESET. */
long channel_read(struct channel *channel, void *data, size_t len);

/* Returns the bytes written, 0 if the socket is full, or -ECONNRESET. */
long channel_write(struct channel *channel, const void *data, size_t len);

/* Tells the peer that nothing more comes. */
void channel_shut(struct channel *channel);

/* Returns whether the peer has chosen HTTP/2. */
bool channel_is_http2(const struct channel *channel);
