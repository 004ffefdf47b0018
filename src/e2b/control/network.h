/* What clients of E2B ask of a sandbox's network, as a policy of Holt. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct e2b_request;
struct err;
struct net_layer;

/* Checks a network configuration (NULL: none) as E2B does. */
int e2b_network_check(const json_t *network, struct err *err);

/* Reads whether a request wants the internet, under either spelling of the field; absent is as
 * true. A wrong type is ERR_INVALID. */
int e2b_network_internet(const json_t *body, bool *ret, struct err *err);

/* Makes the layer of a sandbox of this owner and configuration (NULL: none), which was checked.
 * Without one a sandbox has what E2B gives it, mode open; where the ceilings do not allow that, it
 * has what they allow. The layer has the proxy for outgoing connections with its login, the headers
 * of rules, and caBundle. Fails with ERR_INVALID for a name that is none. The caller frees the
 * layer with net_layer_done. */
int e2b_network_layer(const struct e2b_request *request, const char *owner, const json_t *network,
                      bool wants_internet, struct net_layer *ret, struct err *err);

/* Returns a copy without secrets and with one spelling of each field, which is stored and shown. */
json_t *e2b_network_copy(const json_t *network);
