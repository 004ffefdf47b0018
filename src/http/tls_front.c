// SPDX-License-Identifier: Apache-2.0
#include "http/tls_front.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "http/limits.h"
#include "http/tls.h"

enum {
    LOOPS = 2, /* threads: a handshake of one client does not hold up all others */
    EVENTS = 64,
    TICK_MS = 500,
    CLOSING_MS = 2000, /* for the client to close after us */
    STOPPING_MS = 1000,
    ROUNDS = 8, /* buffers that one connection passes before the next one's turn */
    LATE_BYTES = CONNECTION_LATE_MS / 1000 * CONNECTION_BYTES_PER_S,
};

enum stage { STAGE_HANDSHAKE, STAGE_OPEN, STAGE_CLOSING };

/* One side of a connection, for epoll: `data.ptr` points here. */
struct side {
    struct front_connection *connection;
    int fd;
    uint32_t mask; /* as epoll has it */
    bool is_watched;
};

struct pipe_half {
    char *data; /* TLS_FRONT_BUFFER bytes */
    size_t at, len;
    bool is_ended; /* its source has ended */
    bool is_shut;  /* and its sink was told so, or reads no more */
};

struct front_connection {
    struct front_connection *next, **slot; /* in its loop */
    struct front_loop *loop;
    struct side outer, inner; /* the client, and our end of the pair */
    int server_fd;            /* the other end, which belongs to the server once open */
    SSL *ssl;
    enum stage stage;
    uint64_t deadline_ms; /* of the handshake, of closing, or since the server has closed */
    size_t left;          /* bytes that the client had not taken when that deadline was set */
    struct sockaddr_storage address;
    socklen_t address_len;
    bool wants_write;          /* OpenSSL waits until it can write */
    bool is_dead;              /* to be freed */
    bool is_late;              /* and reset: the kernel would keep what the client does not read */
    struct pipe_half up, down; /* to the server, and to the client */

    /* Under the front's lock: */
    struct front_connection *next_open, **slot_open;
    bool is_reset;
};

struct front_loop {
    struct tls_front *front;
    struct thread thread;
    int epoll_fd;
    struct front_connection *first; /* newest first */
    uint64_t check_ms;              /* when the open connections are looked at again */
    bool is_resting;                /* the listener is not watched until then */
};

struct tls_front {
    struct tls_front_options options;
    SSL_CTX *context;
    int wake_fd; /* readable when the front stops */
    atomic_bool is_quiet;
    struct front_loop loops[LOOPS];
    struct lock lock;
    struct front_connection *open; /* newest first */
};

/* A process has one listener with TLS. */
static _Atomic(struct tls_front *) only;

/* --- the context ------------------------------------------------------------------------------ */

DEFINE_CLEANUP(BIO_free, BIO *);

DEFINE_CLEANUP(X509_free, X509 *);

DEFINE_CLEANUP(EVP_PKEY_free, EVP_PKEY *);

static int certificates_use(SSL_CTX *context, const struct tls *tls)
{
    cleanup_with(BIO_free_slot) BIO *text = BIO_new_mem_buf(tls->cert.data, (int)tls->cert.len);
    cleanup_with(X509_free_slot) X509 *own = PEM_read_bio_X509(text, NULL, NULL, NULL);
    X509 *other;

    if (!own || SSL_CTX_use_certificate(context, own) != 1)
        return -EINVAL;
    while ((other = PEM_read_bio_X509(text, NULL, NULL, NULL)))
        if (SSL_CTX_add0_chain_cert(context, other) != 1) {
            X509_free(other);
            return -EINVAL;
        }
    ERR_clear_error(); /* the end of the file is one */
    return 0;
}

static int key_use(SSL_CTX *context, const struct tls *tls)
{
    cleanup_with(BIO_free_slot) BIO *text = BIO_new_mem_buf(tls->key.data, (int)tls->key.len);
    cleanup_with(EVP_PKEY_free_slot) EVP_PKEY *key =
        PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);

    return key && SSL_CTX_use_PrivateKey(context, key) == 1 ? 0 : -EINVAL;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl, (void)context;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Nothing that a client can make grow: no session cache, no renegotiation, no compression, and
 * buffers only while a record is in them. */
