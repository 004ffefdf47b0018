// SPDX-License-Identifier: Apache-2.0
#include "http/page.h"

#include <microhttpd.h>
#include <string.h>

#include "api/metrics_page.h"
#include "base/buf.h"
#include "base/cleanup.h"

/* That the daemon answers, and nothing else: whoever asks has shown no token. */
static int healthz_fill(struct host *host, struct buf *out)
{
    (void)host;
    return buf_add_str(out, "ok\n");
}

static const struct page pages[] = {
    { "/metrics", METRICS_PAGE_TYPE, .fill = metrics_page_fill },
    { "/healthz", "text/plain", .is_open = true, .fill = healthz_fill },
};

const struct page *page_find(const char *path, const char *verb)
{
    if (strcmp(verb, MHD_HTTP_METHOD_GET) != 0 && strcmp(verb, MHD_HTTP_METHOD_HEAD) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}
