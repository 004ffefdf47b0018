/* A label of an object: a key and a value that clients choose. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LABEL_KEY_MAX = 63, LABEL_VALUE_MAX = 255 };

struct label {
    char key[LABEL_KEY_MAX + 1];
    char value[LABEL_VALUE_MAX + 1];
};

/* Returns the label with this key, or NULL. */
const struct label *labels_find(const struct label *labels, size_t count, const char *key);

/* Returns whether all wanted labels, with their values, are among these. */
bool labels_include(const struct label *labels, size_t count, const struct label *wanted,
                    size_t wanted_count);
