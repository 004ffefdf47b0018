/* --net, --allow, --deny, --model and --net-file: the network policy of a command line. */
#pragma once

#include "cli/options/words.h"

struct err;

struct network_options {
    char *mode; /* NULL: not given */
    struct words allow;
    struct words deny;
    struct words models;
    char *proxy; /* of a file only: it may have a password; NULL: not given */
};

/* Set the mode or add a rule. Fail with ERR_INVALID. The daemon checks the rules. */
int network_set_mode(struct network_options *options, const char *value, struct err *err);
int network_add_allow(struct network_options *options, const char *value, struct err *err);
int network_add_deny(struct network_options *options, const char *value, struct err *err);

int network_add_model(struct network_options *options, const char *value, struct err *err);

/* Adds the lines of a file: "mode MODE", "allow RULE", "deny RULE", "proxy URL", "model NAME";
 * empty lines and those that start with # are none. */
int network_add_file(struct network_options *options, const char *path, struct err *err);

/* Returns the rules for libholt in room, or NULL if nothing but models was given. */
struct holt_network_rules;
const struct holt_network_rules *network_rules(const struct network_options *options,
                                               struct holt_network_rules *room);

void network_options_done(struct network_options *options);
