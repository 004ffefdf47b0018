/* The options of `holt run`, which `holt create` and `holt exec` share, and what they ask for. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cli/core/command.h"

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
    const char *user;
    uint64_t memory_bytes;
    uint64_t timeout_ms;
    uint32_t cpu_millis;
    uint32_t pids;
    enum run_tty tty;
    const char *tag; /* of a process that stays known; NULL: none */
    json_t *env;     /* name to value */
};

/* What a sandbox is to be. */
enum { RUN_SANDBOX_ROWS = 5 };
extern const struct option_row run_sandbox_rows[RUN_SANDBOX_ROWS];

/* What a process is to get, and --help. Both target what starts with a struct run_options. */
extern const struct option_table run_process_table;

void run_options_init(struct run_options *options);
void run_options_done(struct run_options *options);

/* What the process gets to begin with. */
struct run_plan {
    char **args; /* ends with NULL */
    bool has_tty;
    bool has_stdin;
};

/* Adds template, runtime and limits, as far as they were given. */
void run_add_sandbox(json_t *object, const struct run_options *options);

/* Adds "process". Fails where an argument is not UTF-8. */
int run_add_process(json_t *request, const struct run_options *options, const struct run_plan *plan,
                    struct err *err);
