/* What of the world outside a sandbox can reach. */
#pragma once

#include <stdbool.h>

struct sandbox;

/* Whether it can reach anything beyond its own loopback. */
bool sandbox_has_egress(struct sandbox *sandbox);