static SSL_CTX *context_new(const struct tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (!context)
        return NULL;
    (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE |
                                           SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    /* Earlier versions of libholt take a session ticket for a reply. */
    (void)SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_alpn_select_cb(context, on_alpn, NULL);
    if (certificates_use(context, tls) == 0 && key_use(context, tls) == 0)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

/* --- connections ------------------------------------------------------------------------------ */

static void open_add(struct front_connection *connection)
{
    struct tls_front *front = connection->loop->front;
    lock_scope(&front->lock);

    connection->next_open = front->open;
    connection->slot_open = &front->open;
    if (front->open)
        front->open->slot_open = &connection->next_open;
    front->open = connection;
}

/* Returns whether the connection is to be reset. */
static bool open_remove(struct front_connection *connection)
{
    struct tls_front *front = connection->loop->front;
    lock_scope(&front->lock);

    if (connection->slot_open) {
        *connection->slot_open = connection->next_open;
        if (connection->next_open)
            connection->next_open->slot_open = connection->slot_open;
        connection->slot_open = NULL;
    }
    return connection->is_reset;
}

/* The newest one is meant: a number may be used again before the end of an older one was seen. */
bool tls_front_reset(int fd)
{
    struct tls_front *front = atomic_load(&only);
    struct front_connection *each;

    if (!front)
        return false;
    lock_take(&front->lock);
    for (each = front->open; each && each->server_fd != fd; each = each->next_open)
        ;
    if (each) {
        each->is_reset = true;
        (void)shutdown(fd, SHUT_RDWR);
    }
    lock_release(&front->lock);
    return each != NULL;
}

static void connection_free(struct front_connection *connection)
{
    const struct linger at_once = { .l_onoff = 1 };

    if (open_remove(connection) || connection->is_late)
        (void)setsockopt(connection->outer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    *connection->slot = connection->next;
    if (connection->next)
        connection->next->slot = connection->slot;
    SSL_free(connection->ssl);
    (void)fd_close(connection->outer.fd);
    (void)fd_close(connection->inner.fd);
    free(connection->up.data);
    free(connection->down.data);
    free(connection);
}

/* The inner socket is not watched for nothing: if the server has closed its end, epoll would report
 * that again and again. */
static void side_watch(struct front_connection *connection, struct side *side, uint32_t mask)
{
    struct epoll_event event = { .events = mask, .data.ptr = side };
    bool is_wanted = mask != 0 || side == &connection->outer;
    int operation = !is_wanted ? EPOLL_CTL_DEL : side->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (side->is_watched ? is_wanted && side->mask == mask : !is_wanted)
        return;
    if (epoll_ctl(connection->loop->epoll_fd, operation, side->fd, &event) < 0)
        connection->is_dead = true;
    side->is_watched = is_wanted;
    side->mask = mask;
}

/* Handles a result of OpenSSL that is not success. Returns whether the connection goes on. */
static bool ssl_wait(struct front_connection *connection, int result)
{
    int why = SSL_get_error(connection->ssl, result);

    ERR_clear_error();
    if (why == SSL_ERROR_WANT_WRITE)
        connection->wants_write = true;
    else if (why == SSL_ERROR_ZERO_RETURN)
        connection->up.is_ended = true;
    else if (why != SSL_ERROR_WANT_READ)
        connection->is_dead = true;
    return !connection->is_dead;
}

static bool is_again(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Passes one buffer from the client to the server. Returns whether there was progress. */
static bool up_pass(struct front_connection *connection)
{
    struct pipe_half *up = &connection->up;
    ssize_t n;

    if (up->len == 0 && !up->is_ended) {
        int got = SSL_read(connection->ssl, up->data, TLS_FRONT_BUFFER);

        if (got <= 0 && (!ssl_wait(connection, got) || !up->is_ended))
            return false;
        up->at = 0;
        up->len = got > 0 ? (size_t)got : 0;
    }
    if (up->len > 0 && !up->is_shut) {
        n = send(connection->inner.fd, up->data + up->at, up->len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (is_again(n))
            return false;
        up->is_shut = n < 0; /* the server reads no more, but may still write */
        up->at += n < 0 ? 0 : (size_t)n;
        up->len -= n < 0 ? up->len : (size_t)n;
        return true;
    }
    if (up->is_ended && !up->is_shut) {
        up->is_shut = true;
        (void)shutdown(connection->inner.fd, SHUT_WR);
    }
    return false;
}

/* Passes one buffer from the server to the client. Returns whether there was progress. */
static bool down_pass(struct front_connection *connection)
{
    struct pipe_half *down = &connection->down;
    int sent;

    if (down->len == 0 && !down->is_ended) {
        ssize_t n = recv(connection->inner.fd, down->data, TLS_FRONT_BUFFER, MSG_DONTWAIT);

        if (is_again(n))
            return false;
        down->is_ended = n <= 0;
        down->at = 0;
        down->len = n > 0 ? (size_t)n : 0;
    }
    if (down->len == 0)
        return false;
    sent = SSL_write(connection->ssl, down->data + down->at, (int)down->len);
    if (sent <= 0) {
        (void)ssl_wait(connection, sent);
        return false;
    }
    down->at += (size_t)sent;
    down->len -= (size_t)sent;
    return true;
}

/* Everything was sent: says so, and gives the client time to close, because closing a socket with
 * unread bytes would reset it. */
static void connection_close(struct front_connection *connection)
{
    if (open_remove(connection)) {
        connection->is_dead = true;
        return;
    }
    connection->stage = STAGE_CLOSING;
    connection->deadline_ms = clock_after_ms(CLOSING_MS);
    (void)SSL_shutdown(connection->ssl);
    ERR_clear_error();
    (void)shutdown(connection->outer.fd, SHUT_WR);
    side_watch(connection, &connection->inner, 0);
    side_watch(connection, &connection->outer, EPOLLIN);
    connection->inner.fd = fd_close(connection->inner.fd);
}

static void connection_pass(struct front_connection *connection)
{
    struct pipe_half *up = &connection->up, *down = &connection->down;
    bool goes_up = true, goes_down = true;
    int rounds = 0;

    connection->wants_write = false;
    while ((goes_up || goes_down) && !connection->is_dead && rounds++ < ROUNDS) {
        goes_up = up_pass(connection);
        goes_down = !connection->is_dead && down_pass(connection);
    }
    if (connection->is_dead)
        return;
    if (down->is_ended && down->len == 0) {
        connection_close(connection);
        return;
    }
    /* After the last round the inner socket is watched for room, which it has: the next turn comes
     * even if OpenSSL still holds what epoll cannot see. */
    side_watch(connection, &connection->outer,
               (!up->is_shut && up->len == 0 && !up->is_ended ? EPOLLIN : 0U) |
                   (connection->wants_write ? EPOLLOUT : 0U));
    side_watch(connection, &connection->inner,
               (down->len == 0 ? EPOLLIN : 0U) |
                   ((up->len > 0 && !up->is_shut) || goes_up || goes_down ? EPOLLOUT : 0U));
}

/* Hands the server its end of the pair. */
static bool connection_open(struct front_connection *connection)
{
    const struct tls_front_options *options = &connection->loop->front->options;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    connection->inner.fd = pair[0];
    connection->server_fd = pair[1];
    connection->up.data = xcalloc(1, TLS_FRONT_BUFFER);
    connection->down.data = xcalloc(1, TLS_FRONT_BUFFER);
    connection->stage = STAGE_OPEN;
    connection->deadline_ms = CONNECTION_FOREVER;
    open_add(connection);
    return options->accept(options->context, connection->server_fd,
                           (const struct sockaddr *)&connection->address, connection->address_len);
}

static void connection_shake(struct front_connection *connection)
{
    int done = SSL_accept(connection->ssl);

    connection->wants_write = false;
    if (done == 1) {
        connection->is_dead = !connection_open(connection);
        if (!connection->is_dead)
            connection_pass(connection);
        return;
    }
    if (ssl_wait(connection, done))
        side_watch(connection, &connection->outer, connection->wants_write ? EPOLLOUT : EPOLLIN);
    if (connection->up.is_ended)
        connection->is_dead = true;
}

/* Reads what the client still sends, until it closes. */
static void connection_discard(struct front_connection *connection)
{
    char rest[4096];
    ssize_t n = recv(connection->outer.fd, rest, sizeof(rest), MSG_DONTWAIT);

    connection->is_dead = n == 0 || (n < 0 && !is_again(n));
}

/* Returns the number of bytes from the server that the client has not taken. */
static size_t connection_left(const struct front_connection *connection)
{
    int outer = 0, inner = 0;

    (void)ioctl(connection->outer.fd, SIOCOUTQ, &outer);
    (void)ioctl(connection->inner.fd, FIONREAD, &inner);
    return (size_t)outer + (size_t)inner + connection->down.len;
}

/* The inner socket is not watched while the client does not read, so the server's close is looked
 * for here: the server no longer counts the connection, which must not stay for as long as the
 * client likes. A client that reads CONNECTION_BYTES_PER_S gets everything. */
static void connection_check(struct front_connection *connection, uint64_t now_ms)
{
    struct pollfd inner = { .fd = connection->inner.fd };
    bool is_first = connection->deadline_ms == CONNECTION_FOREVER;
    size_t left;

    if (connection->stage != STAGE_OPEN || connection->is_dead)
        return;
    if (is_first
            ? connection->down.len == 0 || poll(&inner, 1, 0) != 1 || !(inner.revents & POLLHUP)
            : connection->deadline_ms > now_ms)
        return;
    left = connection_left(connection);
    if (!is_first && left + LATE_BYTES > connection->left) {
        connection->is_dead = connection->is_late = true;
        return;
    }
    connection->left = left;
    connection->deadline_ms = now_ms + CONNECTION_LATE_MS;
}

static void side_handle(struct side *side, uint32_t events)
{
    struct front_connection *connection = side->connection;

    if (connection->is_dead)
        return;
    if (connection->stage == STAGE_HANDSHAKE)
        connection_shake(connection);
    else if (connection->stage == STAGE_OPEN)
        connection_pass(connection);
    else
        connection_discard(connection);
    /* A side that is not watched for anything still reports that it has gone. */
    if (events & (EPOLLERR | EPOLLHUP) && side == &connection->outer)
        connection->is_dead = true;
}

/* --- new connections -------------------------------------------------------------------------- */

static bool has_same_address(const struct front_connection *connection,
                             const struct sockaddr_storage *address)
{
    const struct sockaddr_in *one = (const void *)&connection->address,
                             *other = (const void *)address;
    const struct sockaddr_in6 *one6 = (const void *)&connection->address,
                              *other6 = (const void *)address;

    if (connection->address.ss_family != address->ss_family)
        return false;
    if (address->ss_family == AF_INET)
        return one->sin_addr.s_addr == other->sin_addr.s_addr;
    return memcmp(&one6->sin6_addr, &other6->sin6_addr, sizeof(one6->sin6_addr)) == 0;
}

/* Closes the oldest connection without a completed handshake if there are too many of them, in all
 * or of this address. The server limits those that have completed it. */
static void room_make(const struct front_loop *loop, const struct sockaddr_storage *address)
{
    const struct tls_front_options *options = &loop->front->options;
    struct front_connection *oldest = NULL, *oldest_same = NULL;
    size_t same = 0, all = 0;

    for (struct front_connection *each = loop->first; each; each = each->next) {
        if (each->stage != STAGE_HANDSHAKE || each->is_dead)
            continue;
        oldest = each;
        all++;
        if (has_same_address(each, address)) {
            oldest_same = each;
            same++;
        }
    }
    if (oldest_same && same >= options->handshakes_per_address / LOOPS)
        oldest_same->is_dead = true;
    else if (oldest && all >= options->handshakes_max / LOOPS)
        oldest->is_dead = true;
}

static void connection_add(struct front_loop *loop, int fd, const struct sockaddr_storage *address,
                           socklen_t len)
{
    struct front_connection *connection;
    SSL *ssl = SSL_new(loop->front->context);

    room_make(loop, address);
    if (!ssl || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        (void)fd_close(fd);
        return;
    }
    SSL_set_accept_state(ssl);
    connection = xcalloc(1, sizeof(*connection));
    *connection = (struct front_connection){
        .next = loop->first,
        .slot = &loop->first,
        .loop = loop,
        .outer = { .connection = connection, .fd = fd },
        .inner = { .connection = connection, .fd = -EBADF },
        .server_fd = -EBADF,
        .ssl = ssl,
        .deadline_ms = clock_after_ms(CONNECTION_FIRST_MS),
        .address = *address,
        .address_len = len,
    };
    if (loop->first)
        loop->first->slot = &connection->next;
    loop->first = connection;
    connection_shake(connection);
}

static int listener_watch(struct front_loop *loop)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = loop };
    int fd = loop->front->options.listen_fd;

    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void listener_rest(struct front_loop *loop)
{
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->front->options.listen_fd, NULL);
    loop->is_resting = true;
}

/* The front may become quiet at the same time, and has then removed the listener before. */
static void listener_resume(struct front_loop *loop)
{
    loop->is_resting = listener_watch(loop) < 0;
    if (atomic_load(&loop->front->is_quiet))
        listener_rest(loop);
}

static void connections_accept(struct front_loop *loop)
{
    for (int i = 0; i < EVENTS && !atomic_load(&loop->front->is_quiet); i++) {
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof(address);
        int fd = accept4(loop->front->options.listen_fd, (struct sockaddr *)&address, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        /* The listener stays readable if the connection cannot be taken. */
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            listener_rest(loop);
        if (fd < 0)
            return;
        connection_add(loop, fd, &address, len);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Frees the dead and the late. A connection is freed here only: events of one round may name it. */
static void connections_sweep(struct front_loop *loop)
{
    uint64_t now_ms = clock_ms();
    bool is_due = loop->check_ms <= now_ms;
    struct front_connection *next;

    for (struct front_connection *each = loop->first; each; each = next) {
        next = each->next;
        if (is_due)
            connection_check(each, now_ms);
        if (each->is_dead || (each->stage != STAGE_OPEN && each->deadline_ms <= now_ms))
            connection_free(each);
    }
    if (!is_due)
        return;
    loop->check_ms = now_ms + TICK_MS;
    if (loop->is_resting && !atomic_load(&loop->front->is_quiet))
        listener_resume(loop);
}

/* Returns false once the front stops. */
static bool loop_turn(struct front_loop *loop)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(loop->epoll_fd, events, EVENTS, TICK_MS);
    bool goes_on = true;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == loop)
            connections_accept(loop);
        else if (events[i].data.ptr == loop->front)
            goes_on = false;
        else
            side_handle(events[i].data.ptr, events[i].events);
    }
    connections_sweep(loop);
    return goes_on;
}

/* When the front stops, what is under way to clients is sent first. */
static void loop_main(void *argument)
{
    struct front_loop *loop = argument;
    uint64_t end_ms;

    while (loop_turn(loop))
        ;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->front->wake_fd, NULL);
    end_ms = clock_after_ms(STOPPING_MS);
    while (loop->first && clock_ms() < end_ms)
        (void)loop_turn(loop);
    while (loop->first)
        connection_free(loop->first);
}

static int loop_start(struct front_loop *loop, struct tls_front *front)
{
    struct epoll_event wakes = { .events = EPOLLIN, .data.ptr = front };

    loop->front = front;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, front->wake_fd, &wakes) < 0 ||
        listener_watch(loop) < 0)
        return -errno;
    return thread_start(&loop->thread, "holt-tls", loop_main, loop);
}

