/* Shells: processes that are given one command after the other and say how each ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/watch.h"
#include "wire/message.h"

struct guest;
struct process;

enum { SHELL_SIDE_MAX = SHELL_BASH_END - SHELL_BASH_OUT, SHELL_LINE_MAX = 64 };

struct shell {
    enum shell_kind kind;
    struct watch status; /* what it says of its commands; fd < 0: nothing any more */
    int control_fd;      /* of bash: what its trap reads; empty once it has */
    int text_fd;         /* the command, quoted */
    int code_fd;         /* what sets $? */
    int script_fd;       /* of a plain sh: what it reads */
    char line[SHELL_LINE_MAX];
    size_t line_len;

    bool is_ready;     /* it is at its first prompt */
    uint64_t ready_us; /* when it will be, at the latest; 0: not known yet */
    uint64_t command;  /* the last that it was given */
    bool is_busy;      /* with that */
    bool is_given;     /* and the shell has been told of it */
    bool is_hidden;    /* it leaves no $? behind */
    bool is_ignored;   /* nobody reads its output */
    uint8_t last_status;

    bool is_ended; /* what it wrote may still be on its way */
    enum shell_end how;
    uint8_t end_status;

    uint64_t nudge_us; /* when to signal it again; 0: not */
    uint64_t nudge_step_us;
    bool is_probing;
    uint64_t interrupted_us; /* when it was asked to stop; 0: it was not */
    unsigned presses;        /* since then */
    uint64_t press_us;       /* when to ask again */
    pid_t interrupted;       /* whom that went to */
};

/* What a new shell has at its end: owned until the shell is made. */
struct shell_ends {
    struct shell *shell;
    int side[SHELL_SIDE_MAX]; /* in the order of its numbers; -1: none */
    int side_first, side_count;
    int out[2]; /* ours */
};

int shell_open(enum shell_kind kind, struct shell_ends *ret);
void shell_ends_done(struct shell_ends *ends);

/* Accepts NULL. */
void shell_free(struct guest *guest, struct shell *shell);

/* Frames about commands. False: malformed. */
bool shell_handle(struct guest *guest, struct process *process, const struct frame *frame);

/* Whether what its commands write is to be kept. */
bool shell_is_listening(const struct shell *shell);

/* The shell has said something of its commands; its terminal has shown something. */
void shell_status_ready(struct guest *guest, struct process *process);
void shell_note_terminal(struct process *process);

/* Queues the end of a command when all that it wrote has been sent. */
void shell_pump(struct guest *guest, struct process *process);

/* A new connection: whoever read the output of its command is gone. */
void shell_ignore(struct guest *guest, struct process *process);

/* Microseconds until something is to be done for a shell, -1: nothing is; and doing it. */
long shell_wait_us(const struct guest *guest);
void shell_tick(struct guest *guest);
