/* Raw bytes of one request through libmicrohttpd and the framing check, without a server. */
#pragma once

#include <assert.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/framing.h"
#include "http/reply.h"

struct framed {
    char *target;
    bool is_seen;                  /* libmicrohttpd has found a whole header */
    const struct refusal *refusal; /* then: why it is refused, or NULL */
};

static struct framed framed; /* of the request under test */

static void *framed_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)cls, (void)connection;
    if (!framed.target)
        framed.target = strdup(target);
    return NULL;
}

// NOLINTNEXTLINE(readability-function-size)
static enum MHD_Result framed_on_request(void *cls, struct MHD_Connection *connection,
                                         const char *path, const char *verb, const char *version,
                                         const char *data, size_t *len, void **slot)
{
    const struct request_line line = { verb, framed.target, version };

    (void)cls, (void)path, (void)data, (void)len, (void)slot;
    framed.is_seen = true;
    framed.refusal = framing_check(connection, &line);
    return framed.refusal ? reply_refuse(connection, framed.refusal) : MHD_NO;
}

/* Sends the bytes, closes that half and reads what comes back; the result is in `framed`. Only the
 * first of several requests counts. */
static void framed_send(const char *bytes, size_t len, char *reply, size_t reply_size)
{
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, framed_on_request, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, framed_on_target, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_END);
    size_t got = 0;
    ssize_t n;
    int ends[2];

    free(framed.target);
    framed = (struct framed){ 0 };
    assert(daemon && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    assert(send(ends[0], bytes, len, MSG_NOSIGNAL) == (ssize_t)len && shutdown(ends[0], 1) == 0);
    assert(MHD_add_connection(daemon, ends[1], NULL, 0) == MHD_YES);
    for (int i = 0; i < 100 && !framed.is_seen; i++)
        (void)MHD_run_wait(daemon, 0);
    for (int i = 0; i < 10; i++)
        (void)MHD_run_wait(daemon, 0);
    while (got + 1 < reply_size && (n = recv(ends[0], reply + got, reply_size - got - 1, 0)) > 0)
        got += (size_t)n;
    if (reply_size > 0)
        reply[got] = '\0';
    MHD_stop_daemon(daemon);
    (void)close(ends[0]);
}
