/* Ctrl-P Ctrl-Q, typed one behind the other, leave a process that goes on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LEAVE_KEY_FIRST = 0x10, LEAVE_KEY_SECOND = 0x11 };

struct leave_keys {
    bool is_held; /* the first has come, and is not passed on before the next key is known */
};

/* Copies what is to be passed on of len bytes that were typed: at most len + 1. When the keys were
 * among them, *ret_leaves is set and what stood behind them is dropped. */
size_t leave_keys_filter(struct leave_keys *keys, const char *typed, size_t len, char *ret,
                         bool *ret_leaves);
