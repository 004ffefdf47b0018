/* The cell: a gVisor container inside of the sandbox, for its processes.
 *
 * This holt-init (the outer one) starts runsc in its own namespaces, with the sandbox's tree as
 * root, and a second holt-init as the first process in there (the inner one). The inner one is an
 * ordinary holt-init with one stream to the outer one. So an exec is a fork in the container, and
 * whatever ends the sandbox ends the container, too: it is in the same cgroups, pid namespace and
 * mount namespace, and nothing of it exists outside.
 *
 * The container may start before its root is known: the first process makes it enter the root that
 * the sandbox has then. So a warm machine has one that is parked.
 *
 * The outer one forwards frames about processes of the cell, whose numbers it keeps as relays. The
 * inner one outlives the daemon with it and announces its processes to the next daemon.
 *
 * The daemon ends and signals a process by its control group. A process of the cell has none, so a
 * stand-in waits in the group: when it dies of a signal, everything that the process has started
 * gets the same one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/link.h"
#include "wire/frame.h"

struct guest;

/* A process of the cell, as the outer holt-init knows it. */
struct relay {
    struct relay *next;
    uint32_t id;
    uint32_t pid; /* inside the container */
    pid_t stand_in;
    int cgroup_fd;
    bool has_terminal, is_shell;
    bool is_started;
    bool is_over;     /* the inner holt-init has reported its end, or has died itself */
    bool is_lost;     /* the latter: the end still has to be reported */
    bool is_end_sent; /* of a lost one, on the present connection */
    uint64_t acked[STREAM_COUNT];
};

struct cell {
    struct link link; /* to the inner holt-init; not connected: it does not run */
    pid_t pid;        /* the process that waits for runsc; 0: none */
    int control_fd;   /* see cell_attach_root */
    bool is_entered;  /* its processes have the sandbox's root */
    bool is_ready;    /* the inner holt-init has booted */
    bool is_stale;    /* frames are for a daemon that is gone, until the inner one returns HELLO */
    bool is_announcing;
    struct relay *relays;
};

/* Starts the container unless it runs: descriptors of its cgroup, of runsc and of holt-init, which
 * remain the caller's. Returns false if the frame is malformed. */
bool cell_open(struct guest *guest, const struct frame *frame, const int *fds);

/* Starts a process in the container and replies STARTED or FAILED. Takes ownership of the cgroup in
 * fds. */
void cell_spawn(struct guest *guest, const struct frame *frame, const int *fds);

/* Handles a frame about a process of the cell. Returns whether it was one. */
bool cell_handle(struct guest *guest, const struct frame *frame);

/* Receives frames of the inner holt-init. */
void cell_ready(struct guest *guest);

/* Passes frames on in both directions, as far as there is room. */
void cell_pump(struct guest *guest);

/* Takes note of the end of a child. Returns whether it was one of the cell's. */
bool cell_reap(struct guest *guest, pid_t pid, int status);

/* The daemon is gone. */
void cell_disconnect(struct guest *guest);

/* A new daemon is there: queues the state of lost processes and asks the inner holt-init for that
 * of all others. READY then follows in cell_pump if the container runs; *ret_later says so. Returns
 * false if the output buffer is too small. */
bool cell_announce(struct guest *guest, bool *ret_later);

/* Ends the container, because its root is being replaced. One without a root goes on. */
void cell_leave(struct guest *guest);
