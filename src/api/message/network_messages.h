/* Network policies in requests. */
#pragma once

#include <stdbool.h>

#include "wire/holt_v1.h"

struct err;
struct net_layer;

/* Reads the layer of a request. Fails with ERR_INVALID for a rule that cannot be compiled. The
 * caller frees it with net_layer_done. */
int network_layer_read(const struct msg_network_policy *message, struct net_layer *ret,
                       struct err *err);

/* Returns whether the message says anything; an empty one is the daemon's default. */
bool network_layer_is_given(const struct msg_network_policy *message);
