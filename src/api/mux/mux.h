/* The multiplexed stream: a WebSocket whose numbered channels are calls of holt.v1 (frame.h has its
 * frames). One thread, that of the connection, serves all channels; each call has its own. */
#pragma once

struct exchange;
struct raw_client;

enum {
    MUX_CHANNELS_MAX = 64,
    MUX_QUEUE_MAX = 1024 * 1024, /* bytes for the client; one message may exceed it */
};

/* Serves the client until it goes away, breaks the protocol, its token becomes invalid or the
 * daemon ends. A caller without a role must first name its session. */
void mux_run(struct exchange *exchange, const struct raw_client *client);
