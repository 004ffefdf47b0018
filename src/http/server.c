// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "auth/peer.h"
#include "auth/token.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "http/call_stats.h"
#include "http/exchange.h"
#include "http/exchange_internal.h"
#include "http/framing.h"
#include "http/frontend.h"
#include "http/inner.h"
#include "http/limits.h"
#include "http/listen.h"
#include "http/session.h"
#include "http/tls/certificate.h"
#include "http/tls/front.h"
#include "http/upgraded.h"

enum {
    CONNECTIONS_MAX = 1024, /* on each listener, so that TCP cannot crowd out the unix socket */
    CONNECTIONS_SHARE = 8,  /* at most this part of the daemon's descriptors */
    TLS_DESCRIPTORS = 3,    /* of one connection: the client, and a pair to the server */
    CONNECTION_BYTES = 32 * 1024, /* header and buffers; zeroed by libmicrohttpd on every request */
    THREAD_STACK_BYTES = 1024 * 1024,
};

/* One listening socket. */
struct server {
    struct listener listener;
    struct MHD_Daemon *daemon;
    MHD_socket quiet_fd; /* the socket of a server that accepts no more; else -1 */
    struct connection_limits *limits;
    struct tls tls;          /* of a listener that has it */
    struct tls_front *front; /* NULL: none */
    int front_fd;            /* the socket that it listens on; else -1 */
    struct upgraded_connections upgraded;
};

struct http_server {
    struct server local;
    struct server tcp;
    char *socket_path; /* made by us; NULL when the socket was passed to us */
    char *listen;      /* copies: the configuration may go before the server */
    char *hosts;
    char *preview;
    char *origins;
    struct peer_rules *peers;
    char tcp_address[64];
};

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)connection;
    return exchange_new(cls, target);
}

/* The parameters are libmicrohttpd's. It calls once for the header, then with each piece of the
 * body, then once more with nothing. */
// NOLINTNEXTLINE(readability-function-size)
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *path,
                                  const char *verb, const char *version, const char *data,
                                  size_t *len, void **slot)
{
    struct exchange *exchange = *slot;
    enum MHD_Result result;

    (void)cls;
    if (exchange_is_new(exchange)) {
        const struct request_line line = { verb, exchange->target, version };

        return exchange_begin(exchange, connection, path, &line);
    }
    if (*len == 0)
        return exchange_answer(exchange);
    result = exchange_receive(exchange, data, *len);
    *len = 0;
    return result;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)connection, (void)why;
    exchange_free(*slot);
    *slot = NULL;
}

/* The socket is still open when libmicrohttpd says that the connection is closed. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *server = cls;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = connection_limits_add(
            server->limits,
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
            inner_client_address(connection));
    } else {
        connection_limits_remove(server->limits, *slot);
        *slot = NULL;
    }
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *format,
                                                         va_list args)
{
    char line[256];

    (void)cls;
    if (vsnprintf(line, sizeof(line), format, args) < 0)
        return;
    line[strcspn(line, "\n")] = '\0';
    log_debug("http: %s", line);
}

static void server_init(struct server *server, const struct http_server *http,
                        const struct http_options *options)
{
    upgraded_init(&server->upgraded);
    server->quiet_fd = server->front_fd = -1;
    server->listener = (struct listener){
        .origin_rules = { .listen = http->listen,
                          .hosts = http->hosts,
                          .origins = http->origins,
                          .preview = http->preview },
        .tcp_address = http->tcp_address,
        .tokens = options->tokens,
        .sessions = options->sessions,
        .upgraded = &server->upgraded,
        .frontends = options->frontends,
        .frontend_count = options->frontend_count,
        .check_open = options->check_open,
        .context = options->context,
    };
}

/* A daemon that may open few descriptors keeps most of them for sandboxes. */
static unsigned connections_max(bool is_tls)
{
    unsigned share = is_tls ? CONNECTIONS_SHARE * TLS_DESCRIPTORS : CONNECTIONS_SHARE;
    struct rlimit files;
    bool is_known = getrlimit(RLIMIT_NOFILE, &files) == 0;

    return is_known && files.rlim_cur / share < CONNECTIONS_MAX ? (unsigned)(files.rlim_cur / share)
                                                                : CONNECTIONS_MAX;
}

