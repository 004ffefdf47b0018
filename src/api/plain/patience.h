/* How long the client of an upload may take. The time for which it waits for the daemon does not
 * count. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct exchange;

struct patience {
    uint64_t left_ms;    /* until the client's next bytes */
    uint64_t waiting_ms; /* since when (clock_ms) */
};

/* Gives the client CONNECTION_BODY_MS, and what its bytes may take. */
void patience_start(struct exchange *exchange, struct patience *patience);

/* Begin and end the time that counts; len bytes have arrived in it. */
void patience_begin(struct exchange *exchange, struct patience *patience);
void patience_end(struct exchange *exchange, struct patience *patience, size_t len);
