/* From a fresh set of namespaces to a blank: an init with /proc, /dev and /sys but nothing to run.
 */
#pragma once

#include "guest/identity.h"

struct err;
struct message_boot;

/* What later spawns need and nobody in the sandbox can exchange. */
struct boot_result {
    struct identity identity;
    int null_fd;   /* the null device */
    int devpts_fd; /* root of the sandbox's own devpts */
};

int boot(const struct message_boot *message, struct boot_result *ret, struct err *err);
