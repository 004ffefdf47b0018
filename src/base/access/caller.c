// SPDX-License-Identifier: Apache-2.0
#include "base/access/caller.h"

#include <string.h>

#include "base/err.h"
#include "base/text/parse.h"

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

static _Thread_local const struct caller *current;

void caller_set_current(const struct caller *caller)
{
    current = caller;
}

const struct caller *caller_current(void)
{
    return current;
}

bool caller_may_change(const struct caller *caller)
{
    return caller->role >= ROLE_USER;
}

bool caller_is_admin(const struct caller *caller)
{
    return caller->role == ROLE_ADMIN;
}

bool caller_is_host_admin(const struct caller *caller)
{
    return caller_is_admin(caller) && caller->scope_count == 0;
}

bool caller_may_watch_host(const struct caller *caller)
{
    return caller_is_host_admin(caller) || (caller->role != ROLE_NONE && caller->scope_count == 0 &&
                                            strcmp(caller->owner, OWNER_ROOT) == 0);
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

int caller_check_labels(const struct caller *caller, const struct label *labels, size_t count,
                        struct err *err)
{
    for (size_t i = 0; i < caller->scope_count; i++) {
        const struct label *wanted = &caller->scope[i];

        if (!labels_include(labels, count, wanted, 1))
            return err_set(err, ERR_DENIED,
                           "this token is limited to objects with the label '%s=%.80s'",
                           wanted->key, wanted->value);
    }
    return 0;
}

size_t owner_share(const char *owner, size_t max)
{
    return strcmp(owner, OWNER_ROOT) == 0 ? max : max / 2;
}

int owner_check_name(const char *name, struct err *err)
{
    if (!is_handle(name, OWNER_NAME_MAX))
        return err_set(err, ERR_INVALID,
                       "invalid owner '%.40s': use 1 to %d letters, digits, '.', '_' or '-', "
                       "starting with a letter or digit",
                       name, OWNER_NAME_MAX);
    return 0;
}
