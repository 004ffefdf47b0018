// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/name.h"

#include <stdio.h>
#include <string.h>

#include "base/lock.h"

/* One for all sandboxes: it is held for a copy, and names change rarely. */
static struct lock name_lock = LOCK_INIT(LOCK_NAMES);

void sandbox_name_copy(const char *name, char ret[SANDBOX_NAME_MAX + 1])
{
    lock_take(&name_lock);
    memcpy(ret, name, SANDBOX_NAME_MAX + 1);
    lock_release(&name_lock);
}

void sandbox_name_set(char name[SANDBOX_NAME_MAX + 1], const char *text)
{
    lock_take(&name_lock);
    (void)snprintf(name, SANDBOX_NAME_MAX + 1, "%s", text);
    lock_release(&name_lock);
}
