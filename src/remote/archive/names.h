/* A set of identities, which any thread may use. */
#pragma once

#include "base/lock.h"
#include "remote/archive/keys.h"

struct archive_names {
    struct lock lock; /* over all below */
    uint8_t (*ids)[ARCHIVE_ID_LEN];
    uint32_t *slots; /* numbers of ids, from 1; 0: free */
    size_t count, slot_count;
};

void archive_names_init(struct archive_names *names);
void archive_names_done(struct archive_names *names);

/* Adds an identity; false if the set has it already. */
bool archive_names_add(struct archive_names *names, const uint8_t id[ARCHIVE_ID_LEN]);
