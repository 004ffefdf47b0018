/* The TerminalSize message. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct err;

struct terminal_size {
    uint16_t rows;
    uint16_t columns;
};

/* Both must be there, from 1 to 65535. */
int terminal_size_parse(const json_t *object, struct terminal_size *ret, struct err *err);
