/* --preset, --perm and --perm-file: the permissions of a command line. */
#pragma once

#include "cli/options/words.h"

struct err;
struct holt_permission_rules;

struct permission_options {
    const char *preset; /* NULL: not given */
    const char *view;   /* the engine; NULL: not given */
    struct words rules;
};

/* Adds a rule, which the daemon checks. */
int permission_add(struct permission_options *options, const char *value, struct err *err);

/* Adds the lines of a file, one rule each; empty lines and those that start with # are none. */
int permission_add_file(struct permission_options *options, const char *path, struct err *err);

/* Returns the rules for libholt in room, or NULL if nothing was given. */
const struct holt_permission_rules *permission_rules(const struct permission_options *options,
                                                     struct holt_permission_rules *room);

void permission_options_done(struct permission_options *options);
