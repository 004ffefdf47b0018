/* A process as the files about processes see it. */
#pragma once

#include "host/host_internal.h"

enum { PROCESS_ACK_EVERY = FRAME_WINDOW / 4 }; /* bytes read before the guest hears of it */

struct process {
    struct machine *machine; /* referenced */
    struct process *next;    /* in the sandbox's list, which holds a reference */
    uint32_t number;
    char id[16]; /* "p1"; also the name of its control group */
    atomic_int refs;
    bool has_terminal;
    int event_fd; /* wakes the reader */
    uint64_t started_ms;
    uint64_t oom_kills_before;
    struct reactor_timer timer;

    /* Under the sandbox's lock. */
    struct {
        struct buf data;   /* received, not yet read */
        uint64_t received; /* offset behind it */
        uint64_t acked;
    } out[STREAM_COUNT];
    uint64_t input_sent, input_acked;
    bool is_input_closed;
    bool is_timed_out;
    const char *doom;  /* why it is being killed, in a literal; or NULL */
    bool is_started;   /* the guest has it, or has said why not */
    bool is_abandoned; /* no client will ask for it: it goes when it is over */
    bool is_forgotten; /* the guest has been told so */
    bool is_over;
    struct process_end end;
};

/* Sends one small frame about this process. */
int process_send_numbers(struct process *process, enum frame_type type, uint64_t first,
                         uint64_t second);

/* One that the guest has and we have not: an earlier life of the daemon started it. Locked. */
struct process *process_adopt(struct machine *machine, const struct frame *frame);

/* Drops the output of one that nobody will ask about: its writer must not wait for a reader for
 * ever. Locked. */
void process_discard(struct process *process);

/* The process with this number, or NULL. Locked. */
struct process *process_find_number(struct machine *machine, uint32_t number);

/* A process without anything; refs 1. NULL: no descriptor could be had. */
struct process *process_alloc(struct machine *machine);
