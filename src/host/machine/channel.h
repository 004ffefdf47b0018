/* The channel to one holt-init: frames in both directions. Any thread sends; the reactor's thread
 * receives. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/lock.h"
#include "host/core/reactor.h"
#include "wire/frame.h"

struct channel;
struct reactor;

struct channel_events {
    /* Handles one frame from the guest, which may be hostile. False: the frame is not acceptable,
     * and the channel ends. */
    bool (*frame)(struct channel *channel, const struct frame *frame);
    /* The guest sends nothing any more. This is the last call. */
    void (*gone)(struct channel *channel);
};

struct channel {
    struct reactor_source source;
    const struct channel_events *events;
    struct lock send_lock;
    struct buf rest; /* under the lock: the unsent end of frames that were sent in part */
    struct buf in;   /* used by the reactor's thread only */
};

/* Starts receiving, and takes over fd. The channel must not move in memory before events->gone was
 * called. */
int channel_start(struct channel *channel, struct reactor *reactor, int fd,
                  const struct channel_events *events);

/* Sends complete frames; fds go with the first byte. Returns 0 or -errno: the guest is gone, or has
 * read nothing for ten seconds, and the channel was shut down. */
int channel_send(struct channel *channel, const struct buf *frames, const int *fds,
                 size_t fd_count);

/* Sends complete frames without blocking. Returns 0; 1 when only a part was sent: the rest goes
 * before anything else, at the latest when this is called again (with no frames); -EAGAIN when the
 * socket is full or another thread is sending; or another -errno as above. */
int channel_offer(struct channel *channel, const struct buf *frames);

/* Frees the channel's buffers and closes its socket, after gone() or a failed start. */
void channel_done(struct channel *channel);
