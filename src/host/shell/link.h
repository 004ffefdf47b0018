/* The part of a process that is specific to shells: the output and the end of the running
 * command. Under the lock of the machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/message.h"

struct process;

enum { SHELL_STREAMS = STREAM_ALL - STREAM_COUNT };

struct shell_link {
    struct {
        struct buf data;   /* received, but not read yet */
        uint64_t received; /* end offset of the received data */
        uint64_t acked;
    } out[SHELL_STREAMS];
    uint64_t command; /* number of the last command */
    bool is_busy;     /* that command runs */
    struct message_shell_done done;
    int event_fd; /* of the waiting thread; not owned; -1: none */
};

/* Allocates a link: with the state that the guest of an adopted machine reported, or NULL for a
 * new shell. */
struct shell_link *shell_link_new(const struct message_state *state);

/* Accepts NULL. */
void shell_link_free(struct shell_link *link);

/* Returns whether the frame concerns a command of a shell rather than its process. */
bool shell_link_wants(const struct frame *frame);

/* Handles such a frame, on the reactor's thread. Returns false for a malformed one. */
bool shell_link_frame(struct shell_link *link, const struct frame *frame);

/* Wakes the waiting thread. Accepts NULL. */
void shell_link_wake(const struct shell_link *link);
