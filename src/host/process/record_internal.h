/* A record as the files about records and processes see it. Lock order: machine -> process table ->
 * record. */
#pragma once

#include <stdatomic.h>

#include "base/lock.h"
#include "host/process/record.h"
#include "host/process/spool.h"
#include "host/process/window.h"

struct process_table;

enum {
    RECORD_ID_SIZE = 16,           /* "p4294967295" */
    RECORD_INLINE_MAX = 16 * 1024, /* a longer stream goes to disk at the end */
};

struct record {
    atomic_int refs;
    uint32_t number;
    char id[RECORD_ID_SIZE];
    struct process_spec *spec; /* a copy, its own */
    uint64_t started_ms;
    uint64_t oom_kills_before; /* that its sandbox had seen when it was started */
    struct record *next;       /* in the process table, which holds a reference; under its lock */

    struct lock lock; /* over all below */
    struct {
        struct window window;
        struct spool spool;
    } streams[PROCESS_STREAMS];
    struct process *writer; /* referenced, while it runs; NULL: nothing more comes */
    struct output_reader *readers;
    uint32_t pid;
    uint32_t restarts;
    uint64_t base[PROCESS_STREAMS]; /* what its present life has written begins there */
    uint16_t host_port;             /* where its port is forwarded; 0: it is not */
    char *address;                  /* the same as clients are told it; set once */
    uint64_t ended_ms;
    bool is_over;
    bool is_adopted; /* an earlier life began it, and the guest has it still */
    struct process_end end;
};

/* Copies the spec; refs 1. Streams hold up to disk_bytes each on disk. */
struct record *record_new(uint32_t number, const struct process_spec *spec, uint64_t disk_bytes);

/* Bytes of a stream that have come. */
uint64_t record_received(struct record *record, enum output_stream stream);

/* Appends to a stream and wakes its readers; *ret_unspooled is what is not on disk. 0 or -errno. */
int record_add(struct record *record, enum output_stream stream, const void *data, size_t len,
               uint64_t *ret_unspooled);

/* The process that writes to it, referenced; or NULL (the one before is released). */
void record_set_writer(struct record *record, struct process *writer);

/* Gives back memory of one that is over and on disk. */
void record_shrink(struct record *record);

/* How far the process may forget a stream: what is on disk, or needs not be, and what nobody who
 * must not miss anything has yet to read. */
uint64_t record_settled(struct record *record, enum output_stream stream, bool is_kept);

/* It is over. Wakes all who wait. */
void record_finish(struct record *record, const struct process_end *end, uint64_t ended_ms);

/* It begins a further life, whose output begins there. */
void record_note_restart(struct record *record, const uint64_t base[static PROCESS_STREAMS]);
void record_set_address(struct record *record, const char *address, uint16_t host_port);
void record_set_pid(struct record *record, uint32_t pid);
bool record_is_over(struct record *record);
