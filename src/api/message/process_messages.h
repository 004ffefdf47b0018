/* Messages about processes: the events of a stream, and ProcessInfo. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"
#include "host/process/viewer.h"
#include "wire/holt_v1.h"

struct arena;
struct buf;
struct reader_event;
struct record;
struct record_info;

/* The output sizes of a process, for the event of its end. */
struct process_written {
    uint64_t bytes[PROCESS_STREAMS];
    bool is_truncated;
};

/* What the record says of it now. */
void process_written_get(struct record *record, struct process_written *ret);

/* Points into the end. */
struct msg_ended process_ended_message(const struct process_end *end,
                                       const struct process_written *written);

/* As one of a list it has no more than the beginning of args, which may be long. Points into the
 * info and the arena. */
struct msg_process_info process_info_message(const struct record_info *info, bool is_listed,
                                             struct arena *arena);

/* Each appends one event as a message: 0, -ENOBUFS or -ENOMEM. */

/* from: the offsets of an Attach, or NULL. */
struct process_started {
    const char *sandbox_id;
    const char *process_id;
    bool is_joined;
    const uint64_t *from;
    uint64_t viewer; /* 0: none */
};
int process_started_add(struct buf *out, const struct process_started *started);

/* offset: of the first byte in its stream; NULL: do not send it. */
int process_output_add(struct buf *out, enum output_stream stream, const uint64_t *offset,
                       const void *data, size_t len);
int process_gap_add(struct buf *out, const struct reader_event *gap);
int process_size_add(struct buf *out, struct terminal_size size);
int process_ended_add(struct buf *out, const struct process_end *end,
                      const struct process_written *written);
