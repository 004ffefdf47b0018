/* What holtd was asked to do. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "host/core/config.h"

struct command_line {
    struct config config; /* first: the rows of config_options set fields of it */
    const char *config_path;
    int ready_fd;  /* -1: none */
    bool is_again; /* read once more, while the daemon runs: what was of use at its start is not */
    bool print_config;
    bool doctor;
    bool json;
    bool version;
    bool help;
};

/* Reads argv and, by way of it, the configuration. ready_fd is set even on failure, if it was named
 * before what was wrong. */
int command_line_read(int argc, char *const *argv, struct command_line *ret, struct err *err);

/* Reads the same words, and the configuration, again. */
int command_line_read_again(int argc, char *const *argv, struct command_line *ret, struct err *err);

void command_line_help(FILE *out);

void command_line_done(struct command_line *line);
