// SPDX-License-Identifier: Apache-2.0
#include "client/transport/handle.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/deadline.h"
#include "client/transport/link.h"
#include "client/transport/tls.h"
#include "holt.h"

enum {
    IDLE_MAX = 8,
    ATTEMPTS = 4,
    /* Half of the daemon's idle timeout, so that it does not close the connection while a request
       is sent. */
    IDLE_MS = 60 * 1000,
    REST_MS = 1000, /* for the final HTTP chunk, which follows the last message at once */
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Returns the default address. */
static char *default_host(void)
{
    const char *host = environment("HOLT_HOST"), *run = environment("HOLT_RUN");

    return host ? xstrdup(host) : xasprintf("unix://%s/holt.sock", run ? run : "/run/holt");
}

/* Returns whether text is valid in a header. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

DEFINE_CLEANUP(holt_close, struct holt *);

static int prepare(struct holt *holt, const struct holt_options *options, struct holt_error *error)
{
    const char *token = options->token ? options->token : environment("HOLT_TOKEN");
    const char *ca_file = options->ca_file ? options->ca_file : environment("HOLT_CACERT");
    cleanup_free char *fallback = options->host ? NULL : default_host();

    holt->idle_max = options->idle_max ? options->idle_max : IDLE_MAX;
    holt->attempts = options->attempts ? options->attempts : ATTEMPTS;
    if (token && !is_printable(token))
        return error_set(error, "invalid_argument", "the token has invalid characters");
    if (address_parse(options->host ? options->host : fallback, &holt->address, error) < 0)
        return -1;
    if (token)
        holt->token = xstrdup(token);
    return holt->address.is_tls ? tls_open(ca_file, &holt->tls, error) : 0;
}

int holt_open(const struct holt_options *options, int64_t deadline, struct holt **ret,
              struct holt_error *error)
{
    cleanup_with(holt_close_slot) struct holt *holt = xcalloc(1, sizeof(*holt));
    struct holt_options given = HOLT_INIT(holt_options);
    struct connection *first;

    lock_init(&holt->lock, LOCK_CLIENT);
    if (options_take(&given, sizeof(given), options, error) < 0 ||
        prepare(holt, &given, error) < 0 || handle_take(holt, deadline, &first, error) < 0)
        return -1;
    handle_give(first);
    *ret = TAKE_PTR(holt);
    return 0;
}

static void connection_free(struct connection *connection)
{
    http_done(&connection->http);
    free(connection);
}

void holt_close(struct holt *holt)
{
    struct connection *next;

    if (!holt)
        return;
    for (struct connection *each = holt->idle; each; each = next) {
        next = each->next;
        connection_free(each);
    }
    tls_close(holt->tls);
    lock_destroy(&holt->lock);
    free(holt->token);
    free(holt);
}

int connection_read_all(struct connection *connection, struct holt_error *error)
{
    int r;

    do
        r = http_read_body(&connection->http, error);
    while (r > 0);
    return r;
}

void connection_failed(struct connection *connection, const struct holt_error *error)
{
    if (strcmp(error->code, "deadline_exceeded") != 0)
        return;
    connection->http.can_reuse = false;
    connection->has_rest = false;
}

/* Returns whether a request can be sent on the connection, after reading the rest of a stream that
 * has ended. */
static bool is_usable(struct connection *connection)
{
    struct holt_error ignored;

    if (deadline_now() - connection->since > IDLE_MS)
        return false;
    if (connection->has_rest) {
        connection->http.deadline = holt_after(REST_MS);
        (void)connection_read_all(connection, &ignored);
        connection->has_rest = false;
    }
    return http_is_idle(&connection->http);
}

static struct connection *idle_pop(struct holt *holt)
{
    struct connection *found;

    lock_take(&holt->lock);
    found = holt->idle;
    if (found) {
        holt->idle = found->next;
        holt->idle_count--;
    }
    lock_release(&holt->lock);
    return found;
}

int handle_take(struct holt *holt, int64_t deadline, struct connection **ret,
                struct holt_error *error)
{
    struct connection *found;
    struct link *link;

    while ((found = idle_pop(holt))) {
        if (is_usable(found)) {
            *ret = found;
            return 0;
        }
        connection_free(found);
    }
    if (link_open(&holt->address, holt->tls, deadline, &link, error) < 0)
        return -1;
    found = xcalloc(1, sizeof(*found));
    found->holt = holt;
    http_init(&found->http, link);
    *ret = found;
    return 0;
}

void handle_give(struct connection *connection)
{
    struct holt *holt;
    bool is_kept;

    if (!connection)
        return;
    holt = connection->holt;
    is_kept =
        connection->http.link &&
        (connection->has_rest || (connection->http.is_complete && connection->http.can_reuse));
    if (is_kept) {
        connection->since = deadline_now();
        lock_take(&holt->lock);
        is_kept = holt->idle_count < holt->idle_max;
        if (is_kept) {
            connection->next = holt->idle;
            holt->idle = connection;
            holt->idle_count++;
        }
        lock_release(&holt->lock);
    }
    if (!is_kept)
        connection_free(connection);
}

int handle_send(struct holt *holt, const char *method, struct http_request *request,
                struct connection **ret, struct holt_error *error)
{
    struct connection *connection;

    if (!is_printable(method))
        return error_set(error, "invalid_argument", "'%.100s' is not a valid method", method);
    if (handle_take(holt, request->deadline, &connection, error) < 0)
        return -1;
    request->authority = holt->address.authority;
    request->path = method;
    request->token = holt->token;
    if (http_send(&connection->http, request, error) < 0) {
        handle_give(connection);
        return -1;
    }
    *ret = connection;
    return 0;
}
