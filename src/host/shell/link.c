// SPDX-License-Identifier: Apache-2.0
#include "host/shell/link.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"

struct shell_link *shell_link_new(const struct message_state *state)
{
    struct shell_link *link = xcalloc(1, sizeof(*link));

    link->event_fd = -EBADF;
    for (int i = 0; i < SHELL_STREAMS; i++) {
        link->out[i].data.max = FRAME_WINDOW;
        if (state)
            link->out[i].received = link->out[i].acked = state->shell_output[i];
    }
    if (state) {
        link->command = state->shell_command;
        link->is_busy = state->is_shell_busy;
    }
    return link;
}

void shell_link_free(struct shell_link *link)
{
    if (!link)
        return;
    for (int i = 0; i < SHELL_STREAMS; i++)
        buf_done(&link->out[i].data);
    free(link);
}

bool shell_link_wants(const struct frame *frame)
{
    return frame->type == FRAME_SHELL_DONE || (frame->type == FRAME_OUTPUT && frame->size > 0 &&
                                               (unsigned char)frame->payload[0] >= STREAM_COUNT);
}

/* Rejects output beyond the window, repeated output, and output without a running command. */
static bool shell_link_output(struct shell_link *link, const struct frame *frame)
{
    enum frame_stream stream;
    const char *data;
    uint64_t offset;
    size_t len;
    int i;

    if (!message_get_stream(frame, &stream, &offset, &data, &len) || !link->is_busy)
        return false;
    i = (int)stream - STREAM_SHELL_STDOUT;
    if (offset != link->out[i].received || buf_add(&link->out[i].data, data, len) < 0)
        return false;
    link->out[i].received += len;
    return true;
}

static bool shell_link_done(struct shell_link *link, const struct frame *frame)
{
    struct message_shell_done done;

    if (!message_get_shell_done(frame, &done) || !link->is_busy || done.command != link->command)
        return false;
    for (int i = 0; i < SHELL_STREAMS; i++)
        if (done.end[i] > link->out[i].received)
            return false;
    link->done = done;
    link->is_busy = false;
    return true;
}

bool shell_link_frame(struct shell_link *link, const struct frame *frame)
{
    bool is_ok = link && (frame->type == FRAME_SHELL_DONE ? shell_link_done(link, frame)
                                                          : shell_link_output(link, frame));

    if (is_ok)
        shell_link_wake(link);
    return is_ok;
}

void shell_link_wake(const struct shell_link *link)
{
    const uint64_t one = 1;

    if (link && link->event_fd >= 0)
        (void)!write(link->event_fd, &one, sizeof(one));
}
