/* The options of `holt run`, and the RunRequest they ask for. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cli/command.h"

struct err;

enum run_tty {
    TTY_AUTO, /* where stdin and stdout are terminals */
    TTY_ALWAYS,
    TTY_NEVER,
};

struct run_options {
    struct common_options common;
    const char *template;
    const char *runtime;
    const char *workdir;
    uint64_t memory_bytes;
    uint64_t timeout_ms;
    uint32_t cpu_millis;
    uint32_t pids;
    enum run_tty tty;
    json_t *env; /* name to value */
};

extern const struct option_table run_option_table;

void run_options_init(struct run_options *options);
void run_options_done(struct run_options *options);

/* What the process gets to begin with. */
struct run_plan {
    char **args; /* ends with NULL */
    bool has_tty;
    bool has_stdin;
};

/* The text of the RunRequest; the caller frees it. Fails where an argument is not UTF-8. */
int run_request(const struct run_options *options, const struct run_plan *plan, char **ret_text,
                struct err *err);
