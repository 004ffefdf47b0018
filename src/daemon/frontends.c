// SPDX-License-Identifier: Apache-2.0
#include "daemon/frontends.h"

#include <stdlib.h>

#include "api/frontend.h"
#include "api/mux/frontend.h"
#include "api/pages.h"
#include "api/plain/bundle.h"
#include "api/plain/frontend.h"
#include "auth/token_store.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "console/frontend.h"
#include "host/core/config.h"
#include "host/core/host.h"
#include "http/frontend.h"
#include "http/server.h"
#if HOLT_E2B
#include "e2b/core/frontend.h"
#endif
#if HOLT_MCP
#include "mcp/frontend.h"
#include "mcp/session.h"
#endif

enum { FRONTENDS_MAX = 8 };

struct frontends {
    struct host *host;
    struct token_store *tokens;
    struct api api;
    struct console *console;
#if HOLT_E2B
    struct e2b *e2b;
#endif
#if HOLT_MCP
    struct mcp_sessions *mcp;
#endif
    struct frontend list[FRONTENDS_MAX]; /* in order of precedence */
    size_t count;
};

static void frontend_add(struct frontends *frontends, const struct frontend_ops *ops, void *context)
{
    frontends->list[frontends->count++] = (struct frontend){ .ops = ops, .context = context };
}

static int console_start(struct frontends *frontends, const struct config *config, struct err *err)
{
    const struct console_options options = {
        .host = frontends->host,
        .tokens = frontends->tokens,
        .is_on = config->console,
        .dir = config->console_dir,
        .session_ttl = config->console_ttl,
    };

    return console_open(&options, &frontends->console, err);
}

/* E2B comes first: it recognises its requests by their headers, at any path. */
static int frontends_fill(struct frontends *frontends, const struct config *config, struct err *err)
{
    int r = token_store_open(config->state, &frontends->tokens, err);

    frontends->api = (struct api){ .host = frontends->host,
                                   .tokens = frontends->tokens,
                                   .agents_dir = config->agents_dir };
    if (r < 0)
        return r;
#if HOLT_E2B
    if (r == 0)
        r = e2b_open(frontends->host, config->state, &frontends->e2b, err);
    if (r < 0)
        return r;
    frontend_add(frontends, &e2b_frontend, frontends->e2b);
    frontends->api.has_port_names = true;
#endif
#if HOLT_MCP
    frontends->mcp = mcp_sessions_new(frontends->host);
    frontend_add(frontends, &mcp_frontend, frontends->mcp);
#endif
    r = console_start(frontends, config, err);
    if (r < 0)
        return r;
    frontend_add(frontends, &console_frontend, frontends->console);
    frontend_add(frontends, &pages_frontend, frontends->host);
    frontend_add(frontends, &mux_frontend, NULL);
    frontend_add(frontends, &plain_frontend, &frontends->api);
    frontend_add(frontends, &bundle_frontend, &frontends->api);
    frontend_add(frontends, &holt_frontend, &frontends->api);
    return r;
}

int frontends_open(const struct config *config, struct host *host, struct frontends **ret,
                   struct err *err)
{
    struct frontends *frontends = xcalloc(1, sizeof(*frontends));
    int r;

    frontends->host = host;
    r = frontends_fill(frontends, config, err);
    if (r < 0) {
        frontends_close(frontends);
        return r;
    }
    *ret = frontends;
    return 0;
}

static int check_open(void *context, struct err *err)
{
    return host_is_open(context, err);
}

int frontends_serve(struct frontends *frontends, const struct config *config,
                    struct http_server **ret, struct err *err)
{
    const struct http_options options = {
        .run_dir = config->run,
        .state_dir = config->state,
        .listen = config->listen,
        .hosts = config->listen_hosts,
        .origins = config->listen_origins,
        .preview = config->preview_domain,
        .tls_cert = config->tls_cert,
        .tls_key = config->tls_key,
        .tokens = frontends->tokens,
        .sessions = console_sessions(frontends->console),
        .socket_owners = config->socket_owners,
        .frontends = frontends->list,
        .frontend_count = frontends->count,
        .check_open = check_open,
        .context = frontends->host,
    };

    return http_start(&options, ret, err);
}

void frontends_close(struct frontends *frontends)
{
    if (!frontends)
        return;
#if HOLT_MCP
    mcp_sessions_free(frontends->mcp);
#endif
#if HOLT_E2B
    e2b_close(frontends->e2b);
#endif
    console_close(frontends->console);
    token_store_close(frontends->tokens);
    free(frontends);
}
