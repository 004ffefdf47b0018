// SPDX-License-Identifier: Apache-2.0
#include "host/observe/audit_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/observe/audit.h"

void audit_facts_add(struct audit_facts_list *list, const char *id)
{
    struct audit_facts facts = { .is_created = false };

    if ((list->count & (list->count - 1)) == 0)
        list->items =
            xreallocarray(list->items, list->count ? list->count * 2 : 1, sizeof(*list->items));
    (void)snprintf(facts.id, sizeof(facts.id), "%s", id);
    list->items[list->count++] = facts;
}

static int facts_compare(const void *a, const void *b)
{
    return strcmp(((const struct audit_facts *)a)->id, ((const struct audit_facts *)b)->id);
}

static struct audit_facts *facts_search(const struct audit_facts_list *list, const char *id)
{
    struct audit_facts key = { .is_created = false };

    if (!id || strlen(id) >= sizeof(key.id) || list->count == 0)
        return NULL;
    (void)snprintf(key.id, sizeof(key.id), "%s", id);
    return bsearch(&key, list->items, list->count, sizeof(key), facts_compare);
}

static void text_take(const json_t *line, const char *field, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(line, field));

    if (text && strlen(text) < size)
        (void)snprintf(ret, size, "%s", text);
}

static void facts_note(struct audit_facts *facts, const char *event, const json_t *line)
{
    if (strcmp(event, "create") == 0 || strcmp(event, "fork") == 0) {
        facts->is_created = true;
        facts->is_fork = *event == 'f';
        text_take(line, "template", facts->template, sizeof(facts->template));
        text_take(line, "name", facts->name, sizeof(facts->name));
        text_take(line, "owner", facts->owner, sizeof(facts->owner));
    } else if (strcmp(event, "rollback") == 0) {
        facts->generation = (uint32_t)json_integer_value(json_object_get(line, "generation"));
    } else if (strcmp(event, "destroy") == 0 || strcmp(event, "volume-remove") == 0) {
        facts->is_destroyed = true;
    }
}

static int line_note(const char *text, void *context)
{
    const struct audit_facts_list *list = context;
    cleanup_json json_t *line = json_loads(text, 0, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));
    const char *id = json_string_value(json_object_get(line, "sandbox"));
    struct audit_facts *facts =
        facts_search(list, id ? id : json_string_value(json_object_get(line, "volume")));

    if (event && facts)
        facts_note(facts, event, line);
    return 0;
}

int audit_facts_read(int state_fd, struct audit_facts_list *list, struct err *err)
{
    uint64_t lines;
    int r;

    if (list->count == 0)
        return 0;
    qsort(list->items, list->count, sizeof(*list->items), facts_compare);
    r = audit_read(state_fd, NULL, line_note, list, &lines, err);
    return r < 0 && err->kind != ERR_NOT_FOUND ? r : 0;
}

struct audit_facts audit_facts_find(const struct audit_facts_list *list, const char *id)
{
    const struct audit_facts *found = facts_search(list, id);

    return found ? *found : (struct audit_facts){ .is_created = false };
}

void audit_facts_done(struct audit_facts_list *list)
{
    free(list->items);
    *list = (struct audit_facts_list){ .items = NULL };
}
