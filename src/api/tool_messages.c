// SPDX-License-Identifier: Apache-2.0
#include "api/tool_messages.h"

#include <stdint.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "host/tool.h"
#include "host/tool_table.h"

/* --- parameters ------------------------------------------------------------------------------- */

/* Sets a field of an object that may be NULL to a value that may be: 0 only if neither was. */
static int put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static int text_fill(json_t *schema, const struct tool_param *param)
{
    int r = put(schema, "type", json_string("string"));

    if (param->text)
        r |= put(schema, "default", json_string(param->text));
    if (param->is_needed && !param->may_be_empty)
        r |= put(schema, "minLength", json_integer(1));
    return r;
}

/* Bounds that every number keeps are not worth telling of. */
static int number_fill(json_t *schema, const struct tool_param *param)
{
    int r = put(schema, "type", json_string("integer"));

    if (!param->is_needed)
        r |= put(schema, "default", json_integer(param->number));
    if (param->least != INT64_MIN)
        r |= put(schema, "minimum", json_integer(param->least));
    if (param->most != INT64_MAX)
        r |= put(schema, "maximum", json_integer(param->most));
    return r;
}

static int choice_fill(json_t *schema, const struct tool_param *param)
{
    json_t *words = json_array();
    int r = put(schema, "type", json_string("string"));

    for (size_t i = 0; i < TOOL_CHOICES_MAX && param->choices[i]; i++)
        r |= json_array_append_new(words, json_string(param->choices[i]));
    r |= put(schema, "enum", words);
    if (!param->is_needed)
        r |= put(schema, "default", json_string(param->choices[0]));
    return r;
}

static json_t *edit_schema(void)
{
    return json_pack("{s:s, s:{s:{s:s, s:i}, s:{s:s}, s:{s:s, s:b}}, s:[s, s], s:b}", "type",
                     "object", "properties", "old_string", "type", "string", "minLength", 1,
                     "new_string", "type", "string", "replace_all", "type", "boolean", "default", 0,
                     "required", "old_string", "new_string", "additionalProperties", 0);
}

static int list_fill(json_t *schema, const struct tool_param *param)
{
    int r = put(schema, "type", json_string("array"));

    r |= put(schema, "items",
             param->type == TOOL_EDITS ? edit_schema() : json_pack("{s:s}", "type", "string"));
    if (param->is_needed)
        r |= put(schema, "minItems", json_integer(1));
    r |= put(schema, "maxItems", json_integer(TOOL_LIST_MAX));
    return r;
}

static int param_fill(json_t *schema, const struct tool_param *param)
{
    switch (param->type) {
    case TOOL_TEXT:
        return text_fill(schema, param);
    case TOOL_NUMBER:
        return number_fill(schema, param);
    case TOOL_FLAG:
        return put(schema, "type", json_string("boolean")) | put(schema, "default", json_false());
    case TOOL_CHOICE:
        return choice_fill(schema, param);
    case TOOL_TEXTS:
    case TOOL_EDITS:
        return list_fill(schema, param);
    case TOOL_TYPES:
        break;
    }
    return -1;
}

static json_t *param_schema(const struct tool_param *param)
{
    cleanup_json json_t *schema = json_object();

    if ((param_fill(schema, param) | put(schema, "description", json_string(param->about))) < 0)
        return NULL;
    return TAKE_PTR(schema);
}

json_t *tool_schema_json(const struct tool *tool)
{
    cleanup_json json_t *properties = json_object();
    cleanup_json json_t *required = json_array();

    for (size_t i = 0; i < tool_param_count(tool); i++) {
        const struct tool_param *param = &tool->params[i];

        if (put(properties, param->name, param_schema(param)) < 0)
            return NULL;
        if (param->is_needed && json_array_append_new(required, json_string(param->name)) < 0)
            return NULL;
    }
    return json_pack("{s:s, s:O, s:O, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

static int tier_of(enum tool_work work)
{
    switch (work) {
    case TOOL_BY_HOST:
        return 0;
    case TOOL_BY_WORKER:
        return 1;
    case TOOL_BY_PROCESS:
        break;
    }
    return 2;
}

json_t *tool_json(const struct tool *tool)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:b, s:i}", "name", tool->name, "title",
                     tool->title, "description", tool->about, "inputSchema", tool_schema_json(tool),
                     "readOnly", tool->only_looks, "destructive", tool->destroys, "idempotent",
                     tool->is_idempotent, "openWorld", tool->is_open, "tier", tier_of(tool->work));
}

/* --- results ---------------------------------------------------------------------------------- */

static json_t *block_json(const struct tool_block *block)
{
    json_t *text = json_stringn(block->text, block->len);

    if (!block->mime)
        return json_pack("{s:o}", "text", text);
    return json_pack("{s:{s:o, s:s}}", "image", "data", text, "mimeType", block->mime);
}

static json_t *blocks_json(const struct tool_result *result)
{
    cleanup_json json_t *blocks = json_array();

    for (size_t i = 0; i < result->block_count; i++)
        if (json_array_append_new(blocks, block_json(&result->blocks[i])) < 0)
            return NULL;
    return TAKE_PTR(blocks);
}

static json_t *changed_json(const struct tool_result *result)
{
    cleanup_json json_t *changed = json_array();

    for (size_t i = 0; i < result->changed_count; i++) {
        const char kind[] = { result->changed[i].kind, '\0' };

        if (json_array_append_new(changed, json_pack("{s:s, s:o}", "kind", kind, "path",
                                                     json_text(result->changed[i].path))) < 0)
            return NULL;
    }
    return TAKE_PTR(changed);
}

static json_t *truncated_json(const struct tool_result *result)
{
    return json_pack("{s:o, s:o, s:s*}", "shown", json_u64(result->shown), "total",
                     json_u64(result->total), "handle", result->handle);
}

static int flags_fill(json_t *object, const struct tool_result *result)
{
    const struct {
        const char *name;
        bool is_on;
    } flags[] = {
        { "timedOut", result->timed_out },
        { "oom", result->oom },
        { "changedTruncated", result->changed_is_cut },
        { "repeatedCall", result->is_repeated },
    };
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        if (flags[i].is_on)
            r |= put(object, flags[i].name, json_true());
    return r;
}

json_t *tool_result_json(const struct tool_result *result)
{
    cleanup_json json_t *object = json_pack(
        "{s:o, s:b, s:o, s:i}", "content", blocks_json(result), "isError", result->is_error,
        "durationMs", json_u64(result->duration_ms), "tier", (int)result->tier);
    int r = object ? flags_fill(object, result) : -1;

    if (result->has_exit_code)
        r |= put(object, "exitCode", json_integer(result->exit_code));
    if (result->is_truncated)
        r |= put(object, "truncated", truncated_json(result));
    if (result->snapshot_id)
        r |= put(object, "snapshotId", json_string(result->snapshot_id));
    if (result->snapshot_error)
        r |= put(object, "snapshotError", json_text(result->snapshot_error));
    if (result->changed_count > 0)
        r |= put(object, "changed", changed_json(result));
    return r < 0 ? NULL : TAKE_PTR(object);
}
