/* Internals of records and readers. Lock order: machine -> process table -> record. */
#pragma once

#include <stdatomic.h>

#include "base/lock.h"
#include "base/text/terminal_query.h"
#include "host/process/output_times.h"
#include "host/process/record.h"
#include "host/process/spool.h"
#include "host/process/window.h"

struct process_table;

struct output_reader {
    struct record *record;      /* referenced */
    struct output_reader *next; /* in the record's list */
    bool follows;
    bool is_flow;
    bool has_sizes;
    struct terminal_size size; /* reported last */
    int event_fd;
    uint64_t at[PROCESS_STREAMS]; /* the next byte to read; under the record's lock */

    /* Old output of a terminal, in which requests to the terminal are hidden; only PROCESS_OUT. */
    uint64_t replay_end; /* 0: nothing is hidden */
    struct terminal_query_filter filter;
    char held[TERMINAL_QUERY_MAX]; /* the start of a sequence, read and not reported yet */
    size_t held_len;
};

enum {
    RECORD_ID_SIZE = 16, /* "p4294967295" */
    RECORD_INLINE_MAX =
        16 *
        1024, /* longer streams are written to a file at the end; shorter ones to the journal */
};

struct record {
    atomic_int refs;
    uint32_t number;
    char id[RECORD_ID_SIZE];
    struct process_spec *spec; /* owned copy */
    uint64_t started_ms;
    uint64_t oom_kills_before; /* OOM kills of the sandbox before the process started */
    struct record *next;       /* in the process table, which holds a reference and locks it */

    struct lock lock; /* protects everything below */
    struct {
        struct window window;
        struct spool spool;
        struct output_times times;
    } streams[PROCESS_STREAMS];
    struct process *writer; /* referenced; NULL: the process has ended, and that is on disk */
    struct output_reader *readers;
    uint32_t pid;
    uint32_t restarts;
    struct terminal_size size;      /* of its terminal; 0: not known */
    uint64_t base[PROCESS_STREAMS]; /* where the output of the present run begins */
    uint16_t host_port;             /* host port to which its port is forwarded; 0: none */
    char *address;                  /* the same as HOST:PORT; set once */
    uint64_t ended_ms;              /* as clients see it; 0: it runs */
    int64_t ended_at;               /* of clock_boot_ms; decides how long it is kept */
    bool is_over;
    bool is_left;    /* is_over only for the readers of a daemon that stops: the process goes on */
    bool is_adopted; /* a previous daemon started it, and the guest still has it */
    struct process_end end;
};

/* Allocates a record with a copy of the spec and one reference. Each stream keeps up to
 * disk_bytes on disk. */
struct record *record_new(uint32_t number, const struct process_spec *spec, uint64_t disk_bytes);

/* Returns the number of bytes received on a stream. */
uint64_t record_received(struct record *record, enum output_stream stream);

/* Appends to a stream, wakes the readers and returns the number of bytes not on disk. 0 or
 * -errno. */
int record_add(struct record *record, enum output_stream stream, const void *data, size_t len,
               uint64_t *ret_unspooled);

/* Sets the process that writes to the record (takes a reference; NULL: none) and drops the
 * previous one. */
void record_set_writer(struct record *record, struct process *writer);

/* Frees the memory of output that is on disk, after the process has ended. */
void record_shrink(struct record *record);

/* Returns the offset up to which the guest may drop its copy: on disk (if is_kept) and read by
 * every reader with back-pressure. */
uint64_t record_ack_offset(struct record *record, enum output_stream stream, bool is_kept);

/* Sets the outcome and wakes all waiters. */
void record_finish(struct record *record, const struct process_end *end, uint64_t ended_ms);

/* Tells the readers that their stream ends with the daemon. The process goes on, so the journal has
 * no end of it, even if the record is written again. */
void record_leave(struct record *record, const struct process_end *end);

/* Counts a restart, whose output begins at these offsets. */
void record_add_restart(struct record *record, const uint64_t base[static PROCESS_STREAMS]);
void record_set_address(struct record *record, const char *address, uint16_t host_port);
void record_set_pid(struct record *record, uint32_t pid);

/* Sets the size of the terminal and tells the readers. */
void record_set_size(struct record *record, struct terminal_size size);
bool record_is_over(struct record *record);

/* Makes the reader check for events again. */
void reader_wake(const struct output_reader *reader);
