/* Who has asked for warm machines lately. An owner that asks for most of them leaves some to the
 * others that ask too: those start cold only if they use up what is left. Without locks of its
 * own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"

enum {
    POOL_REQUESTS = 16,          /* that are remembered */
    POOL_REQUEST_MS = 60 * 1000, /* for so long */
    POOL_REST_DIVISOR = 4,       /* the part of the pool that is left to others */
};

struct pool_share {
    struct {
        char owner[OWNER_NAME_MAX + 1];
        uint64_t at_ms; /* of clock_ms; 0: none yet */
    } requests[POOL_REQUESTS];
    size_t next;
};

/* Notes a request of an owner, and returns how many ready machines of a pool of this size it must
 * leave to others. */
uint32_t pool_share_ask(struct pool_share *share, const char *owner, uint64_t now_ms,
                        uint32_t size);
