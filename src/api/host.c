// SPDX-License-Identifier: Apache-2.0
#include "host/core/host.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/service.h"
#include "base/arena.h"
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

/* Splits the lines into texts, with NULL behind the last. */
static const char **errors_split(const char *lines, struct arena *arena, size_t *ret_count)
{
    size_t size = strlen(lines) + 1;
    char *copy = arena_take(arena, size, 1), *rest = NULL;
    const char **errors = arena_take(arena, size / 2 + 2, sizeof(*errors));

    memcpy(copy, lines, size);
    *ret_count = 0;
    for (const char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        errors[(*ret_count)++] = line;
    return errors;
}

static struct msg_storage storage_message(const struct host_health *health)
{
    uint64_t total = health->storage_used + health->storage_available;
    double share = total == 0 ? 0 : (double)health->storage_used / (double)total;

    return (struct msg_storage){
        .backend = health->storage_backend,
        .used_bytes = health->storage_used,
        .available_bytes = health->storage_available,
        .state = health->storage_state,
        .size_bytes = total,
        .used_percent = (uint32_t)(share * 100),
    };
}

/* Returns the path of the state directory, which only clients on this machine can use. */
static const char *state_path(const struct call *call)
{
    char *path = arena_take(call->arena, PATH_MAX, 1);
    cleanup_free char *link = xasprintf("/proc/self/fd/%d", host_state_fd(call->host));

    return call->is_local && readlink(link, path, PATH_MAX - 1) > 0 ? path : "";
}

int host_service_health(const struct call *call, const struct msg_health_request *request,
                        struct err *err)
{
    struct host_health health = { 0 };
    struct msg_health_response reply;
    struct msg_storage storage;

    (void)request;
    host_health(call->host, call->caller, &health);
    storage = storage_message(&health);
    reply = (struct msg_health_response){
        .status = status_name(health.status),
        .version = HOLT_VERSION,
        .sandboxes = health.sandboxes,
        .pool_ready = health.pool_ready,
        .runtime = health.runtime,
        .uptime_ms = health.uptime_ms,
        .storage = &storage,
        .processes = health.processes,
        .pool_size = health.pool_size,
        .tools = health.tools,
        .state_directory = state_path(call),
    };
    reply.errors = errors_split(health.errors, call->arena, &reply.errors_count);
    return call_reply(call, SCHEMA_OF(msg_health_response, &reply), err);
}

struct audit_feed {
    struct host *host;
    struct caller caller;
    char *sandbox; /* NULL: all */
    bool is_verdict_only;
    struct feed *feed;
    uint64_t shown; /* lines that concern the caller */
};

/* Returns whether a line is about an object that the caller sees. Lines from before owners are
 * about root's. */
static bool line_concerns(const struct audit_feed *audit, const json_t *line)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    const char *owner = json_string_value(json_object_get(line, "owner"));
    const char *about = json_string_value(json_object_get(line, "sandbox"));
    struct err ignored;

    if (!caller_is_admin(&audit->caller) &&
        strcmp(owner ? owner : OWNER_ROOT, audit->caller.owner) != 0)
        return false;
    return audit->caller.scope_count == 0 ||
           (about && sandbox_find(audit->host, &audit->caller, about, &sandbox, &ignored) == 0);
}

/* Shows a line to a caller that is no admin, without its place in the chain: that would tell how
 * much others do. */
static int line_put_own(struct audit_feed *audit, const char *line)
{
    cleanup_json json_t *object = json_loads(line, 0, NULL);
    cleanup_free char *text = NULL;

    if (!object || !line_concerns(audit, object))
        return 0;
    audit->shown++;
    if (audit->is_verdict_only)
        return 0;
    (void)json_object_del(object, "seq");
    (void)json_object_del(object, "prev");
    (void)json_object_del(object, "hash");
    text = json_dumps(object, JSON_COMPACT);
    return text ? feed_put(audit->feed, MESSAGE(msg_audit_response, .line = text), ENCODE_ALL)
                : -ENOMEM;
}

static int line_put(const char *line, void *context)
{
    struct audit_feed *audit = context;

    if (!caller_is_host_admin(&audit->caller))
        return line_put_own(audit, line);
    if (audit->is_verdict_only)
        return 0;
    return feed_put(audit->feed, MESSAGE(msg_audit_response, .line = line), ENCODE_ALL);
}

/* A record that was tampered with is an answer, not a failure to answer. */
static int audit_run(struct feed *feed, void *context, struct err *err)
{
    struct audit_feed *audit = context;
    struct msg_audit_verdict verdict;
    uint64_t lines = 0;
    int r;

    audit->feed = feed;
    r = host_read_audit(audit->host, audit->sandbox, line_put, audit, &lines, err);
    if (r < 0 && err->kind != ERR_INTERNAL)
        return r;
    verdict = (struct msg_audit_verdict){
        .in_order = r >= 0,
        .lines = lines,
        .problem = r < 0 ? err->msg : "",
    };
    if (!caller_is_host_admin(&audit->caller)) {
        verdict.lines = audit->shown;
        verdict.problem = r < 0 ? "the log is damaged; an admin sees where" : "";
    }
    return feed_put(feed, MESSAGE(msg_audit_response, .verdict = &verdict), ENCODE_ALL);
}

static void audit_free(void *context)
{
    struct audit_feed *audit = context;

    free(audit->sandbox);
    free(audit);
}

static const struct feed_ops audit_ops = { audit_run, audit_free };

/* The record has ids. A sandbox that is gone has left nothing else to be found by. */
static char *recorded_id(const struct call *call, const char *id)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct sandbox *sandbox = NULL;
    struct err ignored;

    if (sandbox_find(call->host, call->caller, id, &sandbox, &ignored) < 0)
        return xstrdup(id);
    sandbox_get_info(sandbox, false, &info);
    sandbox_unref(sandbox);
    return xstrdup(info.id);
}

int host_service_audit(const struct call *call, const struct msg_audit_request *request,
                       struct stream **ret, struct err *err)
{
    struct audit_feed *audit = xcalloc(1, sizeof(*audit));

    audit->host = call->host;
    audit->caller = *call->caller;
    audit->sandbox = *request->sandbox_id ? recorded_id(call, request->sandbox_id) : NULL;
    audit->is_verdict_only = request->verify;
    return feed_start(&audit_ops, audit, call->connection_fd, ret, err);
}
