/* The connection to the daemon: frames in with their descriptors, frames out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "guest/watch.h"
#include "wire/frame.h"

enum {
    LINK_OUT_MAX = 640 * 1024,
    LINK_OUT_BUSY = 64 * 1024, /* above this, output waits in its ring */
    LINK_FDS_MAX = 64,
};

struct link {
    struct watch watch; /* fd < 0: nobody is connected */
    bool is_greeted;    /* a daemon that connects again says hello before it is told anything */
    struct buf in;
    struct buf out;
    int fds[LINK_FDS_MAX]; /* arrived, not yet claimed by a frame */
    size_t fd_count;
};

void link_init(struct link *link, int fd);

/* Drops the connection and everything half-received or unsent. */
void link_drop(struct link *link);

/* Receives what there is: 1, 0 when nothing is, or -errno when the connection is over (-EPIPE at
 * its end). */
int link_receive(struct link *link);

/* The next whole frame, with its descriptors (as many as frame->fds) for the caller to own: 1, 0
 * when there is none, or -EPROTO. Valid until link_consume. */
int link_next(struct link *link, struct frame *ret, int *ret_fds);
void link_consume(struct link *link, const struct frame *frame);

/* Sends as much of `out` as the socket takes: 0 or -errno. */
int link_flush(struct link *link);
