// SPDX-License-Identifier: Apache-2.0
#include "toolbox/params.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "toolbox/table.h"

enum { QUOTE_MAX = 60 }; /* bytes of a value that an error message quotes */

struct param_parser {
    const struct tool *tool;
    const struct tool_param *param;
    size_t bytes;        /* of all strings so far */
    struct buf *problem; /* error message */
};

static const char *type_word(enum tool_type type)
{
    static const char *const words[] = {
        [TOOL_TEXT] = "string",   [TOOL_NUMBER] = "whole number",   [TOOL_FLAG] = "boolean",
        [TOOL_CHOICE] = "string", [TOOL_TEXTS] = "list of strings", [TOOL_EDITS] = "list of edits",
    };

    return words[type];
}

static const char *json_type_word(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* Appends the value if it is short. */
static void add_quoted(struct buf *out, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text && strlen(text) <= QUOTE_MAX)
        (void)buf_printf(out, ": %s", text);
    free(text);
}

/* --- error messages -------------------------------------------------------------------------- */

static const char *param_sample(const struct tool_param *param)
{
    static const struct {
        const char *name, *sample;
    } samples[] = {
        { "path", "\"src/main.c\"" },
        { "cmd", "\"ls -la\"" },
        { "pattern", "\"TODO\"" },
        { "message", "\"Fix the parser\"" },
        { "process_id", "\"p3\"" },
        { "snapshot", "\"turn-0001\"" },
        { "handle", "\"o1\"" },
        { "paths", "[\"src/main.c\"]" },
        { "args", "[\"/srv/repo.git\"]" },
    };

    if (param->type == TOOL_EDITS)
        return "[{\"old_string\": \"a\", \"new_string\": \"b\"}]";
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        if (strcmp(samples[i].name, param->name) == 0)
            return samples[i].sample;
    return "\"...\"";
}

static void add_example(const struct tool *tool, struct buf *out)
{
    const char *comma = "";

    (void)buf_add_str(out, " Example: {");
    for (size_t i = 0; i < tool_param_count(tool); i++) {
        const struct tool_param *param = &tool->params[i];

        if (!param->is_needed)
            continue;
        (void)buf_printf(out, "%s\"%s\": %s", comma, param->name, param_sample(param));
        comma = ", ";
    }
    (void)buf_add_str(out, "}");
}

static void add_signature(const struct tool *tool, struct buf *out)
{
    size_t count = tool_param_count(tool);

    if (count == 0) {
        (void)buf_printf(out, " %s takes no parameters.", tool->name);
        return;
    }
    (void)buf_printf(out, " %s takes ", tool->name);
    for (size_t i = 0; i < count; i++)
        (void)buf_printf(out, "%s%s (%s%s)", i > 0 ? ", " : "", tool->params[i].name,
                         type_word(tool->params[i].type),
                         tool->params[i].is_needed ? ", required" : "");
    (void)buf_add_str(out, ".");
}

static const char *param_nearest(const struct tool *tool, const char *name)
{
    const char *nearest = NULL;
    int least = NEAR_MAX + 1;

    for (size_t i = 0; i < tool_param_count(tool); i++) {
        const char *names[] = { tool->params[i].name, tool->params[i].alias };

        for (size_t j = 0; j < 2 && names[j]; j++) {
            int distance = word_distance(name, names[j]);

            if (distance < least) {
                least = distance;
                nearest = tool->params[i].name;
            }
        }
    }
    return nearest;
}

static int param_refuse_unknown(const struct param_parser *parser, const char *name)
{
    const char *near = param_nearest(parser->tool, name);

    (void)buf_printf(parser->problem, "%s has no parameter '%.60s'", parser->tool->name, name);
    if (near)
        (void)buf_printf(parser->problem, "; did you mean '%s'?", near);
    else
        (void)buf_add_str(parser->problem, ".");
    add_signature(parser->tool, parser->problem);
    return -EINVAL;
}

