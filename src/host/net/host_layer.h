/* The layer of the network policy that holt.conf has: net.mode, net.allow and net.deny. */
#pragma once

#include <stdbool.h>

#include "net/policy.h"

struct config;
struct err;
struct host;

/* Adds the rules in a text of holt.conf, which are separated by blanks, to a layer (NULL: only
 * checks them). A word of capitals is the method of the rule behind it. Fails with ERR_INVALID, and
 * with ERR_EXHAUSTED beyond the limits of a layer. */
int network_config_rules(const char *text, struct net_layer *layer, bool is_deny, struct err *err);

/* Checks that both lists of holt.conf fit in one layer. */
int network_config_check(const struct config *config, struct err *err);

/* Takes the policy of holt.conf over; mode none if it was not checked and has an error. */
void network_configure(struct host *host, const struct config *config);

/* Frees the policy of holt.conf. */
void network_free(struct host *host);

/* Copies the layer. */
void network_host_layer(struct host *host, struct net_layer *ret);

/* Returns whether holt.conf allows only what its own rules name. */
bool network_has_host_rules(struct host *host);
