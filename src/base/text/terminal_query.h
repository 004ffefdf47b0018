/* Finds requests to a terminal in recorded output: sequences that a terminal answers by typing
 * (device attributes and status, modes, settings, colours, window sizes). A terminal that gets old
 * output again would answer them again, to a program that has not asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TERMINAL_QUERY_MAX = 256 }; /* bytes of a sequence that is recognized */

/* What a string that continues in the next piece is. Zero at the start. */
enum terminal_string { STRING_NONE, STRING_SHOWN, STRING_HIDDEN };

struct terminal_query_filter {
    enum terminal_string string;
    bool is_osc;  /* the string may also end with BEL */
    bool is_open; /* a terminal may still be reading an incomplete sequence */
};

/* Replaces the requests in a piece of output with NUL bytes (and CAN after a broken sequence),
 * which terminals ignore, so offsets stay as they are. Returns how many bytes are done; the rest,
 * fewer than TERMINAL_QUERY_MAX, is the start of a sequence and must precede the next piece.
 * is_last: nothing follows, all is done.
 */
size_t terminal_query_hide(struct terminal_query_filter *filter, char *data, size_t len,
                           bool is_last);
