// SPDX-License-Identifier: Apache-2.0
/* Namespaces made by Holt itself: the default, and the fastest. */
#include <sched.h>
#include <stddef.h>

#include "base/err.h"
#include "runtime/runtime.h"

static const char *const args[] = { NULL }; /* the zygote itself goes on as holt-init */

/* What it needs of the kernel is needed by every runtime, and probed when the host is opened. */
static int probe(struct err *err)
{
    (void)err;
    return 0;
}

const struct runtime_ops runtime_native = {
    .name = "native",
    .builds_root = true,
    /* The cgroup namespace is taken later, by holt-init: see guest/boot.c. */
    .namespaces =
        CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
    .args = args,
    .go = "",
    .own_processes = 1,
    .probe = probe,
};
