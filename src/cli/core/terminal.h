/* The user's terminal: its size, and raw mode, which must always be undone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct terminal {
    bool is_raw;
    struct termios before;
};

/* Enters raw mode if stdin is a terminal. */
void terminal_make_raw(struct terminal *terminal);

/* Restores the terminal; a second call has no effect. */
void terminal_restore(struct terminal *terminal);

/* Returns the size of the terminal that shows our output; 24 by 80 if there is none. */
void terminal_size(uint32_t *ret_rows, uint32_t *ret_columns);

/* Returns whether TERM names a terminal without cursor movement and colours. */
bool terminal_is_dumb(void);

/* Returns whether output to fd may be coloured: it is a terminal that is not dumb, and NO_COLOR is
 * not set. */
bool terminal_has_colours(int fd);

#define COLOUR_RED "\033[31m"
#define COLOUR_GREEN "\033[32m"
#define COLOUR_YELLOW "\033[33m"
#define COLOUR_GREY "\033[90m"
#define COLOUR_NONE "\033[0m"
