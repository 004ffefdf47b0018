// SPDX-License-Identifier: Apache-2.0
#include "base/access/label.h"

#include <string.h>

const struct label *labels_find(const struct label *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, key) == 0)
            return &labels[i];
    return NULL;
}

bool labels_include(const struct label *labels, size_t count, const struct label *wanted,
                    size_t wanted_count)
{
    for (size_t i = 0; i < wanted_count; i++) {
        const struct label *label = labels_find(labels, count, wanted[i].key);

        if (!label || strcmp(label->value, wanted[i].value) != 0)
            return false;
    }
    return true;
}
