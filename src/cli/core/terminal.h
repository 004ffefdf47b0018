/* The user's terminal: its size, and raw mode, which must always be undone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct terminal {
    bool is_raw;
    struct termios before;
};

/* Hands every key to us as it is typed, where stdin is a terminal. */
void terminal_make_raw(struct terminal *terminal);

/* Puts the terminal back as it was; does nothing the second time. */
void terminal_restore(struct terminal *terminal);

/* The size of the terminal that shows our output; 24 by 80 where there is none. */
void terminal_size(uint32_t *ret_rows, uint32_t *ret_columns);

/* TERM says that it cannot move its cursor or change its colour. */
bool terminal_is_dumb(void);

/* Whether what is written to fd may have colours: on a terminal that is not dumb, unless NO_COLOR
 * is set. */
bool terminal_has_colours(int fd);

#define COLOUR_RED "\033[31m"
#define COLOUR_GREEN "\033[32m"
#define COLOUR_YELLOW "\033[33m"
#define COLOUR_GREY "\033[90m"
#define COLOUR_NONE "\033[0m"