static bool on_tls_connection(void *context, int fd, const struct sockaddr *address, socklen_t len)
{
    const struct server *server = context;

    return MHD_add_connection(server->daemon, fd, address, len) == MHD_YES;
}

/* The server has no socket to listen on then: its connections come from the front. */
static int front_start(struct server *server, int fd, unsigned most, unsigned per_client,
                       struct err *err)
{
    const struct tls_front_options options = {
        .listen_fd = fd,
        .tls = &server->tls,
        .handshakes_max = most / 2,
        .handshakes_per_address = per_client / 2,
        .accept = on_tls_connection,
        .context = server,
    };

    server->front_fd = fd;
    return tls_front_start(&options, &server->front, err);
}

static bool token_is_valid(void *context, const char *id)
{
    return credential_is_valid(context, id);
}

/* The socket belongs to the server from here on. */
static int server_start(struct server *server, int fd, struct err *err)
{
    const bool is_local = server->listener.is_local, is_tls = server->listener.is_tls;
    const unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                           MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_UPGRADE |
                           (is_tls ? MHD_USE_NO_LISTEN_SOCKET : 0U);
    struct MHD_OptionItem listen_option[] = {
        { MHD_OPTION_LISTEN_SOCKET, fd, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    const unsigned most = connections_max(is_tls);
    const unsigned spare = most / 8; /* while evicted connections are being closed */
    const unsigned per_client =
        most / 8 * 5; /* of one address on TCP, so that others can connect */
    const struct connection_rules rules = {
        .crowd = most,
        .share = is_local ? 0 : per_client,
        .is_token_valid = token_is_valid,
        .context = &server->listener,
    };
    int r = connection_limits_start(&rules, &server->limits, err);

    server->listener.inner_max = most / 2;
    if (r < 0) {
        (void)fd_close(fd);
        return r;
    }
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, &server->listener, MHD_OPTION_EXTERNAL_LOGGER, on_log,
        NULL, MHD_OPTION_CONNECTION_LIMIT, most + spare, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        is_local ? 0U : per_client + spare, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, &server->listener, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_ARRAY, is_tls ? listen_option + 1 : listen_option,
        MHD_OPTION_END);
    if (server->daemon)
        return is_tls ? front_start(server, fd, most, per_client, err) : 0;
    (void)fd_close(fd);
    return err_sys(err, -errno, "start the HTTP server");
}

/* The listening socket stays open until the end, even one that was passed to us: a client that
 * connects meanwhile is not refused, and waits for the next daemon. */
static void server_drain(struct server *server)
{
    if (!server->daemon)
        return;
    if (server->front)
        tls_front_quiesce(server->front);
    else
        server->quiet_fd = MHD_quiesce_daemon(server->daemon);
    connection_limits_drain(server->limits);
}

static void server_stop(struct server *server)
{
    if (server->front)
        tls_front_quiesce(server->front);
    upgraded_stop(&server->upgraded);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    tls_front_stop(TAKE_PTR(server->front));
    server->front_fd = fd_close(server->front_fd);
    server->quiet_fd = fd_close(server->quiet_fd);
    connection_limits_stop(TAKE_PTR(server->limits));
    tls_done(&server->tls);
    upgraded_done(&server->upgraded);
}

static int local_start(struct http_server *http, const char *run_dir, int given_fd, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/holt.sock", run_dir);
    cleanup_close int fd = given_fd;
    int r = 0;

    http->local.listener.is_local = true;
    http->local.listener.peers = http->peers;
    http->local.listener.origin_rules.is_local = true;
    if (fd < 0) {
        r = listen_unix(path, &fd, err);
        if (r < 0)
            return r;
        http->socket_path = TAKE_PTR(path);
    }
    return server_start(&http->local, TAKE_FD(fd), err);
}

static int tls_start(struct server *server, const struct http_options *options, struct err *err)
{
    int r;

    if (*options->tls_cert == '\0' && *options->tls_key == '\0')
        return 0;
    if (*options->tls_cert == '\0' || *options->tls_key == '\0')
        return err_set(err, ERR_INVALID, "TLS needs both tls.cert and tls.key");
    r = tls_load(options->tls_cert, options->tls_key, &server->tls, err);
    server->listener.is_tls = r == 0;
    return r;
}

static int tcp_start(struct http_server *http, const struct http_options *options, int given_fd,
                     struct err *err)
{
    cleanup_close int fd = given_fd;
    char token[TOKEN_LEN + 1];
    int r = token_load(options->state_dir, token, err);

    if (r < 0)
        return r;
    token_store_add_main(options->tokens, token);
    r = tls_start(&http->tcp, options, err);
    if (r == 0 && fd < 0)
        r = listen_tcp(options->listen, &fd, err);
    if (r < 0)
        return r;
    listen_describe(fd, http->tcp_address, sizeof(http->tcp_address));
    return server_start(&http->tcp, TAKE_FD(fd), err);
}

DEFINE_CLEANUP(http_stop, struct http_server *);

static int listeners_start(struct http_server *http, const struct http_options *options,
                           struct err *err)
{
    struct listen_given given;
    int r = listen_take_given(&given, err);

    if (r < 0)
        return r;
    /* TCP comes first: replies over the unix socket have its address. */
    if (given.tcp_fd >= 0 || strcmp(options->listen, "none") != 0)
        r = tcp_start(http, options, given.tcp_fd, err);
    http->tcp.listener.is_tcp_tls = http->local.listener.is_tcp_tls = http->tcp.listener.is_tls;
    if (r == 0)
        r = local_start(http, options->run_dir, given.unix_fd, err);
    else
        (void)fd_close(given.unix_fd);
    return r;
}

static void addresses_log(const struct http_server *http, const struct http_options *options)
{
    log_info("listening on %s",
             http->socket_path ? http->socket_path : "the socket passed by the service manager");
    if (http->tcp.daemon)
        log_info("listening on %s://%s, token in %s/token",
                 http->tcp.listener.is_tls ? "https" : "http", http->tcp_address,
                 options->state_dir);
}

/* Each front end counts its methods behind those of the one before it. */
static void methods_number(const struct http_options *options)
{
    char name[CALL_STATS_NAME_SIZE];
    size_t next = 0;

    for (size_t i = 0; i < options->frontend_count; i++) {
        struct frontend *frontend = &options->frontends[i];
        size_t count = 0;

        frontend->first_method = next;
        while (frontend->ops->method_name && frontend->ops->method_name(count, name, sizeof(name)))
            count++;
        next += count;
    }
    assert(next <= CALL_STATS_METHODS);
}

int http_start(const struct http_options *options, struct http_server **ret, struct err *err)
{
    cleanup_with(http_stop_slot) struct http_server *http = xcalloc(1, sizeof(*http));
    int r;

    json_object_seed(0); /* otherwise the first request opens /dev/urandom, without CLOEXEC */
    methods_number(options);
    http->listen = xstrdup(options->listen);
    http->hosts = xstrdup(options->hosts);
    http->origins = xstrdup(options->origins);
    http->preview = xstrdup(options->preview);
    server_init(&http->local, http, options);
    server_init(&http->tcp, http, options);
    r = origin_rules_check_preview(&http->tcp.listener.origin_rules, err);
    if (r == 0)
        r = peer_rules_parse(options->socket_owners, &http->peers, err);
    if (r == 0)
        r = listeners_start(http, options, err);
    if (r < 0)
        return r;
    addresses_log(http, options);
    *ret = TAKE_PTR(http);
    return 0;
}

void http_drain(struct http_server *http, unsigned ms)
{
    uint64_t until_ns = clock_ns() + (uint64_t)ms * 1000000;

    if (!http)
        return;
    server_drain(&http->tcp);
    server_drain(&http->local);
    if (http->tcp.daemon)
        connection_limits_await_empty(http->tcp.limits, until_ns);
    if (http->local.daemon)
        connection_limits_await_empty(http->local.limits, until_ns);
}

void http_stop(struct http_server *http)
{
    if (!http)
        return;
    server_stop(&http->tcp);
    server_stop(&http->local);
    if (http->socket_path)
        (void)unlink(http->socket_path);
    free(http->socket_path);
    free(http->listen);
    free(http->hosts);
    free(http->origins);
    free(http->preview);
    peer_rules_free(http->peers);
    free(http);
}
