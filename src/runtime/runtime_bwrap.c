// SPDX-License-Identifier: Apache-2.0
/* Isolation by Debian's bubblewrap; holt-init runs as its process 1, as in the native runtime.
 *
 * Holt creates only the user namespace, because bubblewrap can map no more than one uid: the first
 * holt-init becomes root there and runs bwrap, which creates the other namespaces, a blank root,
 * /proc and /dev, and starts the second holt-init from descriptor 4. */
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#include "base/err.h"
#include "runtime/runtime.h"

#define BWRAP "/usr/bin/bwrap"

static const char *const args[] = {
    "holt-init",
    "enter",
    BWRAP,
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup",
    "--as-pid-1",
    "--cap-add",
    "ALL",
    "--tmpfs",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--dir",
    "/none",
    "--dir",
    "/sys", /* for files of holt-init: bubblewrap mounts no sysfs */
    "--",
    "/proc/self/fd/4",
    NULL,
};

static int probe(struct err *err)
{
    if (access(BWRAP, X_OK) == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "runtime 'bwrap' needs " BWRAP " (install the package 'bubblewrap')");
}

const struct runtime_ops runtime_bwrap = {
    .name = "bwrap",
    .strength = RUNTIME_SHARES_KERNEL,
    .builds_root = false,
    .namespaces = CLONE_NEWUSER,
    .args = args,
    .go = "g",
    .own_processes = 2, /* the outer bwrap waits for the inner one */
    .probe = probe,
};
