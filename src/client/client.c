// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "holt.h"

enum { REPLY_MAX = 16 * 1024 * 1024 };

static void holt_close_slot(struct holt **holt)
{
    holt_close(*holt);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* The address to use where the caller named none. */
static char *default_host(void)
{
    const char *host = environment("HOLT_HOST"), *run = environment("HOLT_RUN");

    return host ? xstrdup(host) : xasprintf("unix://%s/holt.sock", run ? run : "/run/holt");
}

/* Whether text can stand in a header without ending it. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

int holt_open(const char *host, const char *token, struct holt **ret, struct holt_error *error)
{
    cleanup_with(holt_close_slot) struct holt *holt = xcalloc(1, sizeof(*holt));
    cleanup_free char *fallback = host ? NULL : default_host();
    int fd;

    http_init(&holt->http, -EBADF);
    if (!token)
        token = environment("HOLT_TOKEN");
    if (token && !is_printable(token))
        return error_set(error, "invalid_argument", "the token has characters that none can have");
    if (address_parse(host ? host : fallback, &holt->address, error) < 0)
        return -1;
    if (token)
        holt->token = xstrdup(token);
    fd = address_connect(&holt->address, error);
    if (fd < 0)
        return -1;
    http_init(&holt->http, fd);
    *ret = TAKE_PTR(holt);
    return 0;
}

void holt_close(struct holt *holt)
{
    if (!holt)
        return;
    http_done(&holt->http);
    free(holt->token);
    free(holt);
}

static int reconnect(struct holt *holt, struct holt_error *error)
{
    int fd = address_connect(&holt->address, error);

    if (fd < 0)
        return -1;
    http_done(&holt->http);
    http_init(&holt->http, fd);
    return 0;
}

/* What is left of a stream that ended well; without it the connection cannot be used again. */
static void read_rest(struct holt *holt)
{
    struct holt_error ignored;

    if (holt->has_rest)
        (void)client_read_all(holt, &ignored);
    holt->has_rest = false;
}

int client_send(struct holt *holt, const char *method, struct http_request *request,
                struct holt_error *error)
{
    if (holt->is_streaming)
        return error_set(error, "failed_precondition", "the connection is busy with a stream");
    if (!is_printable(method))
        return error_set(error, "invalid_argument", "'%.100s' cannot be a method", method);
    read_rest(holt);
    /* A request is never sent twice: who knows what the first one did. So look before sending. */
    if (!http_is_idle(&holt->http) && reconnect(holt, error) < 0)
        return -1;
    request->authority = holt->address.authority;
    request->path = method;
    request->token = holt->token;
    return http_send(&holt->http, request, error);
}

int client_read_all(struct holt *holt, struct holt_error *error)
{
    int r;

    do
        r = http_read_body(&holt->http, error);
    while (r > 0);
    return r;
}

int holt_call(struct holt *holt, const char *method, const char *request, char **ret_reply,
              struct holt_error *error)
{
    struct http_request http_request = {
        .content_type = "application/json",
        .body = request,
        .len = strlen(request),
        .reply_max = REPLY_MAX,
    };
    struct buf *body = &holt->http.body;
    unsigned status;

    if (client_send(holt, method, &http_request, error) < 0 ||
        http_read_head(&holt->http, &status, error) < 0 || client_read_all(holt, error) < 0)
        return -1;
    if (status != HTTP_STATUS_OK)
        return error_from_reply(error, status, body->data, body->len);
    if (buf_reserve(body, 0) < 0)
        return error_set(error, "resource_exhausted", "no memory for the reply");
    body->data[body->len] = '\0';
    *ret_reply = TAKE_PTR(body->data);
    body->len = body->cap = 0;
    return 0;
}
