// SPDX-License-Identifier: Apache-2.0
/* Isolation by namespaces that Holt creates itself: the default, and the fastest. */
#include <sched.h>
#include <stddef.h>

#include "base/err.h"
#include "runtime/runtime.h"

static const char *const args[] = { NULL }; /* the zygote itself becomes holt-init */

/* Every runtime needs the same kernel features; opening the host probes them. */
static int probe(struct err *err)
{
    (void)err;
    return 0;
}

const struct runtime_ops runtime_native = {
    .name = "native",
    .strength = RUNTIME_SHARES_KERNEL,
    .is_like_native = true,
    .builds_root = true,
    /* holt-init enters the cgroup namespace later: see guest/boot.c. */
    .namespaces =
        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
    .args = args,
    .go = "",
    .own_processes = 1,
    .probe = probe,
};
