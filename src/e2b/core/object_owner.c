// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/object_owner.h"

#include <stdio.h>
#include <string.h>

#include "base/access/caller.h"

void e2b_object_own(json_t *object, const struct caller *caller)
{
    json_t *labels = json_object();

    for (size_t i = 0; i < caller->scope_count; i++)
        (void)json_object_set_new(labels, caller->scope[i].key,
                                  json_string(caller->scope[i].value));
    (void)json_object_set_new(object, "owner", json_string(caller->owner));
    (void)json_object_set_new(object, "labels", labels);
}

const char *e2b_object_owner(const json_t *object)
{
    const char *owner = json_string_value(json_object_get(object, "owner"));

    return owner ? owner : OWNER_ROOT;
}

bool e2b_object_is_seen(const json_t *object, const struct caller *caller)
{
    struct label labels[CALLER_SCOPE_MAX];
    size_t count = 0;
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(object, "labels"), key, value) {
        if (count == CALLER_SCOPE_MAX)
            break;
        (void)snprintf(labels[count].key, sizeof(labels[count].key), "%s", key);
        (void)snprintf(labels[count].value, sizeof(labels[count].value), "%s",
                       json_string_value(value));
        count++;
    }
    return caller_sees(caller, e2b_object_owner(object), labels, count);
}

json_t *e2b_object_pick(const json_t *list, const struct caller *caller, const char *field,
                        const char *value)
{
    json_t *object, *foreign = NULL;
    size_t index;

    json_array_foreach(list, index, object) {
        const char *text = json_string_value(json_object_get(object, field));

        if (!text || strcmp(text, value) != 0 || !e2b_object_is_seen(object, caller))
            continue;
        if (strcmp(e2b_object_owner(object), caller->owner) == 0)
            return object;
        foreign = object;
    }
    return foreign;
}
