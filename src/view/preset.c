// SPDX-License-Identifier: Apache-2.0
#include "view/preset.h"

#include <string.h>

#include "base/cleanup.h"

#define SECRETS                                                                                    \
    "**/.env*=none@100\n"                                                                          \
    "**/secrets/**=none@100\n"                                                                     \
    "**/*.key=none@100\n"                                                                          \
    "**/*.pem=none@100\n"

static const struct view_preset presets[] = {
    { "view-only", "all names and sizes, no contents", "**=view\n" },
    { "read-only", "everything can be read, nothing written", "**=read\n" },
    { "full-access", "everything can be written", "**=write\n" },
    { "agent-safe",
      "read; write in /output and /tmp; keys, secrets, credentials and .git are hidden",
      "**=read\n"
      "/output/**=write@10\n"
      "/tmp/**=write@10\n" SECRETS "**/credentials*=none@100\n"
      "**/.git/**=none@50\n" },
    { "development", "write; keys and secrets are hidden", "**=write\n" SECRETS },
};

const struct view_preset *view_preset_at(size_t index)
{
    return index < ARRAY_SIZE(presets) ? &presets[index] : NULL;
}

const struct view_preset *view_preset_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    }
    return NULL;
}
