/* Helpers of the tests about daemons that reconnect. */
#pragma once

#include "kernel/guest/guest_world.h"

/* Checks that a stream is the output of `seq`. */
struct sequence {
    unsigned long number;
    char line[24];
    size_t len, at;
};

static inline void check_sequence(struct sequence *sequence, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (sequence->at == sequence->len) {
            sequence->len = (size_t)snprintf(sequence->line, sizeof(sequence->line), "%lu\n",
                                             ++sequence->number);
            sequence->at = 0;
        }
        CHECK(data[i] == sequence->line[sequence->at++], "(in the line of %lu)", sequence->number);
    }
}

static inline void send_listener(struct guest *guest)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);

    guest->address.sun_family = AF_UNIX;
    (void)snprintf(guest->address.sun_path, sizeof(guest->address.sun_path), "%s/%s.sock",
                   world.dir, guest->started.id);
    (void)unlink(guest->address.sun_path); /* a daemon that was killed may have left it */
    guest->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(guest->listener, (struct sockaddr *)&guest->address, sizeof(guest->address)) == 0);
    CHECK(listen(guest->listener, 8) == 0);
    CHECK(message_put_numbers(&out, FRAME_LISTEN, 0, 0, 0) == 0);
    send_bytes(guest, out.data, out.len, &guest->listener, 1);
}

static inline int connect_to(const struct guest *guest)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(connect(fd, (const struct sockaddr *)&guest->address, sizeof(guest->address)) == 0);
    return fd;
}

static inline void disconnect(struct guest *guest)
{
    guest->fd = fd_close(guest->fd);
    buf_clear(&guest->in);
    guest->used = 0;
}

/* Connects without sending a hello. */
static inline void reconnect_silently(struct guest *guest)
{
    disconnect(guest);
    guest->fd = connect_to(guest);
}

/* Sends a hello. Stores the states that arrive before READY, indexed by id. */
static inline size_t send_hello(struct guest *guest, struct message_state *states, size_t max,
                                uint64_t *ret_last)
{
    size_t count = 0;
    uint64_t version;

    send_numbers(guest, FRAME_HELLO, 0, WIRE_VERSION, 0);
    for (;;) {
        struct frame frame = receive(guest);

        if (frame.type == FRAME_READY) {
            CHECK(message_get_numbers(&frame, &version, ret_last) && version == WIRE_VERSION);
            return count;
        }
        CHECK(frame.type == FRAME_STATE, "(type %d before READY)", (int)frame.type);
        CHECK(frame.process < max && message_get_state(&frame, &states[frame.process]));
        count++;
    }
}

static inline size_t reconnect(struct guest *guest, struct message_state *states, size_t max)
{
    uint64_t last;

    reconnect_silently(guest);
    return send_hello(guest, states, max, &last);
}
