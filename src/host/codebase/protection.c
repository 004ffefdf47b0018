// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/protection.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "host/sandbox/sandbox_internal.h"

enum { PATH_BYTES = 4096 + 1 }; /* a longer path has level none */

int protection_open(struct sandbox *sandbox, struct protection *ret, struct err *err)
{
    *ret = (struct protection){ .top = sandbox->info.codebase_path };
    return sandbox_permissions(sandbox, &ret->permissions, err);
}

void protection_done(struct protection *protection)
{
    permissions_done(&protection->permissions);
}

int protection_check(const struct protection *protection, const char *path, struct err *err)
{
    const struct view_rules *rules = protection->permissions.rules;
    char below[PATH_BYTES], text[VIEW_RULE_TEXT_SIZE] = "";
    struct view_decision decision = { .level = VIEW_NONE, .rule = -1 };
    int len;

    if (!rules)
        return 0;
    len = snprintf(below, sizeof(below), "/%s", path);
    if (len > 0 && (size_t)len < sizeof(below))
        decision = view_decide(rules, below);
    if (decision.level == VIEW_WRITE)
        return 0;
    if (decision.rule < 0)
        return err_set(err, ERR_DENIED, "'%.120s' is protected: no rule allows to write it", path);
    view_rule_format(view_rules_at(rules, (size_t)decision.rule), text);
    return err_set(err, ERR_DENIED, "'%.100s' is protected by rule '%.90s'", path, text);
}

int protection_check_absolute(const struct protection *protection, const char *path,
                              struct err *err)
{
    const size_t len = strlen(protection->top);
    const char *below = strncmp(path, protection->top, len) == 0 ? path + len : path;

    return protection_check(protection, below + strspn(below, "/"), err);
}
