// SPDX-License-Identifier: Apache-2.0
/* The log of a build, bounded in lines and bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/reactor.h"

/* The caller holds the lock. */
static bool log_is_full(const struct build *build)
{
    return json_array_size(build->logs) >= BUILD_LOGS_MAX ||
           build->log_bytes >= BUILD_LOGS_BYTES_MAX;
}

/* The caller holds the lock. */
static void log_append(struct build *build, const char *level, const char *line)
{
    build->log_bytes += strlen(line);
    (void)json_array_append_new(build->logs,
                                json_pack("{s:o, s:s, s:o, s:o}", "timestamp",
                                          json_time(clock_wall_ms()), "level", level, "message",
                                          json_text(line), "step", json_string(build->state.step)));
}

void build_log(struct build *build, const char *level, const char *text, size_t len)
{
    cleanup_free char *line =
        xasprintf("%.*s", (int)(len < BUILD_LOG_BYTES_MAX ? len : BUILD_LOG_BYTES_MAX), text);

    lock_take(&build->lock);
    if (log_is_full(build)) {
        lock_release(&build->lock);
        return;
    }
    log_append(build, level, line);
    if (log_is_full(build))
        log_append(build, "warn", "the log is full: further lines are dropped");
    lock_release(&build->lock);
}

void build_log_end(struct build *build, const char *level, const char *text)
{
    lock_take(&build->lock);
    log_append(build, level, text);
    lock_release(&build->lock);
}

void build_log_text(struct build *build, const char *text)
{
    build_log(build, "info", text, strlen(text));
}

void build_log_output(struct build *build, struct buf *pending, enum output_stream stream,
                      bool is_last)
{
    const char *level = stream == PROCESS_ERR ? "warn" : "info";
    size_t start = 0;

    for (size_t i = 0; i < pending->len; i++) {
        if (pending->data[i] != '\n' && i - start < BUILD_LOG_BYTES_MAX)
            continue;
        build_log(build, level, pending->data + start, i - start);
        start = i + (pending->data[i] == '\n');
    }
    if (is_last && start < pending->len) {
        build_log(build, level, pending->data + start, pending->len - start);
        start = pending->len;
    }
    buf_consume(pending, start);
}

json_t *build_logs(struct build *build, size_t offset, size_t limit)
{
    json_t *list = json_array();

    lock_take(&build->lock);
    for (size_t i = offset; i < json_array_size(build->logs) && i - offset < limit; i++)
        (void)json_array_append_new(list, json_deep_copy(json_array_get(build->logs, i)));
    lock_release(&build->lock);
    return list;
}
