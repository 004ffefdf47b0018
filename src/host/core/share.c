// SPDX-License-Identifier: Apache-2.0
#include "host/core/share.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "host/core/host_internal.h"

bool share_word_split(const char *word, const struct caller *caller, struct share_word *ret)
{
    const char *slash = strchr(word, '/');
    size_t len = slash ? (size_t)(slash - word) : 0;

    *ret = (struct share_word){ .has_owner = slash, .name = slash ? slash + 1 : word };
    if (len > OWNER_NAME_MAX || (slash && len == 0) || strchr(ret->name, '/') || !*ret->name)
        return false;
    if (slash)
        (void)snprintf(ret->owner, sizeof(ret->owner), "%.*s", (int)len, word);
    else
        (void)snprintf(ret->owner, sizeof(ret->owner), "%s", caller->owner);
    return true;
}

int share_reaches(struct host *host, enum share_kind kind, const char *object,
                  const struct caller *caller, struct err *err)
{
    if (caller->role == ROLE_NONE)
        return 0;
    return registry_has_share(host->registry, kind, object,
                              caller->scope_count == 0 ? caller->owner : SHARE_ALL, err);
}
