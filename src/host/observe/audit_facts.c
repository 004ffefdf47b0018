// SPDX-License-Identifier: Apache-2.0
#include "host/observe/audit_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/audit.h"

static void text_take(const json_t *line, const char *field, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(line, field));

    if (text && strlen(text) < size)
        (void)snprintf(ret, size, "%s", text);
}

static int facts_add(const char *text, void *context)
{
    struct audit_facts *facts = context;
    cleanup_json json_t *line = json_loads(text, 0, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));

    if (!event)
        return 0;
    if (strcmp(event, "create") == 0 || strcmp(event, "fork") == 0) {
        facts->is_created = true;
        facts->is_fork = *event == 'f';
        text_take(line, "template", facts->template, sizeof(facts->template));
        text_take(line, "name", facts->name, sizeof(facts->name));
    } else if (strcmp(event, "rollback") == 0) {
        facts->generation = (uint32_t)json_integer_value(json_object_get(line, "generation"));
    } else if (strcmp(event, "destroy") == 0) {
        facts->is_destroyed = true;
    }
    return 0;
}

int audit_facts_read(int state_fd, const char *sandbox, struct audit_facts *ret, struct err *err)
{
    struct audit_facts facts = { .is_created = false };
    uint64_t lines;
    int r = audit_read(state_fd, sandbox, facts_add, &facts, &lines, err);

    if (r < 0 && err->kind != ERR_NOT_FOUND)
        return r;
    *ret = facts;
    return 0;
}
