// SPDX-License-Identifier: Apache-2.0
#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *wanted; /* NULL: none */
static size_t wanted_len;
static atomic_long passes_left;

void fault_init(void)
{
    const char *colon;

    wanted = getenv("HOLT_FAULT");
    if (!wanted)
        return;
    colon = strchr(wanted, ':');
    wanted_len = colon ? (size_t)(colon - wanted) : strlen(wanted);
    atomic_init(&passes_left, colon ? strtol(colon + 1, NULL, 10) : 1);
}

void fault_point(const char *step)
{
    if (!wanted || strncmp(step, wanted, wanted_len) != 0 || step[wanted_len] != '\0')
        return;
    if (atomic_fetch_sub(&passes_left, 1) == 1)
        (void)kill(getpid(), SIGKILL);
}
