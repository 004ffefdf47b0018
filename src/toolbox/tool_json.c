// SPDX-License-Identifier: Apache-2.0
#include "toolbox/tool_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"

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

/* Written without jansson, because almost all of a result is one long text. */
static int block_write(const struct tool_block *block, struct buf *out)
{
    int r = buf_add_str(out, block->mime ? "{\"image\":{\"data\":" : "{\"text\":");

    if (r == 0)
        r = json_add_text(out, block->text, block->len);
    if (r == 0 && block->mime)
        r = buf_printf(out, ",\"mimeType\":\"%s\"}", block->mime);
    return r < 0 ? r : buf_add_str(out, "}");
}

static int blocks_write(const struct tool_result *result, struct buf *out)
{
    int r = buf_add_str(out, "{\"content\":[");

    for (size_t i = 0; r == 0 && i < result->block_count; i++) {
        r = buf_add_str(out, i > 0 ? "," : "");
        if (r == 0)
            r = block_write(&result->blocks[i], out);
    }
    return r < 0 ? r : buf_add_str(out, "]");
}

/* Appends a field with a comma before it; replaces invalid UTF-8. */
static int field_write(struct buf *out, const char *name, const char *text)
{
    cleanup_json json_t *valid = json_text(text);
    int r = valid ? buf_printf(out, ",\"%s\":", name) : -ENOMEM;

    return r < 0 ? r : json_add_text(out, json_string_value(valid), json_string_length(valid));
}

static int truncated_write(const struct tool_result *result, struct buf *out)
{
    int r = buf_printf(out, ",\"truncated\":{\"shown\":\"%" PRIu64 "\",\"total\":\"%" PRIu64 "\"",
                       result->shown, result->total);

    if (r == 0 && result->handle)
        r = field_write(out, "handle", result->handle);
    return r < 0 ? r : buf_add_str(out, "}");
}

static int changed_write(const struct tool_result *result, struct buf *out)
{
    int r = buf_add_str(out, ",\"changed\":[");

    for (size_t i = 0; r == 0 && i < result->changed_count; i++) {
        r = buf_printf(out, "%s{\"kind\":\"%c\"", i > 0 ? "," : "", result->changed[i].kind);
        if (r == 0)
            r = field_write(out, "path", result->changed[i].path);
        if (r == 0)
            r = buf_add_str(out, "}");
    }
    return r < 0 ? r : buf_add_str(out, "]");
}

static int flags_write(const struct tool_result *result, struct buf *out)
{
    const struct {
        const char *text;
        bool is_on;
    } flags[] = {
        { ",\"timedOut\":true", result->timed_out },
        { ",\"oom\":true", result->oom },
        { ",\"changedTruncated\":true", result->changed_is_cut },
        { ",\"repeatedCall\":true", result->is_repeated },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(flags); i++)
        if (flags[i].is_on)
            r = buf_add_str(out, flags[i].text);
    return r;
}

int tool_result_write(const struct tool_result *result, struct buf *out)
{
    int r = blocks_write(result, out);

    if (r == 0)
        r = buf_printf(out, ",\"isError\":%s,\"durationMs\":\"%" PRIu64 "\",\"tier\":%u",
                       result->is_error ? "true" : "false", result->duration_ms, result->tier);
    if (r == 0)
        r = flags_write(result, out);
    if (r == 0 && result->has_exit_code)
        r = buf_printf(out, ",\"exitCode\":%d", result->exit_code);
    if (r == 0 && result->is_truncated)
        r = truncated_write(result, out);
    if (r == 0 && result->snapshot_id)
        r = field_write(out, "snapshotId", result->snapshot_id);
    if (r == 0 && result->snapshot_error)
        r = field_write(out, "snapshotError", result->snapshot_error);
    if (r == 0 && result->changed_count > 0)
        r = changed_write(result, out);
    return r < 0 ? r : buf_add_str(out, "}");
}

json_t *tool_result_json(const struct tool_result *result)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(RESULT_MAX);

    if (tool_result_write(result, &text) < 0)
        return NULL;
    return json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);
}
