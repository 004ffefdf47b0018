// SPDX-License-Identifier: Apache-2.0
#include "base/access/caller.h"

#include <string.h>

static const char *const role_names[ROLES] = {
    [ROLE_NONE] = "",
    [ROLE_READ] = "read-only",
    [ROLE_USER] = "user",
    [ROLE_ADMIN] = "admin",
};

const struct caller caller_root = { .role = ROLE_ADMIN, .owner = OWNER_ROOT };

const char *role_name(enum role role)
{
    return role_names[role];
}

bool role_parse(const char *name, enum role *ret)
{
    for (int role = ROLE_READ; role < ROLES; role++) {
        if (strcmp(name, role_names[role]) == 0) {
            *ret = (enum role)role;
            return true;
        }
    }
    return false;
}

bool caller_may_change(const struct caller *caller)
{
    return caller->role >= ROLE_USER;
}

bool caller_is_admin(const struct caller *caller)
{
    return caller->role == ROLE_ADMIN;
}

bool caller_sees(const struct caller *caller, const char *owner, const struct label *labels,
                 size_t count)
{
    if (caller->role == ROLE_NONE)
        return false;
    if (caller->role != ROLE_ADMIN && strcmp(caller->owner, owner) != 0)
        return false;
    return labels_include(labels, count, caller->scope, caller->scope_count);
}
