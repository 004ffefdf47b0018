/* network.rules of E2B's clients: headers that are set on https requests to a host. A value may
 * name a secret of the secrets API, as "Bearer ${e2b.secrets.NAME}". */
#pragma once

#include <jansson.h>

struct e2b_request;
struct err;
struct net_layer;

/* Adds the rules of a configuration (NULL: none) for a sandbox of this owner to its layer; values
 * are sealed. Fails with ERR_INVALID, also for a secret that the caller or the owner does not have.
 */
int e2b_rules_fill(const struct e2b_request *request, const char *owner, const json_t *rules,
                   struct net_layer *layer, struct err *err);

/* Returns a copy of the headers in which values that name no secret are hidden: they may be keys
 * themselves. */
json_t *e2b_rules_shown(const json_t *rules);