static int param_refuse_missing(const struct param_parser *parser)
{
    (void)buf_printf(parser->problem, "%s needs the parameter '%s' (%s): %s", parser->tool->name,
                     parser->param->name, type_word(parser->param->type), parser->param->about);
    add_example(parser->tool, parser->problem);
    return -EINVAL;
}

static int param_refuse_type(const struct param_parser *parser, const json_t *value)
{
    (void)buf_printf(parser->problem, "the parameter '%s' of %s must be a %s, not %s",
                     parser->param->name, parser->tool->name, type_word(parser->param->type),
                     json_type_word(value));
    add_quoted(parser->problem, value);
    (void)buf_add_str(parser->problem, ".");
    return -EINVAL;
}

/* --- values ---------------------------------------------------------------------------------- */

/* Content of files may have NULs; other strings are used as C strings. */
static bool may_have_nul(const struct tool_param *param)
{
    return param->type == TOOL_EDITS || strcmp(param->name, "content") == 0 ||
           strcmp(param->name, "old_string") == 0 || strcmp(param->name, "new_string") == 0;
}

static int param_parse_text(struct param_parser *parser, const json_t *value, struct tool_text *ret)
{
    const struct tool_param *param = parser->param;

    if (!json_is_string(value))
        return param_refuse_type(parser, value);
    *ret = (struct tool_text){ json_string_value(value), json_string_length(value) };
    parser->bytes += ret->len;
    if (parser->bytes > TOOL_PARAMS_MAX) {
        (void)buf_printf(parser->problem, "the parameters of %s are larger than %d MiB together.",
                         parser->tool->name, TOOL_PARAMS_MAX >> 20);
        return -EINVAL;
    }
    if (!may_have_nul(param) && memchr(ret->data, '\0', ret->len)) {
        (void)buf_printf(parser->problem,
                         "the parameter '%s' of %s must not contain a NUL character.", param->name,
                         parser->tool->name);
        return -EINVAL;
    }
    return 0;
}

static int param_parse_whole_text(struct param_parser *parser, const json_t *value,
                                  struct tool_value *ret)
{
    int r = param_parse_text(parser, value, &ret->text);

    if (r == 0 && ret->text.len == 0 && parser->param->is_needed && !parser->param->may_be_empty) {
        (void)buf_printf(parser->problem, "the parameter '%s' of %s must not be empty: %s",
                         parser->param->name, parser->tool->name, parser->param->about);
        return -EINVAL;
    }
    /* An empty optional string means the default. */
    if (r == 0 && ret->text.len == 0 && !parser->param->is_needed && parser->param->text)
        ret->text = (struct tool_text){ parser->param->text, strlen(parser->param->text) };
    return r;
}

