/* What is known of a process, while it runs and for a time after its end: what was asked for, what
 * it has written, how it ended. A record needs no machine, so it outlives that, and the daemon.
 * Reference counted; every call may come from any thread.
 *
 * Output has offsets, from 0, for each stream. All of it is there up to a limit; beyond that, the
 * beginning and the latest part are, and readers are told what is missing between them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"

struct record;

/* What can be read of one stream: [0, head_end) and [tail_start, total); they touch where nothing
 * is missing. */
struct record_stream {
    uint64_t total;
    uint64_t head_end;
    uint64_t tail_start;
};

/* Pointers live as long as the record. */
struct record_info {
    const char *id;
    const struct process_spec *spec; /* args is empty where only the guest knows of it */
    uint32_t pid;                    /* inside the sandbox; 0: not known yet, or never started */
    uint64_t started_ms;             /* since 1970, as is ended_ms */
    uint64_t ended_ms;               /* 0: it runs */
    uint32_t restarts;
    const char *address; /* where its port is forwarded, as HOST:PORT; NULL: it is not */
    bool is_over;
    struct process_end end; /* once it is */
    struct record_stream streams[PROCESS_STREAMS];
};

void record_get(struct record *record, struct record_info *ret);

struct record *record_ref(struct record *record);

/* Accepts NULL. */
void record_unref(struct record *record);

/* --- reading --------------------------------------------------------------------------------- */

struct output_reader;

struct reader_spec {
    uint64_t from[PROCESS_STREAMS]; /* offsets to begin at */
    bool follows;                   /* waits for what is yet to come */
    bool is_flow;                   /* the process waits for this reader, who so misses nothing */
};

enum reader_event_kind {
    READER_DATA,
    READER_GAP,        /* what comes next in this stream is `missing` bytes further on */
    READER_ENDED,      /* the process is over and all was read; comes for ever after */
    READER_UP_TO_DATE, /* the same of one that does not follow, while the process still runs */
};

struct reader_event {
    enum reader_event_kind kind;
    enum output_stream stream;
    uint64_t offset;        /* of data or gap: where it begins */
    size_t len;             /* of data: bytes put into the caller's buffer */
    uint64_t missing;       /* of a gap */
    struct process_end end; /* of ended */
};

/* ERR_INVALID for an offset that has not been written yet. */
int reader_open(struct record *record, const struct reader_spec *spec, struct output_reader **ret,
                struct err *err);

/* Waits for the next event; data has room for size bytes. 0, or -ECANCELED once the peer of
 * watch_fd (a connection; -1: none) has hung up. One thread at a time. */
int reader_next(struct output_reader *reader, int watch_fd, void *data, size_t size,
                struct reader_event *ret);

/* The same, but -ETIMEDOUT when there was no event for so long (0: for ever). */
int reader_next_within(struct output_reader *reader, int watch_fd, uint64_t timeout_ms, void *data,
                       size_t size, struct reader_event *ret);

/* Accepts NULL. */
void reader_close(struct output_reader *reader);

/* Waits for the end. 0, -ETIMEDOUT after timeout_ms (0: never), or -ECANCELED as above. */
int record_wait(struct record *record, int watch_fd, uint64_t timeout_ms, struct process_end *ret);
