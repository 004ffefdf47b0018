/* The processes that the daemon has started in the sandbox, and their streams. */
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
    bool is_terminated; /* SIGTERM or SIGKILL was sent: other writers of its pipes no longer delay
                           its end */
    uint64_t started_ms, ended_ms; /* monotonic clock */

    struct {
        struct watch watch; /* fd < 0: closed or never opened */
        struct ring ring;
        uint64_t sent;   /* offset sent on the current connection */
        bool is_drained; /* after the exit: everything that was in the pipe has been read */
    } out[STREAM_ALL];

    struct watch in;  /* fd < 0: stdin is closed */
    struct buf input; /* not yet read by the process */
    uint64_t input_received;
    uint64_t input_acked;
    bool input_eof;

    bool is_exited;
    bool is_end_sent;
    uint32_t status;
    uint64_t cpu_us;
    uint64_t peak_bytes;
    uint64_t end[STREAM_ALL];

    struct shell *shell; /* NULL unless the process is a shell */
};

/* Starts the process of a FRAME_SPAWN and replies STARTED or FAILED. Takes ownership of fds. */
void process_spawn(struct guest *guest, const struct frame *frame, const int *fds);

/* Returns the process with this id, or NULL. */
struct process *process_find(struct guest *guest, uint32_t id);

/* Handles a frame about one process. Returns false if the frame is malformed. */
bool process_handle(struct guest *guest, struct process *process, const struct frame *frame);

/* Reads output that has arrived, or writes input that fits, for a ready pipe or terminal. */
void process_output_ready(struct guest *guest, struct process *process, int stream);
void process_input_ready(struct guest *guest, struct process *process);

/* Marks the bytes that are now in the pipe as the last ones of the stream; see is_drained. */
void process_mark_end(struct guest *guest, struct process *process, int stream);

/* Reaps every child that has exited, started here or inherited. */
void process_reap(struct guest *guest);

/* Queues output, exits and acknowledgements as far as the connection has room. */
void process_pump(struct guest *guest);

/* Starts a new connection: resets the streams so that unacknowledged output is sent again, and
 * queues the state of every process. Returns false if the output buffer is too small. */
bool process_announce(struct guest *guest);
