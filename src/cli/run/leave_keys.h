/* The keys that detach from a process without ending it: Ctrl-P Ctrl-Q. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LEAVE_KEY_FIRST = 0x10, LEAVE_KEY_SECOND = 0x11 };

struct leave_keys {
    bool is_held; /* the first was typed; it is passed on if the next is not the second */
};

/* Copies the typed bytes that are passed on, at most len + 1, and returns their number. If the keys
 * are among them, sets *ret_leaves and drops the bytes after them. */
size_t leave_keys_filter(struct leave_keys *keys, const char *typed, size_t len, char *ret,
                         bool *ret_leaves);
