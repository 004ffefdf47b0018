// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/stream/raw_session.h"
#include "auth/token.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "e2b/control/history.h"
#include "e2b/control/snapshot.h"
#include "e2b/core/object_store.h"
#include "e2b/core/reset.h"
#include "e2b/envd/watcher.h"
#include "e2b/template/build.h"
#include "host/core/config.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/listen.h"
#include "http/tls.h"
#include "mcp/session.h"

/* As GnuTLS spells it. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum {
    CONNECTIONS_MAX = 1024,  /* on each listener, so that TCP cannot crowd out the unix socket */
    CONNECTIONS_SPARE = 128, /* until those that must make room have gone */
    CONNECTIONS_PER_CLIENT = 640, /* of one address on TCP, so that others find room */
    CONNECTION_BYTES = 32 * 1024, /* header and buffers; zeroed by libmicrohttpd on every request */
    THREAD_STACK_BYTES = 1024 * 1024,
};

struct server {
    struct listener listener;
    struct MHD_Daemon *daemon;
    MHD_socket quiet_fd; /* the listener of a server that takes no more; else -1 */
    struct connection_limits *limits;
    struct tls tls; /* of a listener that has it */
    struct raw_sessions raw_sessions;
};

struct api {
    struct server local;
    struct server tcp;
    struct token_store *tokens;
    struct mcp_sessions *mcp; /* of both */
    struct e2b_watchers *watchers;
    struct e2b_resets *resets;
    struct e2b_objects *objects;
    struct e2b_builds *builds;
    struct e2b_history *history;
    char *socket_path; /* that we made; NULL where somebody handed us the socket */
    char *listen;      /* for the doors, which the configuration may not outlive */
    char *hosts;
    char *origins;
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

    (void)cls, (void)version;
    if (exchange_is_new(exchange))
        return exchange_begin(exchange, connection, path, verb);
    if (*len == 0)
        return exchange_answer(exchange, connection);
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
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
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

static void server_init(struct server *server, struct api *api, struct host *host)
{
    raw_sessions_init(&server->raw_sessions);
    server->quiet_fd = -1;
    server->listener.host = host;
    server->listener.tokens = api->tokens;
    server->listener.mcp = api->mcp;
    server->listener.watchers = api->watchers;
    server->listener.resets = api->resets;
    server->listener.objects = api->objects;
    server->listener.builds = api->builds;
    server->listener.history = api->history;
    server->listener.origin_rules = (struct origin_rules){
        .listen = api->listen,
        .hosts = api->hosts,
        .origins = api->origins,
    };
    server->listener.raw_sessions = &server->raw_sessions;
}

/* The socket belongs to the server from here on. */
static int server_start(struct server *server, int fd, struct err *err)
{
    const bool is_local = server->listener.is_local, is_tls = server->listener.is_tls;
    const unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                           MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_UPGRADE |
                           (is_tls ? MHD_USE_TLS : 0U);
    struct MHD_OptionItem tls_options[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls.cert.data },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls.key.data },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };
    int r = connection_limits_start(CONNECTIONS_MAX, is_local ? 0 : CONNECTIONS_PER_CLIENT,
                                    &server->limits, err);

    if (r < 0) {
        (void)fd_close(fd);
        return r;
    }
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, &server->listener, MHD_OPTION_EXTERNAL_LOGGER, on_log,
        NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX + CONNECTIONS_SPARE, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        is_local ? 0U : (unsigned)CONNECTIONS_PER_CLIENT + CONNECTIONS_SPARE,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)THREAD_STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, &server->listener,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
        is_tls ? tls_options : tls_options + ARRAY_SIZE(tls_options) - 1, MHD_OPTION_END);
    if (server->daemon)
        return 0;
    (void)fd_close(fd);
    return err_sys(err, -errno, "start the HTTP server");
}

/* The listening socket stays open until the end, also when it was handed to us: who connects
 * meanwhile is not sent away, and waits for the next daemon. */
static void server_drain(struct server *server)
{
    if (!server->daemon)
        return;
    server->quiet_fd = MHD_quiesce_daemon(server->daemon);
    connection_limits_drain(server->limits);
}

static void server_stop(struct server *server)
{
    raw_sessions_stop(&server->raw_sessions);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    server->quiet_fd = fd_close(server->quiet_fd);
    connection_limits_stop(TAKE_PTR(server->limits));
    tls_done(&server->tls);
    raw_sessions_done(&server->raw_sessions);
}

