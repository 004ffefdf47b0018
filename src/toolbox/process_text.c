// SPDX-License-Identifier: Apache-2.0
#include "toolbox/process_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/process/record.h"
#include "toolbox/archive.h"
#include "toolbox/process.h"
#include "toolbox/tool_internal.h"

enum {
    NOTES_BYTES = 4096,
    COPY_BYTES = 64 * 1024,
    HEAD_BYTES = 16 * 1024 * 1024, /* kept from the beginning of a stream */
    TAIL_BYTES = 8 * 1024 * 1024,  /* kept from its end */
    SILENT_MS = 5000,              /* so long without output is worth a remark */
};

void process_text_init(struct process_text *text, size_t max)
{
    *text = (struct process_text){ .said_ms = clock_ms() };
    for (int i = 0; i < PROCESS_STREAMS; i++)
        text->streams[i].text.max = max;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        text->streams[i].plain.line.max = PLAIN_LINE_MAX;
}

void process_text_done(struct process_text *text)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        plain_done(&text->streams[i].plain);
        buf_done(&text->streams[i].text);
    }
}

void process_text_add(struct process_text *text, enum output_stream stream, const char *data,
                      size_t len, struct buf *progress)
{
    if (utf8_clean(&text->streams[stream].cleaner, data, len, progress) < 0 ||
        plain_add(&text->streams[stream].plain, progress->data, progress->len,
                  &text->streams[stream].text) < 0)
        text->is_full = true;
    text->said_ms = clock_ms();
}

/* Adds what was held back until the end of a stream. */
static void stream_end(struct process_text *text, enum output_stream stream)
{
    struct buf *out = &text->streams[stream].text;
    struct buf rest = BUF_INIT(64);

    (void)utf8_clean_end(&text->streams[stream].cleaner, &rest);
    if (plain_add(&text->streams[stream].plain, rest.data, rest.len, out) < 0 ||
        plain_end(&text->streams[stream].plain, out) < 0)
        text->is_full = true;
    buf_done(&rest);
}

/* --- sink ------------------------------------------------------------------------------------ */

/* The destination of the text: memory or a file. */
struct sink {
    struct buf *text; /* NULL: write to fd */
    int fd;
    int r;
    uint64_t len;
    char last;
};

static void sink_add(struct sink *sink, const char *data, size_t len)
{
    if (sink->r < 0 || len == 0)
        return;
    sink->r = sink->text ? buf_add(sink->text, data, len) : write_all(sink->fd, data, len);
    sink->len += len;
    sink->last = data[len - 1];
}

static void sink_add_str(struct sink *sink, const char *text)
{
    sink_add(sink, text, strlen(text));
}

static void sink_end_line(struct sink *sink)
{
    if (sink->len > 0 && sink->last != '\n')
        sink_add_str(sink, "\n");
}

static void sink_add_gap(struct sink *sink, uint64_t bytes)
{
    char line[80];

    (void)snprintf(line, sizeof(line), "%s[... %" PRIu64 " bytes were not kept ...]\n",
                   sink->len > 0 && sink->last != '\n' ? "\n" : "", bytes);
    sink_add_str(sink, line);
}

/* Adds the line that was held back. */
static void sink_end_plain(struct sink *sink, struct plain_text *plain, struct buf *lines)
{
    buf_clear(lines);
    (void)plain_end(plain, lines);
    sink_add(sink, lines->data, lines->len);
}

/* Copies the part of a stream between two offsets from the record. */
static void sink_copy_part(struct sink *sink, struct record *record, enum output_stream stream,
                           uint64_t from, uint64_t to)
{
    struct utf8_cleaner cleaner = { .len = 0 };
    cleanup_with(plain_done) struct plain_text plain = PLAIN_TEXT_INIT;
    cleanup_with(buf_done) struct buf part = BUF_INIT((size_t)4 * COPY_BYTES);
    cleanup_with(buf_done) struct buf lines = BUF_INIT((size_t)4 * COPY_BYTES + PLAIN_LINE_MAX + 1);
    struct reader_event event = { .kind = READER_DATA };
    struct output_reader *reader = NULL;
    struct reader_spec spec = { .from = { 0 } };
    struct record_info info;
    cleanup_free char *data = xcalloc(1, COPY_BYTES);
    struct err ignored;

    record_get(record, &info);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        spec.from[i] = i == (int)stream ? from : info.streams[i].total;
    if (reader_open(record, &spec, &reader, &ignored) < 0)
        return;
    while (sink->r == 0 && from < to) {
        if (reader_next(reader, -1, data, COPY_BYTES, &event) < 0 ||
            (event.kind != READER_DATA && event.kind != READER_GAP))
            break;
        if (event.kind == READER_GAP) {
            sink_end_plain(sink, &plain, &lines);
            sink_add_gap(sink, event.missing);
            from += event.missing;
            continue;
        }
        buf_clear(&part);
        (void)utf8_clean(&cleaner, data, event.len < to - from ? event.len : (size_t)(to - from),
                         &part);
        buf_clear(&lines);
        (void)plain_add(&plain, part.data, part.len, &lines);
        sink_add(sink, lines.data, lines.len);
        from += event.len;
    }
    buf_clear(&part);
    (void)utf8_clean_end(&cleaner, &part);
    buf_clear(&lines);
    (void)plain_add(&plain, part.data, part.len, &lines);
    sink_add(sink, lines.data, lines.len);
    sink_end_plain(sink, &plain, &lines);
    reader_close(reader);
}

