/* What was refused: counted, and the last ones kept until holtd takes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

enum { DENIALS_KEPT = 64, DENIAL_PATH_SIZE = 1024 };

struct denial {
    char path[DENIAL_PATH_SIZE]; /* cut if it is longer */
    const char *operation;
    int rule; /* that decides; -1: none */
    int level;
    uint32_t pid;
};

struct denials {
    struct lock lock;
    uint64_t total;
    struct denial kept[DENIALS_KEPT];
    size_t count;
};

void denial_note(struct denials *denials, const struct denial *denial);

/* Moves what is kept to ret; returns how many, and the number of all so far. */
size_t denials_take(struct denials *denials, struct denial ret[DENIALS_KEPT], uint64_t *ret_total);
