/* The network layer of a template. It is one of the template's settings; a sandbox gets a copy of
 * it when it is created, so a later change is for later sandboxes. */
#pragma once

#include <stdbool.h>

#include "net/policy.h"

struct err;
struct host;

/* Reads the layer of a template of the store. `ret_has` is false, and the layer empty, if it has
 * none. */
int template_network_read(struct host *host, const char *store_name, struct net_layer *ret,
                          bool *ret_has, struct err *err);

/* Replaces the layer of a template; NULL removes it. */
int template_network_write(struct host *host, const char *store_name, const struct net_layer *layer,
                           struct err *err);

/* Returns whether the layer may be the default of an owner's sandboxes: the template is the owner's
 * or root's. A template that another owner shares can only narrow what they reach. */
bool template_network_is_default(struct host *host, const char *store_name, const char *owner);
