// SPDX-License-Identifier: Apache-2.0
#include "api/message/process_messages.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "host/process/record.h"
#include "http/stream.h"

enum { LISTED_ARGS_BYTES = 1024 };

/* The numbers on the wire are the host's own. */
_Static_assert((int)MSG_OUTCOME_NOT_STARTED == (int)OUTCOME_NOT_STARTED, "outcomes");
_Static_assert((int)MSG_KILLED_BY_QUOTA == (int)KILLER_QUOTA, "killers");
_Static_assert((int)MSG_RESTART_ALWAYS == (int)RESTART_ALWAYS, "restarts");

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

struct msg_ended process_ended_message(const struct process_end *end,
                                       const struct process_written *written)
{
    return (struct msg_ended){
        .outcome = (enum msg_outcome)end->outcome,
        .exit_code = end->exit_code,
        .signal = end->signal,
        .reason = end->reason,
        .duration_ms = end->duration_ms,
        .cpu_ms = end->cpu_ms,
        .memory_peak_bytes = end->memory_peak_bytes,
        .killed_by = (enum msg_killed_by)end->killer,
        .stdout_bytes = written->bytes[PROCESS_OUT],
        .stderr_bytes = written->bytes[PROCESS_ERR],
        .truncated = written->is_truncated,
    };
}

/* How many of the arguments are shown. */
static size_t args_count(char *const *args, bool is_listed, bool *ret_truncated)
{
    size_t count = 0, bytes = 0;

    *ret_truncated = false;
    for (; args && args[count]; count++) {
        bytes += strlen(args[count]);
        *ret_truncated = is_listed && bytes > LISTED_ARGS_BYTES;
        if (*ret_truncated)
            break;
    }
    return count;
}

static const struct msg_extent *extent_message(const struct record_stream *stream,
                                               struct arena *arena)
{
    struct msg_extent *extent = arena_take(arena, 1, sizeof(*extent));

    *extent = (struct msg_extent){ .total = stream->total,
                                   .head_end = stream->head_end,
                                   .tail_start = stream->tail_start };
    return extent;
}

static const struct msg_ended *end_message(const struct record_info *info, struct arena *arena)
{
    struct process_written written;
    struct msg_ended *ended;

    if (!info->is_over)
        return NULL;
    written_count(info, &written);
    ended = arena_take(arena, 1, sizeof(*ended));
    *ended = process_ended_message(&info->end, &written);
    return ended;
}

struct msg_process_info process_info_message(const struct record_info *info, bool is_listed,
                                             struct arena *arena)
{
    const struct process_spec *spec = info->spec;
    bool is_truncated;
    size_t count = args_count(spec->args, is_listed, &is_truncated);

    return (struct msg_process_info){
        .id = info->id,
        .args = (const char *const *)spec->args,
        .args_count = count,
        .args_truncated = is_truncated,
        .cwd = spec->cwd,
        .tag = spec->tag,
        .stdin = spec->has_stdin,
        .terminal = spec->has_terminal,
        .state = info->is_over ? MSG_PROCESS_STATE_ENDED : MSG_PROCESS_STATE_RUNNING,
        .pid = (uint32_t)info->pid,
        .started_at_ms = info->started_ms,
        .ended_at_ms = info->is_over ? info->ended_ms : 0,
        .ended = end_message(info, arena),
        .stdout = extent_message(&info->streams[PROCESS_OUT], arena),
        .stderr = extent_message(&info->streams[PROCESS_ERR], arena),
        .port = spec->port,
        .address = info->address,
        .restart = (enum msg_restart)spec->restart,
        .restarts = info->restarts,
    };
}

int process_started_add(struct buf *out, const struct process_started *started)
{
    const struct msg_started message = {
        .sandbox_id = started->sandbox_id,
        .process_id = started->process_id,
        .joined = started->is_joined,
        .has_stdout_offset = started->from != NULL,
        .stdout_offset = started->from ? started->from[PROCESS_OUT] : 0,
        .has_stderr_offset = started->from != NULL,
        .stderr_offset = started->from ? started->from[PROCESS_ERR] : 0,
        .viewer = started->viewer,
    };

    return message_add(out, MESSAGE(msg_exec_response, .started = &message));
}

int process_output_add(struct buf *out, enum output_stream stream, const uint64_t *offset,
                       const void *data, size_t len)
{
    struct msg_attach_response message = { .has_offset = offset, .offset = offset ? *offset : 0 };
    struct span *bytes = stream == PROCESS_OUT ? &message.stdout : &message.stderr;

    *bytes = (struct span){ len > 0 ? data : "", len };
    return message_add(out, &msg_attach_response_schema, &message);
}

int process_gap_add(struct buf *out, const struct reader_event *gap)
{
    const struct msg_gap message = {
        .stream = gap->stream == PROCESS_OUT ? MSG_STREAM_STDOUT : MSG_STREAM_STDERR,
        .offset = gap->offset,
        .missing = gap->missing,
    };

    return message_add(out, MESSAGE(msg_exec_response, .gap = &message));
}

int process_size_add(struct buf *out, struct terminal_size size)
{
    const struct msg_terminal_size message = { .rows = size.rows, .columns = size.columns };

    return message_add(out, MESSAGE(msg_attach_response, .size = &message));
}

int process_ended_add(struct buf *out, const struct process_end *end,
                      const struct process_written *written)
{
    const struct msg_ended message = process_ended_message(end, written);

    return message_add(out, MESSAGE(msg_exec_response, .ended = &message));
}
