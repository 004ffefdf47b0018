/* Shells: processes that run one command after another and report the exit status of each. */
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
    struct watch status; /* status lines of its commands; fd < 0: closed */
    int control_fd;      /* bash only: the script that its trap reads; empty once read */
    int text_fd;         /* the command, quoted */
    int code_fd;         /* script that sets $? */
    int script_fd;       /* plain sh only: the pipe that it reads its script from */
    char line[SHELL_LINE_MAX];
    size_t line_len;

    bool is_ready;          /* has reached its first prompt */
    uint64_t ready_us;      /* when to assume the first prompt; 0: no deadline */
    uint64_t command;       /* number of the latest command */
    bool is_busy;           /* that command has not been reported as done */
    bool is_started;        /* and the shell has received it */
    bool is_hidden;         /* leaves $? unchanged */
    bool is_output_dropped; /* no client reads its output */
    uint8_t last_status;

    bool is_ended; /* command ended; some output may still be unread */
    enum shell_end how;
    uint8_t end_status;

    uint64_t notify_us; /* when to signal bash again; 0: never */
    uint64_t notify_step_us;
    bool is_probing;
    uint64_t interrupted_us; /* when the command was interrupted_group; 0: not interrupted_group */
    unsigned retries;        /* since the interrupt */
    uint64_t retry_us;       /* when to retry the interrupt */
    pid_t interrupted_group; /* process group that received SIGINT last */
};

/* A shell being created, with both sides of its descriptors. Owns them until the shell has
 * started. */
struct shell_ends {
    struct shell *shell;
    int side[SHELL_SIDE_MAX]; /* ordered by descriptor number; -1: none */
    int side_first, side_count;
    int out[2]; /* our ends */
};

/* Creates a shell and its descriptors. Returns 0 or -errno; the caller frees *ret in both cases. */
int shell_open(enum shell_kind kind, struct shell_ends *ret);
void shell_ends_done(struct shell_ends *ends);

/* Frees a shell. Accepts NULL for both. */
void shell_free(struct guest *guest, struct shell *shell);

/* Handles a frame about a command. Returns false if the frame is malformed. */
bool shell_handle(struct guest *guest, struct process *process, const struct frame *frame);

/* Returns whether output of the shell's command is buffered for a client. */
bool shell_keeps_output(const struct shell *shell);

/* Reads status lines; called when the status pipe is readable. */
void shell_status_ready(struct guest *guest, struct process *process);

/* Looks for a prompt; called when the terminal has shown output. */
void shell_terminal_shown(struct process *process);

/* Queues the end of a command once all of its output has been sent. */
void shell_pump(struct guest *guest, struct process *process);

/* Discards the output of the current command: after a reconnect its reader is gone. */
void shell_drop_output(struct guest *guest, struct process *process);

/* Returns the microseconds until the next shell timer, -1 if there is none. */
long shell_wait_us(const struct guest *guest);

/* Runs the timers that are due. */
void shell_tick(struct guest *guest);
