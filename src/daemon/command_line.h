/* The command line of holtd. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "host/core/config.h"

struct command_line {
    struct config config; /* first: the rows of config_options set fields of it */
    const char *config_path;
    int ready_fd;  /* -1: none */
    bool is_again; /* read again while the daemon runs: options for its start are ignored */
    bool print_config;
    bool doctor;
    bool prove;
    bool json;
    bool fix;
    bool version;
    bool help;
};

/* Reads argv and the configuration. ready_fd is set even on failure, if its option came before the
 * error. */
int command_line_read(int argc, char *const *argv, struct command_line *ret, struct err *err);

/* Reads the same arguments, and the configuration, again. */
int command_line_read_again(int argc, char *const *argv, struct command_line *ret, struct err *err);

void command_line_help(FILE *out);

void command_line_done(struct command_line *line);