int tls_front_start(const struct tls_front_options *options, struct tls_front **ret,
                    struct err *err)
{
    struct tls_front *front = xcalloc(1, sizeof(*front));
    int r = 0;

    front->options = *options;
    lock_init(&front->lock, LOCK_TLS_FRONT);
    for (int i = 0; i < LOOPS; i++)
        front->loops[i].epoll_fd = -EBADF;
    front->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    front->context = context_new(options->tls);
    if (!front->context)
        r = err_set(err, ERR_INVALID, "OpenSSL cannot use the certificate or its key");
    else if (front->wake_fd < 0)
        r = err_sys(err, -errno, "make an eventfd");
    atomic_store(&only, front);
    for (int i = 0; i < LOOPS && r == 0; i++) {
        r = loop_start(&front->loops[i], front);
        if (r < 0)
            (void)err_sys(err, r, "start a thread for TLS");
    }
    if (r < 0) {
        tls_front_stop(front);
        return r;
    }
    *ret = front;
    return 0;
}

void tls_front_quiesce(struct tls_front *front)
{
    atomic_store(&front->is_quiet, true);
    for (int i = 0; i < LOOPS; i++)
        (void)epoll_ctl(front->loops[i].epoll_fd, EPOLL_CTL_DEL, front->options.listen_fd, NULL);
}

void tls_front_stop(struct tls_front *front)
{
    const uint64_t one = 1;

    if (!front)
        return;
    atomic_store(&front->is_quiet, true);
    (void)!write(front->wake_fd, &one, sizeof(one));
    for (int i = 0; i < LOOPS; i++) {
        thread_join(&front->loops[i].thread);
        front->loops[i].epoll_fd = fd_close(front->loops[i].epoll_fd);
    }
    atomic_store(&only, NULL);
    SSL_CTX_free(front->context);
    (void)fd_close(front->wake_fd);
    lock_destroy(&front->lock);
    free(front);
}
