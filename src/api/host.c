// SPDX-License-Identifier: Apache-2.0
#include "host/core/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/feed.h"

static const char *status_name(enum health_status status)
{
    static const char *const names[] = {
        [HEALTH_OK] = "ok",
        [HEALTH_DEGRADED] = "degraded",
        [HEALTH_UNHEALTHY] = "unhealthy",
    };

    return names[status < ARRAY_SIZE(names) ? status : HEALTH_UNHEALTHY];
}

/* One text for each line. */
static json_t *errors_json(const char *lines)
{
    json_t *list = json_array();

    while (*lines) {
        size_t len = strcspn(lines, "\n");
        cleanup_free char *line = xasprintf("%.*s", (int)len, lines);

        if (len > 0)
            (void)json_array_append_new(list, json_text(line));
        lines += len + (lines[len] == '\n');
    }
    return list;
}

static json_t *storage_json(const struct host_health *health)
{
    uint64_t total = health->storage_used + health->storage_available;
    double share = total == 0 ? 0 : (double)health->storage_used / (double)total;

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:i}", "backend",
                     health->storage_backend ? health->storage_backend : "", "state",
                     health->storage_state, "usedBytes", json_u64(health->storage_used),
                     "availableBytes", json_u64(health->storage_available), "sizeBytes",
                     json_u64(total), "usedPercent", (int)(share * 100));
}

int host_service_health(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    static const char *const fields[] = { NULL };
    struct host_health health = { 0 };
    int r = json_only_fields(request, fields, err);

    if (r < 0)
        return r;
    host_health(call->host, &health);
    *ret_reply =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o}", "status",
                  status_name(health.status), "version", HOLT_VERSION, "sandboxes",
                  (json_int_t)health.sandboxes, "processes", (json_int_t)health.processes, "tools",
                  (json_int_t)health.tools, "poolReady", (json_int_t)health.pool_ready, "poolSize",
                  (json_int_t)health.pool_size, "runtime", health.runtime ? health.runtime : "",
                  "uptimeMs", json_u64(health.uptime_ms), "storage", storage_json(&health),
                  "errors", errors_json(health.errors));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

struct audit_feed {
    struct host *host;
    char *sandbox; /* NULL: all */
    bool is_verdict_only;
    struct feed *feed;
};

static int line_put(const char *line, void *context)
{
    const struct audit_feed *audit = context;

    if (audit->is_verdict_only)
        return 0;
    return feed_put(audit->feed, json_pack("{s:o}", "line", json_text(line)));
}

/* A record that was tampered with is an answer, not a failure to answer. */
static int audit_run(struct feed *feed, void *context, struct err *err)
{
    struct audit_feed *audit = context;
    uint64_t lines = 0;
    int r;

    audit->feed = feed;
    r = host_read_audit(audit->host, audit->sandbox, line_put, audit, &lines, err);
    if (r < 0 && err->kind != ERR_INTERNAL)
        return r;
    return feed_put(feed, json_pack("{s:{s:b, s:o, s:o}}", "verdict", "inOrder", r >= 0, "lines",
                                    json_u64(lines), "problem", json_text(r < 0 ? err->msg : "")));
}

static void audit_free(void *context)
{
    struct audit_feed *audit = context;

    free(audit->sandbox);
    free(audit);
}

static const struct feed_ops audit_ops = { audit_run, audit_free };

/* The record has ids. A sandbox that is gone has left nothing else to be found by. */
static char *recorded_id(struct host *host, const char *id)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct sandbox *sandbox = NULL;
    struct err ignored;

    if (sandbox_find(host, id, &sandbox, &ignored) < 0)
        return xstrdup(id);
    sandbox_get_info(sandbox, false, &info);
    sandbox_unref(sandbox);
    return xstrdup(info.id);
}

int host_service_audit(const struct call *call, const json_t *request, struct stream **ret,
                       struct err *err)
{
    static const char *const fields[] = { "sandboxId", "verify", NULL };
    struct audit_feed *audit;
    const char *sandbox = NULL;
    bool is_verdict_only = false;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_text(request, "sandboxId", &sandbox, err);
    if (r == 0 && sandbox)
        r = field_sandbox(request, &sandbox, err);
    if (r == 0)
        r = json_get_bool(request, "verify", &is_verdict_only, err);
    if (r < 0)
        return r;
    audit = xcalloc(1, sizeof(*audit));
    audit->host = call->host;
    audit->sandbox = sandbox ? recorded_id(call->host, sandbox) : NULL;
    audit->is_verdict_only = is_verdict_only;
    return feed_start(&audit_ops, audit, call->connection_fd, ret, err);
}
