/* The callers of the unix socket: which owner and role the users of this machine have. */
#pragma once

#include "base/access/caller.h"

struct err;
struct peer_rules;

/* Reads socket.owners of the configuration: USER=OWNER, @GROUP=OWNER or *=OWNER, each with :ROLE
 * behind it if it is not user, separated by commas. The first that fits a peer is its owner. Fails
 * with ERR_INVALID for a text that is no such list, or an unknown user or group. */
int peer_rules_parse(const char *text, struct peer_rules **ret, struct err *err);

/* Accepts NULL. */
void peer_rules_free(struct peer_rules *rules);

/* Finds the caller of a connection to the unix socket: root with the role admin, unless the peer is
 * another user that a rule fits. A peer that cannot be asked for has no access. */
void peer_find(const struct peer_rules *rules, int fd, struct caller *ret);
