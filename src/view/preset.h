/* Named lists of rules. */
#pragma once

#include <stddef.h>

struct view_rule;

struct view_preset {
    const char *name;
    const char *summary;
    const char *rules; /* as view_rules_parse reads them */
};

/* Returns the preset at this index; NULL behind the last. */
const struct view_preset *view_preset_at(size_t index);

/* Returns a preset by its name; NULL if there is none. */
const struct view_preset *view_preset_find(const char *name);
