/* Internal interface of the process folder. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "host/core/reactor.h"
#include "host/process/process.h"
#include "host/process/processes.h"
#include "host/process/viewer.h"
#include "kernel/cgroup/cgroup.h"
#include "wire/frame.h"

enum { PROCESS_ACK_EVERY = FRAME_WINDOW / 4 }; /* bytes between two acknowledgements */

_Static_assert((int)PROCESS_OUT == (int)STREAM_STDOUT && (int)PROCESS_ERR == (int)STREAM_STDERR,
               "streams are numbered alike");

struct process {
    struct machine *machine; /* referenced */
    struct process *next;    /* in the machine's list, which holds a reference */
    uint32_t number;
    char id[16]; /* "p1"; also the name of its cgroup */
    atomic_int refs;
    bool has_terminal;
    uint64_t started_ms; /* monotonic */
    uint64_t began_ns;   /* time of the request, until it is started; 0: by a previous daemon */
    struct reactor_timer timer;
    struct record *record;        /* referenced */
    struct output_reader *reader; /* of the client that started it; NULL: none, no back-pressure */

    struct lock ack_lock; /* keeps acknowledgements in order; taken before the machine's lock */
    atomic_uint_fast64_t acked[PROCESS_STREAMS];
    uint64_t
        base[PROCESS_STREAMS]; /* where the output of the present run begins; under both locks */

    /* Queues of the process writer, under its lock. */
    struct process *next_now, *next_later;
    uint64_t due_ms;
    bool is_in_now, is_in_later;
    atomic_bool is_restarting; /* a restart has the record; the writer leaves it alone */

    /* Used by the process writer only. */
    bool is_recorded; /* its start is in the journal */
    bool is_ending;

    /* Under the machine's lock. */
    uint64_t input_sent, input_acked;
    bool is_input_closed;
    bool is_timed_out;
    enum killer killer;    /* why it is being killed */
    uint64_t signals_sent; /* signals that clients sent, as a bit set */
    bool is_started;       /* the guest has started it or reported a failure */
    bool is_forgotten;     /* the guest was told to forget it */
    bool is_over;
    bool is_settled;           /* it has ended, and the journal says so */
    bool is_restart_pending;   /* between two runs: it has ended and will be restarted */
    bool is_restart_due;       /* the restart delay is over */
    bool wants_timeout;        /* the process writer has to set the timeout, because the thread that
                                  decided so holds the lock */
    uint64_t restart_delay_ms; /* delay for the process writer to set the restart timer; 0: none */
    uint32_t failures;         /* consecutive short runs */
    uint64_t run_started_ms;   /* when the present run began */
    struct reactor_timer restart_timer;
    struct process_end end;
    struct shell_link *shell; /* NULL: not a shell */
    bool is_limited;          /* process_limit was called */
    struct cgroup_meter meter;

    /* Of the terminal; see viewer.c. */
    struct viewer *viewers;
    struct viewer *owner; /* among them; NULL: none */
    uint64_t last_viewer; /* its number */
    struct terminal_size size_wanted, size_sent;
    bool is_size_stale; /* the terminal may have another size than size_sent */
    bool is_resizing;   /* a thread is sending the size */
};

/* Sends a frame of two numbers about this process. */
int process_send_numbers(struct process *process, enum frame_type type, uint64_t first,
                         uint64_t second);

/* Sends the spawn frame to the guest. */
int process_send_spawn(struct process *process, const struct process_spec *spec, struct err *err);

/* Adds a process that a previous daemon started and the guest still has. Locked. */
struct process *process_adopt(struct machine *machine, const struct frame *frame);

/* Returns the process with this number, or NULL. Locked. */
struct process *process_find_number(struct machine *machine, uint32_t number);

/* Allocates a process with this record (reference taken); one reference. */
struct process *process_alloc(struct machine *machine, struct record *record);

/* The handler of the timer that process_set_timeout sets. */
void process_on_timeout(struct reactor_timer *timer);

/* Removes the cgroup of process_limit, once the process's cgroup is gone. */
void process_unlimit(const struct process *process);

/* Sets the timer of spec->timeout_ms. The caller holds no lock, as timer locks rank above all
 * others. */
void process_set_timeout(struct process *process);

/* Acknowledges output to the guest once PROCESS_ACK_EVERY bytes are on disk or read. */
void process_acknowledge(struct process *process);

/* Does the same without blocking. Returns false if it has to be called again, because the guest
 * does not read or another thread is acknowledging. */
bool process_try_acknowledge(struct process *process);

bool process_is_over(struct process *process);

/* Ends the process as killed, for this reason. Locked. */
void process_set_killed(struct process *process, enum killer killer, int signal);

/* Marks an ended process as stored in the journal. */
void process_set_settled(struct process *process);