static void sink_copy_stream(struct sink *sink, struct record *record, enum output_stream stream)
{
    struct record_info info;
    uint64_t total, tail;

    record_get(record, &info);
    total = info.streams[stream].total;
    if (total <= HEAD_BYTES + TAIL_BYTES) {
        sink_copy_part(sink, record, stream, 0, total);
        return;
    }
    tail = total - TAIL_BYTES;
    sink_copy_part(sink, record, stream, 0, HEAD_BYTES);
    /* Report the gap of the record itself as part of this one. */
    if (tail < info.streams[stream].tail_start && tail >= info.streams[stream].head_end)
        tail = info.streams[stream].tail_start;
    sink_add_gap(sink, tail - HEAD_BYTES);
    sink_copy_part(sink, record, stream, tail, total);
}

static void add_stream(struct process_text *text, struct sink *sink, struct record *record,
                       enum output_stream stream)
{
    struct buf *here = &text->streams[stream].text;

    if (text->is_full)
        sink_copy_stream(sink, record, stream);
    else
        sink_add(sink, here->data, here->len);
    sink_end_line(sink);
}

/* A program that waits for something is silent to the end, one that is slow is not. */
void process_text_add_timeout(struct buf *out, const struct tool_job *job, uint64_t duration_ms,
                              uint64_t silent_ms, const char *what)
{
    (void)buf_printf(out, "[timed out after %" PRIu64 " ms: %s", duration_ms, what);
    if (job->deadline_ms > 0 && clock_ms() >= job->deadline_ms)
        (void)buf_add_str(out, "; this is the limit of a call, for longer ones use process_start");
    if (silent_ms >= SILENT_MS)
        (void)buf_printf(out,
                         "; no output for %" PRIu64 " s: it may wait for input, which is empty, or "
                         "need process_start",
                         silent_ms / 1000);
    (void)buf_add_str(out, "]\n");
}

static void add_outcome(struct buf *out, const struct tool_job *job, const struct process_end *end,
                        uint64_t silent_ms)
{
    switch (end->outcome) {
    case OUTCOME_TIMED_OUT:
        process_text_add_timeout(out, job, end->duration_ms, silent_ms,
                                 "killed, with all processes that it started");
        break;
    case OUTCOME_OOM:
        (void)buf_add_str(out, "[out of memory: killed by the kernel]\n");
        break;
    case OUTCOME_KILLED:
        (void)buf_printf(out, "[killed: %s]\n", end->reason);
        break;
    case OUTCOME_LOST:
        (void)buf_printf(out, "[lost: %s]\n", end->reason);
        break;
    case OUTCOME_NOT_STARTED:
        (void)buf_printf(out, "[not started: %s]\n", end->reason);
        break;
    case OUTCOME_SIGNALED:
        (void)buf_printf(out, "[ended by signal %d]\n", end->signal);
        break;
    case OUTCOME_NONE:
    case OUTCOME_EXITED:
        break;
    }
}

static void add_all(struct process_text *text, struct sink *sink, struct tool_job *job,
                    const struct tool_recipe *recipe, struct record *record,
                    const struct process_end *end)
{
    const struct buf *errors = &text->streams[PROCESS_ERR].text;
    struct buf notes = BUF_INIT(NOTES_BYTES);

    add_stream(text, sink, record, PROCESS_OUT);
    if (recipe->is_shell && errors->len > 0)
        sink_add_str(sink, "[stderr]\n");
    add_stream(text, sink, record, PROCESS_ERR);
    if (sink->len == 0 && end->outcome == OUTCOME_EXITED &&
        (recipe->is_shell || end->exit_code == 0))
        sink_add_str(sink, recipe->silence);
    add_outcome(&notes, job, end, clock_ms() - text->said_ms);
    if (recipe->explain)
        recipe->explain(job, end, errors->data ? errors->data : "", &notes);
    if (recipe->is_shell)
        (void)buf_printf(&notes, "[exit code %d, %" PRIu64 " ms]", end->exit_code,
                         end->duration_ms);
    else if (end->exit_code != 0)
        (void)buf_printf(&notes, "[exit code %d]", end->exit_code);
    sink_add(sink, notes.data, notes.len);
    buf_done(&notes);
}

void process_text_finish(struct process_text *text, struct tool_job *job,
                         const struct tool_recipe *recipe, struct record *record,
                         const struct process_end *end)
{
    struct sink sink = { .text = &job->text };

    for (int i = 0; i < PROCESS_STREAMS; i++)
        stream_end(text, i);
    if (text->is_full &&
        bounded_dir_create(&tool_archive_of(job->sandbox)->outputs, &job->spill) == 0) {
        sink = (struct sink){ .fd = job->spill.fd };
        add_all(text, &sink, job, recipe, record, end);
        if (sink.r == 0)
            return;
        /* The disk is full: use what is in memory. */
        bounded_dir_drop(&tool_archive_of(job->sandbox)->outputs, &job->spill);
        sink = (struct sink){ .text = &job->text };
    }
    text->is_full = false;
    add_all(text, &sink, job, recipe, record, end);
}

uint64_t process_text_copy(struct record *record, enum output_stream stream, uint64_t from,
                           uint64_t max, struct buf *out)
{
    struct sink sink = { .text = out };
    struct record_info info;
    uint64_t total, end;

    record_get(record, &info);
    total = info.streams[stream].total;
    if (from >= total)
        return total;
    end = total - from > max ? from + max : total;
    sink_copy_part(&sink, record, stream, from, end);
    return end;
}
