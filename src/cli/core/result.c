// SPDX-License-Identifier: Apache-2.0
#include "cli/core/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text/control.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "holt.h"

void result_free(void *slot)
{
    holt_free(*(void **)slot);
}

void print_word(const char *text)
{
    while (*text) {
        size_t len = text_control(text);

        (void)putchar(len > 0 ? '?' : *text);
        text += len > 0 ? len : 1;
    }
}

void print_members(const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        cleanup_free char *text = NULL;

        (void)printf("  ");
        print_word(name);
        (void)printf("=");
        if (!json_is_string(value))
            text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        print_word(json_is_string(value) ? json_string_value(value) : text ? text : "?");
    }
}

const char *json_text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}
