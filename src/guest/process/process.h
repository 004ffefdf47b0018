/* The processes that the daemon has started here, with their streams. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "guest/ring.h"
#include "guest/watch.h"
#include "wire/frame.h"

struct guest;
struct shell;

struct process {
    struct process *next;
    uint32_t id;
    pid_t pid;
    bool has_terminal;
    bool waits_for_writers;
    bool is_cut; /* it was sent a signal after which nobody waits for who else may write */
    uint64_t started_ms, ended_ms; /* of the monotonic clock */

    struct {
        struct watch watch; /* fd < 0: closed, or never there */
        struct ring ring;
        uint64_t sent;   /* offset up to which the present connection has it */
        bool is_drained; /* after the exit: all that was in the pipe has been read */
    } out[STREAM_ALL];

    struct watch in;  /* fd < 0: stdin is closed */
    struct buf input; /* not yet taken by the process */
    uint64_t input_received;
    uint64_t input_acked;
    bool input_eof;

    bool is_exited;
    bool is_end_sent;
    uint32_t status;
    uint64_t cpu_us;
    uint64_t peak_bytes;
    uint64_t end[STREAM_ALL];

    struct shell *shell; /* of a shell; else NULL */
};

/* Starts a process as a FRAME_SPAWN says and answers STARTED or FAILED. Owns fds. */
void process_spawn(struct guest *guest, const struct frame *frame, const int *fds);

struct process *process_find(struct guest *guest, uint32_t id);

/* Handles the frames that are about one process. False: the frame is malformed. */
bool process_handle(struct guest *guest, struct process *process, const struct frame *frame);

/* A pipe or terminal has something, or room. */
void process_output_ready(struct guest *guest, struct process *process, int stream);
void process_input_ready(struct guest *guest, struct process *process);

/* What is in the pipe now is the last of something; see is_drained. */
void process_mark_end(struct guest *guest, struct process *process, int stream);

/* Collects every child that has ended, ours or inherited. */
void process_reap(struct guest *guest);

/* Queues output, ends and acknowledgements as far as the connection takes them. */
void process_pump(struct guest *guest);

/* A new connection starts: everything not acknowledged is to be sent again. Announces each process;
 * false: the connection cannot take that. */
bool process_announce(struct guest *guest);