static int local_start(struct api *api, const char *run_dir, int given_fd, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/holt.sock", run_dir);
    cleanup_close int fd = given_fd;
    int r = 0;

    api->local.listener.is_local = true;
    api->local.listener.origin_rules.is_local = true;
    if (fd < 0) {
        r = listen_unix(path, &fd, err);
        if (r < 0)
            return r;
        api->socket_path = TAKE_PTR(path);
    }
    return server_start(&api->local, TAKE_FD(fd), err);
}

static int tls_start(struct server *server, const struct config *config, struct err *err)
{
    int r;

    if (*config->tls_cert == '\0' && *config->tls_key == '\0')
        return 0;
    if (*config->tls_cert == '\0' || *config->tls_key == '\0')
        return err_set(err, ERR_INVALID, "TLS needs both tls.cert and tls.key");
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(err, ERR_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    r = tls_load(config->tls_cert, config->tls_key, &server->tls, err);
    server->listener.is_tls = r == 0;
    return r;
}

static int tcp_start(struct api *api, const struct config *config, int given_fd, struct err *err)
{
    cleanup_close int fd = given_fd;
    char token[TOKEN_LEN + 1];
    int r = token_load(config->state, token, err);

    if (r < 0)
        return r;
    token_store_add_main(api->tokens, token);
    r = tls_start(&api->tcp, config, err);
    if (r == 0 && fd < 0)
        r = listen_tcp(config->listen, &fd, err);
    if (r < 0)
        return r;
    listen_describe(fd, api->tcp_address, sizeof(api->tcp_address));
    return server_start(&api->tcp, TAKE_FD(fd), err);
}

static void api_stop_slot(struct api **api)
{
    api_stop(*api);
}

static int listeners_start(struct api *api, const struct config *config, struct err *err)
{
    struct listen_given given;
    int r = listen_take_given(&given, err);

    if (r == 0)
        r = local_start(api, config->run, given.unix_fd, err);
    else
        return r;
    if (r < 0)
        (void)fd_close(given.tcp_fd);
    else if (given.tcp_fd >= 0 || strcmp(config->listen, "none") != 0)
        r = tcp_start(api, config, given.tcp_fd, err);
    return r;
}

static void places_log(const struct api *api, const struct config *config)
{
    log_info("listening on %s", api->socket_path ? api->socket_path : "a socket we were given");
    if (api->tcp.daemon)
        log_info("listening on %s://%s, token in %s/token",
                 api->tcp.listener.is_tls ? "https" : "http", api->tcp_address, config->state);
}

int api_start(const struct config *config, struct host *host, struct api **ret, struct err *err)
{
    cleanup_with(api_stop_slot) struct api *api = xcalloc(1, sizeof(*api));
    int r;

    json_object_seed(0); /* otherwise the first request opens /dev/urandom, without CLOEXEC */
    api->listen = xstrdup(config->listen);
    api->hosts = xstrdup(config->listen_hosts);
    api->origins = xstrdup(config->listen_origins);
    r = token_store_open(config->state, &api->tokens, err);
    if (r == 0)
        r = e2b_objects_open(config->state, &api->objects, err);
    if (r == 0)
        r = e2b_snapshots_recover(host, api->objects, err);
    if (r == 0)
        r = e2b_builds_open(host, api->objects, config->state, &api->builds, err);
    api->mcp = mcp_sessions_new(host);
    api->watchers = e2b_watchers_new();
    api->resets = e2b_resets_new(host);
    api->history = e2b_history_new(host);
    server_init(&api->local, api, host);
    server_init(&api->tcp, api, host);
    if (r == 0)
        r = listeners_start(api, config, err);
    if (r < 0)
        return r;
    places_log(api, config);
    *ret = TAKE_PTR(api);
    return 0;
}

void api_drain(struct api *api, unsigned ms)
{
    uint64_t until_ns = guard_clock_ns() + (uint64_t)ms * 1000000;

    if (!api)
        return;
    server_drain(&api->tcp);
    server_drain(&api->local);
    if (api->tcp.daemon)
        connection_limits_await_empty(api->tcp.limits, until_ns);
    if (api->local.daemon)
        connection_limits_await_empty(api->local.limits, until_ns);
}

void api_stop(struct api *api)
{
    if (!api)
        return;
    server_stop(&api->tcp);
    server_stop(&api->local);
    e2b_resets_free(api->resets);
    e2b_history_free(api->history);
    mcp_sessions_free(api->mcp);
    e2b_watchers_free(api->watchers);
    e2b_builds_close(api->builds);
    e2b_objects_close(api->objects);
    token_store_close(api->tokens);
    if (api->socket_path)
        (void)unlink(api->socket_path);
    free(api->socket_path);
    free(api->listen);
    free(api->hosts);
    free(api->origins);
    free(api);
}