static bool parse_number(const char *text, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static int param_parse_number(struct param_parser *parser, const json_t *value,
                              struct tool_value *ret)
{
    const struct tool_param *param = parser->param;
    const double exact = 9007199254740992.0; /* 2^53 */
    double real = json_is_real(value) ? json_real_value(value) : 0;

    if (json_is_integer(value))
        ret->number = json_integer_value(value);
    else if (json_is_real(value) && real == floor(real) && fabs(real) <= exact)
        ret->number = (int64_t)real;
    else if (!json_is_string(value) || !parse_number(json_string_value(value), &ret->number))
        return param_refuse_type(parser, value);
    if (ret->number >= param->least && ret->number <= param->most)
        return 0;
    (void)buf_printf(parser->problem, "the parameter '%s' of %s must be ", param->name,
                     parser->tool->name);
    if (param->most == INT64_MAX)
        (void)buf_printf(parser->problem, "at least %" PRId64, param->least);
    else
        (void)buf_printf(parser->problem, "between %" PRId64 " and %" PRId64, param->least,
                         param->most);
    (void)buf_printf(parser->problem, ", not %" PRId64 ".", ret->number);
    return -EINVAL;
}

static int param_parse_flag(struct param_parser *parser, const json_t *value, bool *ret)
{
    if (json_is_boolean(value))
        *ret = json_is_true(value);
    else if (!json_is_string(value) || parse_bool(json_string_value(value), ret) < 0)
        return param_refuse_type(parser, value);
    return 0;
}

static int param_parse_choice(struct param_parser *parser, const json_t *value,
                              struct tool_value *ret)
{
    const char *const *choices = parser->param->choices;

    if (!json_is_string(value))
        return param_refuse_type(parser, value);
    for (int i = 0; i < TOOL_CHOICES_MAX && choices[i]; i++) {
        if (strcmp(choices[i], json_string_value(value)) == 0) {
            ret->number = i;
            return 0;
        }
    }
    (void)buf_printf(parser->problem, "the parameter '%s' of %s must be one of ",
                     parser->param->name, parser->tool->name);
    for (int i = 0; i < TOOL_CHOICES_MAX && choices[i]; i++)
        (void)buf_printf(parser->problem, "%s%s", i > 0 ? ", " : "", choices[i]);
    (void)buf_printf(parser->problem, ", not '%.40s'.", json_string_value(value));
    return -EINVAL;
}

static int param_check_count(const struct param_parser *parser, size_t count)
{
    if (count > TOOL_LIST_MAX) {
        (void)buf_printf(parser->problem,
                         "the parameter '%s' of %s has %zu elements; the maximum is %d.",
                         parser->param->name, parser->tool->name, count, TOOL_LIST_MAX);
        return -EINVAL;
    }
    return count == 0 && parser->param->is_needed ? param_refuse_missing(parser) : 0;
}

/* Accepts a single string as a list of one. */
static int param_parse_texts(struct param_parser *parser, const json_t *value,
                             struct tool_value *ret)
{
    bool is_one = json_is_string(value);
    size_t count = is_one ? 1 : json_array_size(value);
    int r = is_one || json_is_array(value) ? param_check_count(parser, count)
                                           : param_refuse_type(parser, value);

    if (r < 0)
        return r;
    ret->texts = xcalloc(count + 1, sizeof(*ret->texts));
    ret->count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = param_parse_text(parser, is_one ? value : json_array_get(value, i), &ret->texts[i]);
    return r;
}

static int param_refuse_edit(const struct param_parser *parser, size_t index, const char *what)
{
    (void)buf_printf(parser->problem, "edit %zu of '%s' %s", index + 1, parser->param->name, what);
    add_example(parser->tool, parser->problem);
    return -EINVAL;
}

static int param_parse_edit(struct param_parser *parser, const json_t *value, size_t index,
                            struct tool_edit *ret)
{
    const json_t *old_text = json_object_get(value, "old_string");
    const json_t *new_text = json_object_get(value, "new_string");
    const json_t *all = json_object_get(value, "replace_all");
    int r;

    if (!json_is_object(value))
        return param_refuse_edit(parser, index, "is not an object with old_string and new_string.");
    if (!json_is_string(old_text) || json_string_length(old_text) == 0)
        return param_refuse_edit(parser, index, "has no old_string, or it is empty.");
    if (!json_is_string(new_text))
        return param_refuse_edit(parser, index, "has no new_string.");
    if (json_object_size(value) > 2 + (size_t)(all != NULL))
        return param_refuse_edit(parser, index,
                                 "has fields other than old_string, new_string and replace_all.");
    r = param_parse_text(parser, old_text, &ret->old_text);
    if (r == 0)
        r = param_parse_text(parser, new_text, &ret->new_text);
    if (r == 0 && all && !json_is_null(all))
        r = param_parse_flag(parser, all, &ret->all);
    return r;
}

static int param_parse_edits(struct param_parser *parser, const json_t *value,
                             struct tool_value *ret)
{
    size_t count = json_array_size(value);
    int r =
        json_is_array(value) ? param_check_count(parser, count) : param_refuse_type(parser, value);

    if (r < 0)
        return r;
    ret->edits = xcalloc(count + 1, sizeof(*ret->edits));
    ret->count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = param_parse_edit(parser, json_array_get(value, i), i, &ret->edits[i]);
    return r;
}

static int param_parse(struct param_parser *parser, const json_t *value, struct tool_value *ret)
{
    bool flag = false;
    int r = 0;

    switch (parser->param->type) {
    case TOOL_TEXT:
        return param_parse_whole_text(parser, value, ret);
    case TOOL_NUMBER:
        return param_parse_number(parser, value, ret);
    case TOOL_FLAG:
        r = param_parse_flag(parser, value, &flag);
        ret->number = flag;
        return r;
    case TOOL_CHOICE:
        return param_parse_choice(parser, value, ret);
    case TOOL_TEXTS:
        return param_parse_texts(parser, value, ret);
    case TOOL_EDITS:
        return param_parse_edits(parser, value, ret);
    case TOOL_TYPES:
        break;
    }
    return -EINVAL;
}

static void param_set_default(const struct tool_param *param, struct tool_value *ret)
{
    const char *text = param->text ? param->text : "";

    *ret = (struct tool_value){ .type = param->type, .number = param->number };
    if (param->type == TOOL_TEXT)
        ret->text = (struct tool_text){ text, strlen(text) };
}

/* --- the whole object ------------------------------------------------------------------------ */

static bool param_has_name(const struct tool_param *param, const char *name)
{
    return strcmp(param->name, name) == 0 || (param->alias && strcmp(param->alias, name) == 0);
}

static int check_names(const struct param_parser *parser, const json_t *object)
{
    size_t count = tool_param_count(parser->tool);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        size_t i = 0;

        while (i < count && !param_has_name(&parser->tool->params[i], key))
            i++;
        if (i == count)
            return param_refuse_unknown(parser, key);
    }
    return 0;
}

