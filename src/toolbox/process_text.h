/* The output of a process as the text of a result. Short output is kept in memory; long output is
 * read again from the record of the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text/plain.h"
#include "base/text/utf8.h"
#include "host/process/process.h"

struct record;
struct tool_job;
struct tool_recipe;

struct process_text {
    struct {
        struct utf8_cleaner cleaner;
        struct plain_text plain;
        struct buf text;
    } streams[PROCESS_STREAMS];
    bool is_full;     /* the output is longer than the buffers */
    uint64_t said_ms; /* when the last output came, by clock_ms() */
};

/* Keeps up to max bytes of each stream. */
void process_text_init(struct process_text *text, size_t max);
void process_text_done(struct process_text *text);

/* Adds output as plain text; also appends it as it is, but as valid UTF-8, to *progress. */
void process_text_add(struct process_text *text, enum output_stream stream, const char *data,
                      size_t len, struct buf *progress);

/* Writes the complete text to the job: to its text, or to its spill file if the output is long. */
void process_text_finish(struct process_text *text, struct tool_job *job,
                         const struct tool_recipe *recipe, struct record *record,
                         const struct process_end *end);

/* Appends what to know about a command that was ended because it took too long, in brackets: for
 * how long it has said nothing, and whether the limit was that of the whole call. `what` says what
 * became of it. */
void process_text_add_timeout(struct buf *out, const struct tool_job *job, uint64_t duration_ms,
                              uint64_t silent_ms, const char *what);

/* Appends a stream of a record, at most about max bytes starting at an offset, with a marker line
 * in place of output that was not kept. Returns the offset after it. */
uint64_t process_text_copy(struct record *record, enum output_stream stream, uint64_t from,
                           uint64_t max, struct buf *out);
