// SPDX-License-Identifier: Apache-2.0
#include "cli/core/words.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"

int label_add(json_t *labels, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    cleanup_free char *key = xasprintf("%.*s", (int)strcspn(text, "="), text);

    if (!equals || *key == '\0')
        return err_set(err, ERR_INVALID, "--label '%.100s' is not KEY=VALUE", text);
    if (json_object_set_new(labels, key, json_string(equals + 1)) < 0)
        return err_set(err, ERR_INVALID, "--label '%.100s' is not UTF-8", key);
    return 0;
}
