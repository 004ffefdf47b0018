// SPDX-License-Identifier: Apache-2.0
#include "api/pages.h"

#include <string.h>

#include "api/metrics_page.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"

struct page {
    const char *path;
    const char *type;
    bool is_public; /* needs no token on TCP either */

    /* Appends the page: 0, -ENOBUFS or -ENOMEM. */
    int (*fill)(const struct exchange *exchange, struct buf *out);
};

/* Reports only that the daemon answers, as the page is public. */
static int healthz_fill(const struct exchange *exchange, struct buf *out)
{
    (void)exchange;
    return buf_add_str(out, "ok\n");
}

static int metrics_fill(const struct exchange *exchange, struct buf *out)
{
    return metrics_page_fill(exchange->frontend->context, exchange->listener, &exchange->caller,
                             out);
}

static const struct page pages[] = {
    { "/metrics", METRICS_PAGE_TYPE, .fill = metrics_fill },
    { "/healthz", "text/plain", .is_public = true, .fill = healthz_fill },
};

static const struct page *page_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}

static bool page_owns(const char *path, const char *verb)
{
    bool is_read =
        strcmp(verb, MHD_HTTP_METHOD_GET) == 0 || strcmp(verb, MHD_HTTP_METHOD_HEAD) == 0;

    return is_read && page_find(path);
}

static bool page_is_public(const struct exchange *exchange)
{
    return page_find(exchange->path)->is_public;
}

static enum MHD_Result page_receive(struct exchange *exchange, const char *data, size_t len)
{
    (void)data;
    client_connection_extend(exchange->client, len);
    return exchange_discard(exchange, len);
}

static enum MHD_Result page_answer(struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    const struct page *page = page_find(exchange->path);

    if (page->fill(exchange, &body) < 0)
        return MHD_NO;
    return reply_send(exchange->connection, MHD_HTTP_OK, page->type, &body);
}

const struct frontend_ops pages_frontend = {
    .name = "pages",
    .owns = page_owns,
    .is_public = page_is_public,
    .receive = page_receive,
    .answer = page_answer,
};
