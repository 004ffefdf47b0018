/* Failed logins of each address: a few may follow each other, then one each few seconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THROTTLE_ADDRESSES = 256, /* the least recently refused one is forgotten */
    THROTTLE_ADDRESS_SIZE = 64,
    THROTTLE_FAILURES = 10,
    THROTTLE_PAUSE_MS = 6 * 1000,
};

struct throttle {
    struct throttle_entry {
        char address[THROTTLE_ADDRESS_SIZE];
        uint64_t clear_ms; /* when its failures are forgotten (clock_ms) */
    } entries[THROTTLE_ADDRESSES];
};

/* Returns 0 if the address may try to log in at this time (clock_ms), or the milliseconds that it
 * has to wait. */
uint64_t throttle_check(const struct throttle *throttle, const char *address, uint64_t now_ms);

/* Counts a failed login. */
void throttle_add(struct throttle *throttle, const char *address, uint64_t now_ms);
