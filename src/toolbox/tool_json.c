// SPDX-License-Identifier: Apache-2.0
#include "toolbox/tool_json.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"
#include "wire/schema.h"

enum { RESULT_MAX = 32 * 1024 * 1024 };

/* --- parameters ------------------------------------------------------------------------------- */

/* Sets a field; fails if the object or the value is NULL. */
static int schema_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static int text_fill(json_t *schema, const struct tool_param *param)
{
    int r = schema_set(schema, "type", json_string("string"));

    if (param->text)
        r |= schema_set(schema, "default", json_string(param->text));
    if (param->is_needed && !param->may_be_empty)
        r |= schema_set(schema, "minLength", json_integer(1));
    return r;
}

/* Omits bounds that every number satisfies. */
static int number_fill(json_t *schema, const struct tool_param *param)
{
    int r = schema_set(schema, "type", json_string("integer"));

    if (!param->is_needed)
        r |= schema_set(schema, "default", json_integer(param->number));
    if (param->least != INT64_MIN)
        r |= schema_set(schema, "minimum", json_integer(param->least));
    if (param->most != INT64_MAX)
        r |= schema_set(schema, "maximum", json_integer(param->most));
    return r;
}

static int choice_fill(json_t *schema, const struct tool_param *param)
{
    json_t *words = json_array();
    int r = schema_set(schema, "type", json_string("string"));

    for (size_t i = 0; i < TOOL_CHOICES_MAX && param->choices[i]; i++)
        r |= json_array_append_new(words, json_string(param->choices[i]));
    r |= schema_set(schema, "enum", words);
    if (!param->is_needed)
        r |= schema_set(schema, "default", json_string(param->choices[0]));
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
    int r = schema_set(schema, "type", json_string("array"));

    r |= schema_set(schema, "items",
                    param->type == TOOL_EDITS ? edit_schema()
                                              : json_pack("{s:s}", "type", "string"));
    if (param->is_needed)
        r |= schema_set(schema, "minItems", json_integer(1));
    r |= schema_set(schema, "maxItems", json_integer(TOOL_LIST_MAX));
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
        return schema_set(schema, "type", json_string("boolean")) |
               schema_set(schema, "default", json_false());
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

    if ((param_fill(schema, param) | schema_set(schema, "description", json_string(param->about))) <
        0)
        return NULL;
    return TAKE_PTR(schema);
}

json_t *tool_schema_json(const struct tool *tool)
{
    cleanup_json json_t *properties = json_object();
    cleanup_json json_t *required = json_array();

    for (size_t i = 0; i < tool_param_count(tool); i++) {
        const struct tool_param *param = &tool->params[i];

        if (schema_set(properties, param->name, param_schema(param)) < 0)
            return NULL;
        if (param->is_needed && json_array_append_new(required, json_string(param->name)) < 0)
            return NULL;
    }
    return json_pack("{s:s, s:O, s:O, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

/* --- results ---------------------------------------------------------------------------------- */

static const struct msg_tool_content *content_messages(const struct tool_result *result,
                                                       struct arena *arena)
{
    struct msg_tool_content *content = arena_take(arena, result->block_count, sizeof(*content));

    for (size_t i = 0; i < result->block_count; i++) {
        const struct tool_block *block = &result->blocks[i];
        const struct span text = { block->text, block->len };
        struct msg_tool_image *image;

        if (!block->mime) {
            content[i].text = text;
            continue;
        }
        image = arena_take(arena, 1, sizeof(*image));
        *image = (struct msg_tool_image){ .data = text, .mime_type = block->mime };
        content[i].image = image;
    }
    return content;
}

static const char *change_kind(char kind)
{
    return kind == 'A' ? "A" : kind == 'M' ? "M" : "D";
}

static const struct msg_tool_change *change_messages(const struct tool_result *result,
                                                     struct arena *arena)
{
    struct msg_tool_change *changes = arena_take(arena, result->changed_count, sizeof(*changes));

    for (size_t i = 0; i < result->changed_count; i++)
        changes[i] = (struct msg_tool_change){ .kind = change_kind(result->changed[i].kind),
                                               .path = result->changed[i].path };
    return changes;
}

static const struct msg_tool_truncated *truncated_message(const struct tool_result *result,
                                                          struct arena *arena)
{
    struct msg_tool_truncated *truncated;

    if (!result->is_truncated)
        return NULL;
    truncated = arena_take(arena, 1, sizeof(*truncated));
    *truncated = (struct msg_tool_truncated){ .shown = result->shown,
                                              .total = result->total,
                                              .handle = result->handle };
    return truncated;
}

struct msg_execute_tool_response tool_result_message(const struct tool_result *result,
                                                     struct arena *arena)
{
    return (struct msg_execute_tool_response){
        .content = content_messages(result, arena),
        .content_count = result->block_count,
        .is_error = result->is_error,
        .has_exit_code = result->has_exit_code,
        .exit_code = result->exit_code,
        .truncated = truncated_message(result, arena),
        .timed_out = result->timed_out,
        .oom = result->oom,
        .duration_ms = result->duration_ms,
        .tier = result->tier,
        .snapshot_id = result->snapshot_id,
        .snapshot_error = result->snapshot_error,
        .changed = change_messages(result, arena),
        .changed_count = result->changed_count,
        .changed_truncated = result->changed_is_cut,
        .repeated_call = result->is_repeated,
    };
}

json_t *tool_result_json(const struct tool_result *result)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(RESULT_MAX);
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(RESULT_MAX);
    const struct msg_execute_tool_response message = tool_result_message(result, &arena);

    if (schema_encode(&msg_execute_tool_response_schema, &message, ENCODE_ALL, &text) < 0)
        return NULL;
    return json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
}
