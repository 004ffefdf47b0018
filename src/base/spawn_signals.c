// SPDX-License-Identifier: Apache-2.0
#include "base/spawn_signals.h"

#include <signal.h>

int spawn_signals_reset(posix_spawnattr_t *attributes, int flags)
{
    sigset_t none, all;
    int r;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(
            attributes, (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    return -r;
}
