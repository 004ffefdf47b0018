/* A process as the files about processes see it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "host/core/reactor.h"
#include "host/process/process.h"
#include "host/process/processes.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/frame.h"

enum { PROCESS_ACK_EVERY = FRAME_WINDOW / 4 }; /* bytes settled before the guest hears of it */

_Static_assert((int)PROCESS_OUT == (int)STREAM_STDOUT && (int)PROCESS_ERR == (int)STREAM_STDERR,
               "streams are numbered alike");

struct process {
    struct machine *machine; /* referenced */
    struct process *next;    /* in the sandbox's list, which holds a reference */
    uint32_t number;
    char id[16]; /* "p1"; also the name of its control group */
    atomic_int refs;
    bool has_terminal;
    uint64_t started_ms; /* of the monotonic clock */
    uint64_t began_ns;   /* when it was asked for, until it has been started; 0: not by this life */
    struct reactor_timer timer;
    struct record *record;        /* referenced */
    struct output_reader *reader; /* of whoever started it; NULL: nobody waits for its output */

    struct lock ack_lock; /* acknowledgements must not overtake each other; before the machine's */
    atomic_uint_fast64_t acked[PROCESS_STREAMS];
    uint64_t base[PROCESS_STREAMS]; /* where the present life's output begins; under both locks */

    /* Under the process writer's lock: its rows. */
    struct process *next_now, *next_later;
    uint64_t due_ms;
    bool is_in_now;

    /* The process writer's alone. */
    bool is_recorded; /* that it has begun */
    bool is_ending;

    /* Under the machine's lock. */
    uint64_t input_sent, input_acked;
    bool is_input_closed;
    bool is_timed_out;
    enum killer killer;    /* on whose behalf it is being killed */
    uint64_t signals_sent; /* by clients, as a bit set */
    bool is_started;       /* the guest has it, or has said why not */
    bool is_forgotten;     /* the guest has been told so */
    bool is_over;
    bool is_settled;     /* it is over, and that is on disk */
    bool is_between;     /* it has ended, and will be started again */
    bool is_restart_due; /* now */
    bool wants_timeout;  /* the process writer is to set its timers: whoever decides that holds the
                            lock */
    uint64_t wants_rest_ms; /* that the reactor takes when one fires */
    uint32_t failures;      /* ends in a row, each after a short life */
    uint64_t incarnated_ms; /* when its present life began */
    struct reactor_timer restart_timer;
    struct process_end end;
    struct shell_link *shell; /* of a shell; else NULL */
    bool is_limited;          /* it has limits of its own */
    struct cgroup_meter meter;
};

/* Sends one small frame about this process. */
int process_send_numbers(struct process *process, enum frame_type type, uint64_t first,
                         uint64_t second);

/* Sends it to the guest, to be started. */
int process_send_spawn(struct process *process, const struct process_spec *spec, struct err *err);

/* One that the guest has and we have not: an earlier life of the daemon started it. Locked. */
struct process *process_adopt(struct machine *machine, const struct frame *frame);

/* The process with this number, or NULL. Locked. */
struct process *process_find_number(struct machine *machine, uint32_t number);

/* A process with this record (taken) and nothing else; refs 1. */
struct process *process_alloc(struct machine *machine, struct record *record);

/* Its time is over: the timer of process_set_timeout. */
void process_on_timeout(struct reactor_timer *timer);

/* Removes what process_limit has made, once its group is gone. */
void process_unlimit(const struct process *process);

/* Ends it when its time is over. No lock may be held, as timers come before all of them. */
void process_set_timeout(struct process *process);

/* Tells the guest what it need not keep any more, if that is much. */
void process_acknowledge(struct process *process);

bool process_is_over(struct process *process);

/* It was killed on this behalf. Locked. */
void process_set_killed(struct process *process, enum killer killer, int signal);

/* That it is over is on disk. */
void process_note_settled(struct process *process);
