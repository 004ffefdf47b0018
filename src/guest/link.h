/* The connection to the daemon: frames with descriptors in, frames out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "guest/watch.h"
#include "wire/frame.h"

enum {
    LINK_OUT_MAX = 640 * 1024,
    LINK_OUT_BUSY = 64 * 1024, /* above this, process output stays in its ring */
    LINK_FDS_MAX = 64,
};

struct link {
    struct watch watch; /* fd < 0: not connected */
    bool is_greeted;    /* after a reconnect, nothing is sent before the daemon's FRAME_HELLO */
    struct buf in;
    struct buf out;
    int fds[LINK_FDS_MAX]; /* received, not yet claimed by a frame */
    size_t fd_count;
};

void link_init(struct link *link, int fd);

/* Closes the connection and discards partly received and unsent data. */
void link_drop(struct link *link);

/* Receives available bytes. Returns 1, 0 if there are none, or -errno if the connection has ended
 * (-EPIPE at end of file). */
int link_receive(struct link *link);

/* Parses the next complete frame; the caller owns its frame->fds descriptors. Returns 1, 0 if the
 * frame is incomplete, or -EPROTO. The frame is valid until link_consume. */
int link_next(struct link *link, struct frame *ret, int *ret_fds);
void link_consume(struct link *link, const struct frame *frame);

/* Sends as much of `out` as the socket accepts. Returns 0 or -errno. */
int link_flush(struct link *link);
