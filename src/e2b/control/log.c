// SPDX-License-Identifier: Apache-2.0
/* The control API: logs of a sandbox, made from the records of its processes: when each started and
 * how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/core/e2b.h"
#include "e2b/core/ref.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"

#define LOGGER "process"

enum { LIMIT_DEFAULT = 1000, LINE_MAX_BYTES = 4096 };

enum level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };

static const char *const levels[] = {
    [LEVEL_DEBUG] = "debug",
    [LEVEL_INFO] = "info",
    [LEVEL_WARN] = "warn",
    [LEVEL_ERROR] = "error",
};

struct entry {
    uint64_t at_ms;
    enum level level;
    char *message;
    char pid[16];
};

struct log {
    struct entry *entries;
    size_t count;
};

static void log_done(struct log *log)
{
    for (size_t i = 0; i < log->count; i++)
        free(log->entries[i].message);
    free(log->entries);
}

static char *command_text(const struct process_spec *spec)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(LINE_MAX_BYTES);

    for (char *const *arg = spec->args; arg && *arg; arg++)
        if (buf_printf(&text, "%s%s", text.len ? " " : "", *arg) < 0)
            break;
    return xstrdup(text.data ? text.data : "");
}

static void log_add(struct log *log, const struct record_info *info)
{
    struct entry *entry = &log->entries[log->count++];
    cleanup_free char *command = command_text(info->spec);

    *entry = (struct entry){ .at_ms = info->started_ms, .level = LEVEL_INFO };
    entry->message = xasprintf("process started: %s", command);
    (void)snprintf(entry->pid, sizeof(entry->pid), "%u", info->pid);
    if (!info->is_over)
        return;
    entry = &log->entries[log->count++];
    *entry = (struct entry){ .at_ms = info->ended_ms };
    entry->level = info->end.exit_code == 0 ? LEVEL_INFO : LEVEL_WARN;
    entry->message = xasprintf("process %s with %d: %s", process_outcome_name(info->end.outcome),
                               info->end.exit_code, command);
    (void)snprintf(entry->pid, sizeof(entry->pid), "%u", info->pid);
}

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;

    return (left->at_ms > right->at_ms) - (left->at_ms < right->at_ms);
}

static void log_read(struct sandbox *sandbox, struct log *ret)
{
    struct record **records = NULL;
    size_t count = 0;

    sandbox_list_records(sandbox, &records, &count);
    ret->entries = xcalloc(2 * count + 1, sizeof(*ret->entries));
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(records[i], &info);
        log_add(ret, &info);
        record_unref(records[i]);
    }
    free(records);
    qsort(ret->entries, ret->count, sizeof(*ret->entries), compare);
}

struct query {
    uint64_t from_ms, limit;
    bool is_backward;
    enum level level; /* at least this */
    const char *search;
};

static int level_parse(const char *text, enum level *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (strcmp(text, levels[i]) != 0)
            continue;
        *ret = (enum level)i;
        return 0;
    }
    return err_set(err, ERR_INVALID, "level must be debug, info, warn or error");
}

static int direction_parse(const char *text, bool *ret_is_backward, struct err *err)
{
    *ret_is_backward = strcmp(text, "backward") == 0;
    if (!*ret_is_backward && strcmp(text, "forward") != 0)
        return err_set(err, ERR_INVALID, "direction must be forward or backward");
    return 0;
}

static int query_parse(const struct e2b_request *request, const char *from, struct query *ret,
                       struct err *err)
{
    const char *start = e2b_query(request, from), *limit = e2b_query(request, "limit");
    const char *direction = e2b_query(request, "direction"), *level = e2b_query(request, "level");

    *ret = (struct query){ .limit = LIMIT_DEFAULT };
    if (start && parse_u64(start, &ret->from_ms) < 0)
        return err_set(err, ERR_INVALID, "%s must be milliseconds since 1970", from);
    if (limit && (parse_u64(limit, &ret->limit) < 0 || ret->limit > LIMIT_DEFAULT))
        return err_set(err, ERR_INVALID, "limit must be at most %d", LIMIT_DEFAULT);
    ret->search = e2b_query(request, "search");
    if (direction && direction_parse(direction, &ret->is_backward, err) < 0)
        return err_wrap(err, "logs");
    return level ? level_parse(level, &ret->level, err) : 0;
}

static bool is_wanted(const struct query *query, const struct entry *entry)
{
    bool fits = !query->is_backward || query->from_ms == 0 ? entry->at_ms >= query->from_ms
                                                           : entry->at_ms <= query->from_ms;

    return fits && entry->level >= query->level &&
           (!query->search || strstr(entry->message, query->search));
}

static json_t *entry_json(const struct entry *entry)
{
    return json_pack("{s:o, s:s, s:o, s:{s:s}}", "timestamp", e2b_time_json(entry->at_ms), "level",
                     levels[entry->level], "message", json_text(entry->message), "fields", "pid",
                     entry->pid);
}

static json_t *entries_json(const struct log *log, const struct query *query)
{
    json_t *array = json_array();

    for (size_t i = 0; i < log->count && json_array_size(array) < query->limit; i++) {
        size_t at = query->is_backward ? log->count - 1 - i : i;

        if (is_wanted(query, &log->entries[at]))
            (void)json_array_append_new(array, entry_json(&log->entries[at]));
    }
    return array;
}

/* The older form: a line is a JSON object itself, as text. */
static json_t *line_json(const json_t *entry)
{
    cleanup_json json_t *object =
        json_pack("{s:O, s:s, s:O}", "level", json_object_get(entry, "level"), "logger", LOGGER,
                  "message", json_object_get(entry, "message"));
    cleanup_free char *line = NULL;

    (void)json_object_update(object, json_object_get(entry, "fields"));
    line = json_dumps(object, JSON_COMPACT);
    return json_pack("{s:O, s:s}", "timestamp", json_object_get(entry, "timestamp"), "line", line);
}

static json_t *lines_json(const json_t *entries)
{
    json_t *array = json_array();
    size_t index;
    json_t *entry;

    json_array_foreach((json_t *)(uintptr_t)entries, index, entry) {
        (void)json_array_append_new(array, line_json(entry));
    }
    return array;
}

static enum MHD_Result answer(struct e2b_request *request, bool is_v1)
{
    cleanup_with(log_done) struct log log = { 0 };
    struct query query;
    struct err err = { 0 };
    json_t *entries;

    if (query_parse(request, is_v1 ? "start" : "cursor", &query, &err) < 0 ||
        e2b_ref_find(request, &err) < 0)
        return e2b_reply_err(request, &err);
    log_read(request->sandbox, &log);
    entries = entries_json(&log, &query);
    if (!is_v1)
        return e2b_reply_json(request, MHD_HTTP_OK, json_pack("{s:o}", "logs", entries));
    return e2b_reply_json(
        request, MHD_HTTP_OK,
        json_pack("{s:o, s:o}", "logs", lines_json(entries), "logEntries", entries));
}

static enum MHD_Result logs_v1(struct e2b_request *request)
{
    return answer(request, true);
}

static enum MHD_Result logs_v2(struct e2b_request *request)
{
    return answer(request, false);
}

static const struct e2b_route routes[] = {
    { "GET", "/sandboxes/{}/logs", .answer = logs_v1 },
    { "GET", "/v2/sandboxes/{}/logs", .answer = logs_v2 },
};

const struct e2b_routes e2b_log_routes = { routes, ARRAY_SIZE(routes) };
