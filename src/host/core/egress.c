// SPDX-License-Identifier: Apache-2.0
#include "host/core/egress.h"

/* Every sandbox has a network of its own with a loopback in it and nothing else. */
bool sandbox_has_egress(struct sandbox *sandbox)
{
    (void)sandbox;
    return false;
}