/* Returns NULL in *ret for an absent parameter; null means absent. */
static int param_find(const struct param_parser *parser, const json_t *object, const json_t **ret)
{
    const struct tool_param *param = parser->param;
    const json_t *value = json_object_get(object, param->name);
    const json_t *other = param->alias ? json_object_get(object, param->alias) : NULL;

    value = json_is_null(value) ? NULL : value;
    other = json_is_null(other) ? NULL : other;
    if (value && other && !json_equal(value, other)) {
        (void)buf_printf(parser->problem,
                         "'%s' and '%s' of %s are the same parameter but have different values.",
                         param->name, param->alias, parser->tool->name);
        return -EINVAL;
    }
    *ret = value ? value : other;
    return 0;
}

int tool_params_parse(const struct tool *tool, const json_t *object, struct tool_values *ret,
                      struct buf *problem)
{
    struct param_parser parser = { .tool = tool, .problem = problem };
    int r;

    *ret = (struct tool_values){ .count = tool_param_count(tool) };
    if (object && !json_is_object(object)) {
        (void)buf_printf(problem, "the parameters of %s must be an object, not %s.", tool->name,
                         json_type_word(object));
        return -EINVAL;
    }
    r = check_names(&parser, object);
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        const json_t *value = NULL;

        parser.param = &tool->params[i];
        param_set_default(parser.param, &ret->at[i]);
        r = param_find(&parser, object, &value);
        if (r == 0 && value)
            r = param_parse(&parser, value, &ret->at[i]);
        else if (r == 0 && parser.param->is_needed)
            r = param_refuse_missing(&parser);
    }
    return r;
}

void tool_params_done(struct tool_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        if (values->at[i].type == TOOL_TEXTS)
            free(values->at[i].texts);
        else if (values->at[i].type == TOOL_EDITS)
            free(values->at[i].edits);
    }
    values->count = 0;
}
