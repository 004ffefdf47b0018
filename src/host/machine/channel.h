/* Frames to and from one holt-init. Any thread sends; the reactor's thread receives. */
#pragma once

#include <stddef.h>

#include "base/lock.h"
#include "base/buf.h"
#include "host/core/reactor.h"
#include "wire/frame.h"

struct channel;
struct reactor;

struct channel_events {
    /* One frame from the guest, who may be hostile. False: it is not acceptable; the channel ends.
     */
    bool (*frame)(struct channel *channel, const struct frame *frame);
    /* Nothing comes any more. The last call. */
    void (*gone)(struct channel *channel);
};

struct channel {
    struct reactor_source source;
    const struct channel_events *events;
    struct lock send_lock;
    struct buf rest; /* under the lock: end of frames that the guest has the beginning of */
    struct buf in;   /* the reactor's alone */
};

/* Takes over fd. Until events->gone was called the channel must stay where it is. */
int channel_start(struct channel *channel, struct reactor *reactor, int fd,
                  const struct channel_events *events);

/* Sends whole frames; fds go with the first byte. 0, or -errno (the guest is gone, or has read
 * nothing for ten seconds, and the channel is shut down). */
int channel_send(struct channel *channel, const struct buf *frames, const int *fds,
                 size_t fd_count);

/* Sends whole frames without waiting: 0; 1 when the guest has taken only a part of them, and the
 * others go before anything else, at the latest when this is called again (with no frames);
 * -EAGAIN when it takes none now, or another thread is sending; or another -errno as above. */
int channel_offer(struct channel *channel, const struct buf *frames);

/* Frees what the channel holds, after gone() or a failed start. */
void channel_done(struct channel *channel);
