/* struct view, for the files of this folder. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/thread.h"
#include "host/view/view.h"

struct views {
    int sockets_fd;
    int wake_fd; /* an eventfd: the list has changed */
    struct view_events events;
    struct thread thread;

    struct lock lock; /* protects all below, and the views */
    struct cond answered;
    bool is_stopping;
    struct view *list;
    struct view *ending; /* killed, and to be waited for */
};

struct view {
    struct views *views;
    struct view *next;
    char id[VIEW_ID_MAX + 1];
    int fd; /* -1: it has ended */
    int pidfd;
    bool is_child; /* of this process, which has to wait for it */
    uint64_t sequence;
    uint64_t answer_ms;      /* of the last message from it */
    uint64_t awaited;        /* the sequence of the request that somebody waits for; 0: none */
    json_t *answer;          /* to that */
    bool is_busy;            /* somebody waits */
    bool is_unmounted;       /* it ends because nothing uses the mount any more */
    json_t *denials;         /* that were not told yet, the first ones; NULL: none */
    uint64_t denied;         /* how many were told */
    uint64_t denied_total;   /* how many there were */
    uint64_t denials_due_ms; /* when to tell them */
};

/* --- start.c ---------------------------------------------------------------------------------- */

/* Starts the program over a mount. */
int view_process_start(struct views *views, const struct view_start *start, struct view *view,
                       int *ret_mount_fd, struct err *err);

/* Connects to the program of an earlier daemon. */
int view_process_connect(struct views *views, struct view *view, struct err *err);
void view_socket_remove(const struct views *views, const char *id);
bool view_socket_id(const char *name, char ret[VIEW_ID_MAX + 1]);
