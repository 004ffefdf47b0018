/* What clients of E2B ask of a sandbox's network. It is checked and kept; sandboxes have no network
 * beyond their own loopback so far, so what it would let out does not get out either. */
#pragma once

#include <jansson.h>

struct err;

/* Checks a network configuration (NULL: none) as E2B does. */
int e2b_network_check(const json_t *network, struct err *err);

/* Returns a copy without secrets, which is stored and shown. */
json_t *e2b_network_copy(const json_t *network);
