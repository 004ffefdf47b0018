/* What a process that is a shell has beside its terminal: the output and the end of the command
 * that it runs. A part of the process, under its machine's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/message.h"

struct process;

enum { SHELL_STREAMS = STREAM_ALL - STREAM_COUNT };

struct shell_link {
    struct {
        struct buf data;   /* received, not yet read */
        uint64_t received; /* offset behind it */
        uint64_t acked;
    } out[SHELL_STREAMS];
    uint64_t command; /* the last that it was given */
    bool is_busy;     /* with that */
    struct message_shell_done done;
    int event_fd; /* of whoever waits; not owned; -1: nobody does */
};

/* state: of one that an earlier life of the daemon has started; NULL: it is new. */
struct shell_link *shell_link_new(const struct message_state *state);

/* Accepts NULL. */
void shell_link_free(struct shell_link *link);

/* Whether the frame is about a shell's commands rather than about a process. */
bool shell_link_wants(const struct frame *frame);

/* Takes such a frame, on the reactor's thread. False: unacceptable. */
bool shell_link_take(struct shell_link *link, const struct frame *frame);

/* Something has happened to it. Accepts NULL. */
void shell_link_wake(const struct shell_link *link);
