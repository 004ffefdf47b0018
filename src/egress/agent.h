/* The ssh-agents of sandboxes (ssh/agent.h): a unix socket inside each, whose listener is here. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct agent;
struct guest;

/* Gives a sandbox an agent, or changes the keys of the one that it has: connections stay, later
 * requests use the new keys. `keys` is "keys" of egress/control.h. Takes the listening socket; -1:
 * it stays. Returns 0 or -EPROTO. */
int agent_set(struct guest *guest, const json_t *keys, int listener_fd);

/* Closes the agent of a sandbox, if it has one. */
void agent_close(struct guest *guest);

/* Returns whether the sandbox does not listen yet, so that agent_tick is needed soon. */
bool agent_is_waiting(const struct guest *guest);

/* Accepts connections once the sandbox listens, and closes those that have been silent for too
 * long. */
void agent_tick(struct guest *guest);
