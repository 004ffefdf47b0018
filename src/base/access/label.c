// SPDX-License-Identifier: Apache-2.0
#include "base/access/label.h"

#include <string.h>

static bool label_is_among(const struct label *label, const struct label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].key, label->key) == 0)
            return strcmp(labels[i].value, label->value) == 0;
    return false;
}

bool labels_include(const struct label *labels, size_t count, const struct label *wanted,
                    size_t wanted_count)
{
    for (size_t i = 0; i < wanted_count; i++)
        if (!label_is_among(&wanted[i], labels, count))
            return false;
    return true;
}
