/* Boots a sandbox: turns fresh namespaces into an init with /proc, /dev and /sys but no root yet.
 */
#pragma once

#include "guest/identity.h"
#include "guest/resources.h"

struct err;
struct message_boot;

/* Descriptors that later spawns need. Processes of the sandbox cannot replace what they refer to.
 */
struct boot_result {
    struct identity identity;
    struct resources resources;
    int null_fd;   /* the null device */
    int devpts_fd; /* root of the sandbox's devpts instance */
};

/* Runs every boot step in order and fills *ret. On failure the error names the step; the caller
 * exits, which closes the descriptors. */
int boot(const struct message_boot *message, struct boot_result *ret, struct err *err);
