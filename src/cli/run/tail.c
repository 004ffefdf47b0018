// SPDX-License-Identifier: Apache-2.0
/* Reads the end of the output, more and more of it, until it has enough lines. */
#include "cli/run/tail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/result.h"
#include "holt.h"

enum { FIRST_BYTES = 64 * 1024, LINE_BYTES = 128 };

struct stream {
    uint64_t from;     /* the offset at which reading starts */
    uint64_t at;       /* the offset of the next byte */
    uint64_t count;    /* line ends so far */
    uint64_t *ends;    /* the offsets behind the last line ends, in a circle */
    bool is_line_open; /* the last byte is not a line end */
};

static void stream_done(struct stream *stream)
{
    free(stream->ends);
}

static void stream_add(struct stream *stream, const char *data, size_t len, uint64_t room)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] == '\n')
            stream->ends[stream->count++ % room] = stream->at + i + 1;
    stream->at += len;
    if (len > 0)
        stream->is_line_open = data[len - 1] != '\n';
}

/* Returns whether the last lines are known, and where they begin. */
static bool stream_start(const struct stream *stream, uint32_t lines, uint64_t *ret)
{
    const uint64_t back = (uint64_t)lines + (stream->is_line_open ? 0 : 1);

    *ret = stream->from;
    if (lines == 0)
        *ret = stream->at;
    else if (stream->count >= back)
        *ret = stream->ends[(stream->count - back) % ((uint64_t)lines + 1)];
    return lines == 0 || stream->count >= back || stream->from == 0;
}

static int events_read(struct holt_process *process, struct stream *out, struct stream *errors,
                       uint64_t room, struct holt_error *error)
{
    const struct holt_process_event *event;
    int r;

    while ((r = holt_process_next(process, &event, error)) > 0) {
        struct stream *gap = event->stream == HOLT_STDERR ? errors : out;

        if (event->kind == HOLT_PROCESS_STDOUT)
            stream_add(out, event->data, event->len, room);
        else if (event->kind == HOLT_PROCESS_STDERR)
            stream_add(errors, event->data, event->len, room);
        else if (event->kind == HOLT_PROCESS_GAP)
            gap->at = event->offset + event->missing;
    }
    return r;
}

/* Reads the last bytes of both streams. Returns 1 if they have enough lines. */
static int window_read(struct holt *holt, struct holt_attach_options *request,
                       const struct holt_process_info *info, uint32_t lines, uint64_t bytes,
                       struct holt_error *error)
{
    const uint64_t room = (uint64_t)lines + 1;
    cleanup_with(stream_done) struct stream out = { .ends = xcalloc(room, sizeof(uint64_t)) };
    cleanup_with(stream_done) struct stream errors = { .ends = xcalloc(room, sizeof(uint64_t)) };
    struct holt_process *process;
    bool is_enough;
    int r;

    out.from = info->stdout_total > bytes ? info->stdout_total - bytes : 0;
    errors.from = info->stderr_total > bytes ? info->stderr_total - bytes : 0;
    request->stdout_offset = out.at = out.from;
    request->stderr_offset = errors.at = errors.from;
    if (holt_process_attach(holt, request, HOLT_NO_DEADLINE, &process, error) < 0)
        return -1;
    r = events_read(process, &out, &errors, room, error);
    holt_process_close(process);
    if (r < 0)
        return -1;
    is_enough = stream_start(&out, lines, &request->stdout_offset);
    return stream_start(&errors, lines, &request->stderr_offset) && is_enough;
}

int tail_find(struct holt *holt, struct holt_attach_options *request, uint32_t lines,
              struct holt_error *error)
{
    cleanup_result struct holt_process_info *info = NULL;
    struct holt_attach_options reading = *request;
    uint64_t bytes = FIRST_BYTES + (uint64_t)lines * LINE_BYTES;
    int r;

    if (holt_process_get(holt, request->sandbox, request->process_id, HOLT_NO_DEADLINE, &info,
                         error) < 0)
        return -1;
    reading.follows = false;
    while ((r = window_read(holt, &reading, info, lines, bytes, error)) == 0)
        bytes *= 4;
    request->stdout_offset = reading.stdout_offset;
    request->stderr_offset = reading.stderr_offset;
    return r < 0 ? -1 : 0;
}

int tail_find_bytes(struct holt *holt, struct holt_attach_options *request, uint64_t bytes,
                    struct holt_error *error)
{
    cleanup_result struct holt_process_info *info = NULL;

    if (holt_process_get(holt, request->sandbox, request->process_id, HOLT_NO_DEADLINE, &info,
                         error) < 0)
        return -1;
    request->stdout_offset = info->stdout_total > bytes ? info->stdout_total - bytes : 0;
    request->stderr_offset = info->stderr_total > bytes ? info->stderr_total - bytes : 0;
    return 0;
}
