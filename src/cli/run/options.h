/* The options that `holt run`, `holt exec`, `holt launch` and `holt create` share. */
#pragma once

#include <stdint.h>

#include "cli/core/command.h"
#include "cli/options/network_options.h"
#include "cli/options/words.h"
#include "holt.h"

struct err;

enum run_tty {
    TTY_AUTO, /* if stdin and stdout are terminals */
    TTY_ALWAYS,
    TTY_NEVER,
};

struct run_options {
    struct output_options output;
    const char *template;
    const char *runtime;
    const char *workdir;
    const char *user;
    uint64_t memory_bytes;
    uint64_t quota_bytes;
    uint64_t timeout_ms;
    uint32_t cpu_millis;
    uint32_t pids;
    uint32_t files;
    enum run_tty tty;
    const char *tag;  /* NULL: none */
    const char *tier; /* NULL: that of the sandbox */
    struct words env; /* "NAME=value" */
    struct network_options network;
    struct holt_network_rules rules; /* the same for libholt; see run_sandbox_set */
};

/* The options of a sandbox. */
enum { RUN_SANDBOX_ROWS = 12 };
extern const struct option_row run_sandbox_rows[RUN_SANDBOX_ROWS];

/* The options of a process, and --help. Both tables are for structs that start with run_options. */
extern const struct option_table run_process_table;

/* --user, --env and --workdir of a shell, and --help. */
extern const struct option_table run_surroundings_table;

/* Parses "PORT" or "HOSTPORT:PORT"; host is 0 if it is absent. Returns false for other texts. */
struct run_port {
    uint32_t host, inside;
};
bool run_port_parse(const char *text, struct run_port *ret);

void run_options_done(struct run_options *options);

/* Sets the template, the runtime, the limits and the network, which is kept in the options. */
void run_sandbox_set(struct run_options *options, struct holt_sandbox_options *ret);

/* Sets the command, whose args end with NULL, and its options. Adds the TERM of holt to the
 * environment of a command with a terminal. Fails if a word is not UTF-8. */
int run_command_set(struct run_options *options, char **args, bool has_tty,
                    struct holt_command *ret, struct err *err);
