// SPDX-License-Identifier: Apache-2.0
#include "api/message/process_messages.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "host/process/record.h"
#include "http/stream.h"

enum { LISTED_ARGS_BYTES = 1024 };

static const char *const stream_fields[PROCESS_STREAMS] = { "stdout", "stderr" };

static void written_count(const struct record_info *info, struct process_written *ret)
{
    *ret = (struct process_written){ .is_truncated = false };
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        ret->bytes[i] = info->streams[i].total;
        ret->is_truncated |= info->streams[i].head_end < info->streams[i].tail_start;
    }
}

void process_written_get(struct record *record, struct process_written *ret)
{
    struct record_info info;

    record_get(record, &info);
    written_count(&info, ret);
}

static const char *outcome_name(enum outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_NONE] = "OUTCOME_UNSPECIFIED",  [OUTCOME_EXITED] = "OUTCOME_EXITED",
        [OUTCOME_SIGNALED] = "OUTCOME_SIGNALED", [OUTCOME_TIMED_OUT] = "OUTCOME_TIMED_OUT",
        [OUTCOME_OOM] = "OUTCOME_OOM",           [OUTCOME_KILLED] = "OUTCOME_KILLED",
        [OUTCOME_LOST] = "OUTCOME_LOST",         [OUTCOME_NOT_STARTED] = "OUTCOME_NOT_STARTED",
    };

    return names[outcome < ARRAY_SIZE(names) ? outcome : OUTCOME_NONE];
}

static const char *killer_name(enum killer killer)
{
    static const char *const names[] = {
        [KILLER_NONE] = "KILLED_BY_UNSPECIFIED", [KILLER_USER] = "KILLED_BY_USER",
        [KILLER_CLIENT] = "KILLED_BY_CLIENT",    [KILLER_ROLLBACK] = "KILLED_BY_ROLLBACK",
        [KILLER_STOP] = "KILLED_BY_STOP",        [KILLER_DESTROY] = "KILLED_BY_DESTROY",
        [KILLER_QUOTA] = "KILLED_BY_QUOTA",
    };

    return names[killer < ARRAY_SIZE(names) ? killer : KILLER_NONE];
}

json_t *process_ended_json(const struct process_end *end, const struct process_written *written)
{
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:b}", "outcome",
                     outcome_name(end->outcome), "exitCode", end->exit_code, "signal", end->signal,
                     "reason", json_text(end->reason), "durationMs", json_u64(end->duration_ms),
                     "cpuMs", json_u64(end->cpu_ms), "memoryPeakBytes",
                     json_u64(end->memory_peak_bytes), "killedBy", killer_name(end->killer),
                     "stdoutBytes", json_u64(written->bytes[PROCESS_OUT]), "stderrBytes",
                     json_u64(written->bytes[PROCESS_ERR]), "truncated", written->is_truncated);
}

static json_t *args_json(char *const *args, bool is_listed, bool *ret_truncated)
{
    json_t *list = json_array();
    size_t bytes = 0;

    *ret_truncated = false;
    for (; args && *args; args++) {
        bytes += strlen(*args);
        *ret_truncated = is_listed && bytes > LISTED_ARGS_BYTES;
        if (*ret_truncated)
            break;
        (void)json_array_append_new(list, json_text(*args));
    }
    return list;
}

static json_t *extent_json(const struct record_stream *stream)
{
    return json_pack("{s:o, s:o, s:o}", "total", json_u64(stream->total), "headEnd",
                     json_u64(stream->head_end), "tailStart", json_u64(stream->tail_start));
}

static json_t *end_json(const struct record_info *info)
{
    struct process_written written;

    written_count(info, &written);
    return info->is_over ? process_ended_json(&info->end, &written) : NULL;
}

static json_t *text_or_empty(const char *text)
{
    return json_text(text ? text : "");
}

static const char *restart_name(enum restart restart)
{
    static const char *const names[] = {
        [RESTART_NO] = "RESTART_NO",
        [RESTART_ON_FAILURE] = "RESTART_ON_FAILURE",
        [RESTART_ALWAYS] = "RESTART_ALWAYS",
    };

    return names[restart];
}

json_t *process_info_json(const struct record_info *info, bool is_listed)
{
    const struct process_spec *spec = info->spec;
    bool is_truncated;
    json_t *args = args_json(spec->args, is_listed, &is_truncated);

    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:b, s:b, s:s, s:I, s:o, s:o*, s:o*, s:o, s:o, "
                     "s:i, s:s*, s:I, s:s}",
                     "id", info->id, "args", args, "argsTruncated", is_truncated, "cwd",
                     text_or_empty(spec->cwd), "tag", text_or_empty(spec->tag), "stdin",
                     spec->has_stdin, "terminal", spec->has_terminal, "state",
                     info->is_over ? "PROCESS_STATE_ENDED" : "PROCESS_STATE_RUNNING", "pid",
                     (json_int_t)info->pid, "startedAt", json_time(info->started_ms), "endedAt",
                     info->is_over ? json_time(info->ended_ms) : NULL, "ended", end_json(info),
                     "stdout", extent_json(&info->streams[PROCESS_OUT]), "stderr",
                     extent_json(&info->streams[PROCESS_ERR]), "port", (int)spec->port, "address",
                     info->address, "restarts", (json_int_t)info->restarts, "restart",
                     restart_name(spec->restart));
}

int process_started_add(struct buf *out, const struct process_started *started)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_printf(out, "{\"started\":{\"sandboxId\":\"%s\",\"processId\":\"%s\"%s",
                       started->sandbox_id, started->process_id,
                       started->is_joined ? ",\"joined\":true" : "");
    if (r == 0 && started->from)
        r = buf_printf(out, ",\"stdoutOffset\":\"%" PRIu64 "\",\"stderrOffset\":\"%" PRIu64 "\"",
                       started->from[PROCESS_OUT], started->from[PROCESS_ERR]);
    if (r == 0)
        r = buf_add_str(out, "}}");
    if (r == 0)
        message_end(out, start);
    return r;
}

/* By hand, and the bytes last: almost all that is ever sent goes this way, and readers that know so
 * need no parser (see src/cli/run/session.c). */
int process_output_add(struct buf *out, enum output_stream stream, const uint64_t *offset,
                       const void *data, size_t len)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_add_str(out, "{");
    if (r == 0 && offset)
        r = buf_printf(out, "\"offset\":\"%" PRIu64 "\",", *offset);
    if (r == 0)
        r = buf_printf(out, "\"%s\":\"", stream_fields[stream]);
    if (r == 0)
        r = base64_encode(out, data, len);
    if (r == 0)
        r = buf_add_str(out, "\"}");
    if (r == 0)
        message_end(out, start);
    return r;
}

int process_gap_add(struct buf *out, const struct reader_event *gap)
{
    static const char *const names[PROCESS_STREAMS] = { "STREAM_STDOUT", "STREAM_STDERR" };

    return message_add_take(out, json_pack("{s:{s:s, s:o, s:o}}", "gap", "stream",
                                           names[gap->stream], "offset", json_u64(gap->offset),
                                           "missing", json_u64(gap->missing)));
}

int process_ended_add(struct buf *out, const struct process_end *end,
                      const struct process_written *written)
{
    return message_add_take(out, json_pack("{s:o}", "ended", process_ended_json(end, written)));
}
