/* What a process has written, as the text of a result: in memory while that is little, read again
 * from its record when it was much. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "host/process/process.h"

struct record;
struct tool_job;
struct tool_recipe;

struct process_text {
    struct {
        struct utf8_cleaner cleaner;
        struct buf text;
    } streams[PROCESS_STREAMS];
    bool is_full; /* there is more than is here */
};

/* Keeps up to max bytes of each stream. */
void process_text_init(struct process_text *text, size_t max);
void process_text_done(struct process_text *text);

/* Takes bytes; what they are as text is also appended to told. */
void process_text_add(struct process_text *text, enum output_stream stream, const char *data,
                      size_t len, struct buf *told);

/* Makes the job's text of it, or its spill where it is long. */
void process_text_finish(struct process_text *text, struct tool_job *job,
                         const struct tool_recipe *recipe, struct record *record,
                         const struct process_end *end);

/* Appends what a record has of a stream from an offset on, with lines in the place of what was not
 * kept; at most about max bytes. */
void process_text_copy(struct record *record, enum output_stream stream, uint64_t from,
                       uint64_t max, struct buf *out);
