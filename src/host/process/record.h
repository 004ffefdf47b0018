/* The record of a process, running or ended: spec, output, outcome. It needs no machine, so it
 * outlives the machine and, through the journal, the daemon. Reference counted; every function may
 * be called from any thread.
 *
 * Offsets in a stream start at 0. Up to a limit all output is kept; beyond it the head and the
 * latest part (tail) are, and readers get an event for the gap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "host/process/process.h"
#include "host/process/viewer.h"

struct record;

/* The readable ranges of a stream: [0, head_end) and [tail_start, total), which are adjacent if
 * nothing is missing. */
struct record_stream {
    uint64_t total;
    uint64_t head_end;
    uint64_t tail_start;
};

/* Pointers are valid as long as the record. */
struct record_info {
    const char *id;
    const struct process_spec *spec; /* args is empty if only the guest knows the process */
    uint32_t pid;                    /* in the sandbox; 0: not known yet, or never started */
    uint64_t started_ms;             /* since 1970, like ended_ms */
    uint64_t ended_ms;               /* 0: running */
    uint32_t restarts;
    const char *address; /* HOST:PORT to which its port is forwarded; NULL: not forwarded */
    bool is_over;
    struct process_end end; /* valid if is_over */
    struct record_stream streams[PROCESS_STREAMS];
};

/* Copies the present state. */
void record_get(struct record *record, struct record_info *ret);

/* Copies the marks of when output came (host/process/output_times.h) and returns their number; the
 * caller frees *ret. */
struct output_mark;
size_t record_copy_times(struct record *record, enum output_stream stream,
                         struct output_mark **ret);

struct record *record_ref(struct record *record);

/* Accepts NULL. */
void record_unref(struct record *record);
DEFINE_CLEANUP(record_unref, struct record *);

/* --- reading --------------------------------------------------------------------------------- */

struct output_reader;

struct reader_spec {
    uint64_t from[PROCESS_STREAMS]; /* start offsets */
    bool follows;                   /* waits for further output */
    bool hides_queries; /* of a terminal: requests to it in output up to now are left out */
    bool is_flow;       /* back-pressure: the process waits for this reader, which misses nothing */
    bool has_sizes;     /* also reports the sizes of the terminal */
};

enum reader_event_kind {
    READER_DATA,
    READER_GAP,        /* the next `missing` bytes of this stream are gone */
    READER_ENDED,      /* the process has ended and all output was read; repeats */
    READER_UP_TO_DATE, /* all output was read while the process runs; without `follows` only */
    READER_SIZE,       /* the terminal has another size; with `has_sizes` only */
};

struct reader_event {
    enum reader_event_kind kind;
    enum output_stream stream;
    uint64_t offset;        /* start of the data or gap */
    size_t len;             /* bytes in the caller's buffer */
    uint64_t missing;       /* of a gap */
    struct process_end end; /* of ended */
    struct terminal_size size;
};

/* Opens a reader. ERR_INVALID for an offset beyond the end of the stream. */
int reader_open(struct record *record, const struct reader_spec *spec, struct output_reader **ret,
                struct err *err);

/* Waits for the next event; data has room for size bytes. Returns 0, or -ECANCELED once the peer
 * of watch_fd (a connection; -1: none) has hung up. Not for concurrent use by several threads. */
int reader_next(struct output_reader *reader, int watch_fd, void *data, size_t size,
                struct reader_event *ret);

/* Like reader_next, but returns -ETIMEDOUT after timeout_ms without an event (0: no limit). */
int reader_next_within(struct output_reader *reader, int watch_fd, uint64_t timeout_ms, void *data,
                       size_t size, struct reader_event *ret);

/* Accepts NULL. */
void reader_close(struct output_reader *reader);

/* Waits for the process to end. Returns 0, -ETIMEDOUT after timeout_ms (0: no limit), or
 * -ECANCELED like reader_next. */
int record_wait(struct record *record, int watch_fd, uint64_t timeout_ms, struct process_end *ret);
