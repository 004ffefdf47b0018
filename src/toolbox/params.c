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

enum { QUOTE_MAX = 60 }; /* bytes of a value that a complaint repeats */

/* What is being taken, and where to complain. */
struct taking {
    const struct tool *tool;
    const struct tool_param *param;
    size_t bytes; /* of all texts so far */
    struct buf *problem;
};

static const char *type_word(enum tool_type type)
{
    static const char *const words[] = {
        [TOOL_TEXT] = "text",   [TOOL_NUMBER] = "whole number", [TOOL_FLAG] = "true or false",
        [TOOL_CHOICE] = "word", [TOOL_TEXTS] = "list of texts", [TOOL_EDITS] = "list of edits",
    };

    return words[type];
}

static const char *json_word(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "nothing";
}

/* The value as it came, if it is short enough to be of use. */
static void add_quoted(struct buf *out, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text && strlen(text) <= QUOTE_MAX)
        (void)buf_printf(out, ": %s", text);
    free(text);
}

/* --- complaints ------------------------------------------------------------------------------ */

static const char *sample_of(const struct tool_param *param)
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
        (void)buf_printf(out, "%s\"%s\": %s", comma, param->name, sample_of(param));
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

static const char *nearest_param(const struct tool *tool, const char *name)
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

static int refuse_unknown(const struct taking *taking, const char *name)
{
    const char *near = nearest_param(taking->tool, name);

    (void)buf_printf(taking->problem, "%s has no parameter '%.60s'", taking->tool->name, name);
    if (near)
        (void)buf_printf(taking->problem, "; did you mean '%s'?", near);
    else
        (void)buf_add_str(taking->problem, ".");
    add_signature(taking->tool, taking->problem);
    return -EINVAL;
}

static int refuse_missing(const struct taking *taking)
{
    (void)buf_printf(taking->problem, "%s needs the parameter '%s' (%s): %s", taking->tool->name,
                     taking->param->name, type_word(taking->param->type), taking->param->about);
    add_example(taking->tool, taking->problem);
    return -EINVAL;
}

static int refuse_type(const struct taking *taking, const json_t *value)
{
    (void)buf_printf(taking->problem, "the parameter '%s' of %s must be a %s, not %s",
                     taking->param->name, taking->tool->name, type_word(taking->param->type),
                     json_word(value));
    add_quoted(taking->problem, value);
    (void)buf_add_str(taking->problem, ".");
    return -EINVAL;
}

/* --- values ---------------------------------------------------------------------------------- */

/* What becomes bytes of a file; of everything else a NUL would be the end. */
static bool may_have_nul(const struct tool_param *param)
{
    return param->type == TOOL_EDITS || strcmp(param->name, "content") == 0 ||
           strcmp(param->name, "old_string") == 0 || strcmp(param->name, "new_string") == 0;
}

static int take_text(struct taking *taking, const json_t *value, struct tool_text *ret)
{
    const struct tool_param *param = taking->param;

    if (!json_is_string(value))
        return refuse_type(taking, value);
    *ret = (struct tool_text){ json_string_value(value), json_string_length(value) };
    taking->bytes += ret->len;
    if (taking->bytes > TOOL_PARAMS_MAX) {
        (void)buf_printf(taking->problem, "the parameters of %s are more than %d MiB together.",
                         taking->tool->name, TOOL_PARAMS_MAX >> 20);
        return -EINVAL;
    }
    if (!may_have_nul(param) && memchr(ret->data, '\0', ret->len)) {
        (void)buf_printf(taking->problem, "the parameter '%s' of %s has a NUL character in it.",
                         param->name, taking->tool->name);
        return -EINVAL;
    }
    return 0;
}

static int take_whole_text(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    int r = take_text(taking, value, &ret->text);

    if (r == 0 && ret->text.len == 0 && taking->param->is_needed && !taking->param->may_be_empty) {
        (void)buf_printf(taking->problem, "the parameter '%s' of %s must not be empty: %s",
                         taking->param->name, taking->tool->name, taking->param->about);
        return -EINVAL;
    }
    /* An empty one that is optional was not given. */
    if (r == 0 && ret->text.len == 0 && !taking->param->is_needed && taking->param->text)
        ret->text = (struct tool_text){ taking->param->text, strlen(taking->param->text) };
    return r;
}

static bool parse_number(const char *text, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static int take_number(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    const struct tool_param *param = taking->param;
    const double exact = 9007199254740992.0; /* 2^53 */
    double real = json_is_real(value) ? json_real_value(value) : 0;

    if (json_is_integer(value))
        ret->number = json_integer_value(value);
    else if (json_is_real(value) && real == floor(real) && fabs(real) <= exact)
        ret->number = (int64_t)real;
    else if (!json_is_string(value) || !parse_number(json_string_value(value), &ret->number))
        return refuse_type(taking, value);
    if (ret->number >= param->least && ret->number <= param->most)
        return 0;
    (void)buf_printf(taking->problem, "the parameter '%s' of %s must be ", param->name,
                     taking->tool->name);
    if (param->most == INT64_MAX)
        (void)buf_printf(taking->problem, "at least %" PRId64, param->least);
    else
        (void)buf_printf(taking->problem, "between %" PRId64 " and %" PRId64, param->least,
                         param->most);
    (void)buf_printf(taking->problem, ", not %" PRId64 ".", ret->number);
    return -EINVAL;
}

static int take_flag(struct taking *taking, const json_t *value, bool *ret)
{
    if (json_is_boolean(value))
        *ret = json_is_true(value);
    else if (!json_is_string(value) || parse_bool(json_string_value(value), ret) < 0)
        return refuse_type(taking, value);
    return 0;
}

static int take_choice(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    const char *const *choices = taking->param->choices;

    if (!json_is_string(value))
        return refuse_type(taking, value);
    for (int i = 0; i < TOOL_CHOICES_MAX && choices[i]; i++) {
        if (strcmp(choices[i], json_string_value(value)) == 0) {
            ret->number = i;
            return 0;
        }
    }
    (void)buf_printf(taking->problem, "the parameter '%s' of %s must be one of ",
                     taking->param->name, taking->tool->name);
    for (int i = 0; i < TOOL_CHOICES_MAX && choices[i]; i++)
        (void)buf_printf(taking->problem, "%s%s", i > 0 ? ", " : "", choices[i]);
    (void)buf_printf(taking->problem, ", not '%.40s'.", json_string_value(value));
    return -EINVAL;
}

static int check_count(const struct taking *taking, size_t count)
{
    if (count > TOOL_LIST_MAX) {
        (void)buf_printf(taking->problem,
                         "the parameter '%s' of %s has %zu elements; %d are the most.",
                         taking->param->name, taking->tool->name, count, TOOL_LIST_MAX);
        return -EINVAL;
    }
    return count == 0 && taking->param->is_needed ? refuse_missing(taking) : 0;
}

/* A single text is a list of one. */
static int take_texts(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    bool is_one = json_is_string(value);
    size_t count = is_one ? 1 : json_array_size(value);
    int r =
        is_one || json_is_array(value) ? check_count(taking, count) : refuse_type(taking, value);

    if (r < 0)
        return r;
    ret->texts = xcalloc(count + 1, sizeof(*ret->texts));
    ret->count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = take_text(taking, is_one ? value : json_array_get(value, i), &ret->texts[i]);
    return r;
}

static int refuse_edit(const struct taking *taking, size_t index, const char *what)
{
    (void)buf_printf(taking->problem, "edit %zu of '%s' %s", index + 1, taking->param->name, what);
    add_example(taking->tool, taking->problem);
    return -EINVAL;
}

static int take_edit(struct taking *taking, const json_t *value, size_t index,
                     struct tool_edit *ret)
{
    const json_t *old_text = json_object_get(value, "old_string");
    const json_t *new_text = json_object_get(value, "new_string");
    const json_t *all = json_object_get(value, "replace_all");
    int r;

    if (!json_is_object(value))
        return refuse_edit(taking, index, "is not an object with old_string and new_string.");
    if (!json_is_string(old_text) || json_string_length(old_text) == 0)
        return refuse_edit(taking, index, "has no old_string, or an empty one.");
    if (!json_is_string(new_text))
        return refuse_edit(taking, index, "has no new_string.");
    if (json_object_size(value) > 2 + (size_t)(all != NULL))
        return refuse_edit(taking, index,
                           "has more than old_string, new_string and replace_all in it.");
    r = take_text(taking, old_text, &ret->old_text);
    if (r == 0)
        r = take_text(taking, new_text, &ret->new_text);
    if (r == 0 && all && !json_is_null(all))
        r = take_flag(taking, all, &ret->all);
    return r;
}

static int take_edits(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    size_t count = json_array_size(value);
    int r = json_is_array(value) ? check_count(taking, count) : refuse_type(taking, value);

    if (r < 0)
        return r;
    ret->edits = xcalloc(count + 1, sizeof(*ret->edits));
    ret->count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = take_edit(taking, json_array_get(value, i), i, &ret->edits[i]);
    return r;
}

static int take_value(struct taking *taking, const json_t *value, struct tool_value *ret)
{
    bool flag = false;
    int r = 0;

    switch (taking->param->type) {
    case TOOL_TEXT:
        return take_whole_text(taking, value, ret);
    case TOOL_NUMBER:
        return take_number(taking, value, ret);
    case TOOL_FLAG:
        r = take_flag(taking, value, &flag);
        ret->number = flag;
        return r;
    case TOOL_CHOICE:
        return take_choice(taking, value, ret);
    case TOOL_TEXTS:
        return take_texts(taking, value, ret);
    case TOOL_EDITS:
        return take_edits(taking, value, ret);
    case TOOL_TYPES:
        break;
    }
    return -EINVAL;
}

static void set_default(const struct tool_param *param, struct tool_value *ret)
{
    const char *text = param->text ? param->text : "";

    *ret = (struct tool_value){ .type = param->type, .number = param->number };
    if (param->type == TOOL_TEXT)
        ret->text = (struct tool_text){ text, strlen(text) };
}

/* --- all of them ----------------------------------------------------------------------------- */

static bool is_name_of(const struct tool_param *param, const char *name)
{
    return strcmp(param->name, name) == 0 || (param->alias && strcmp(param->alias, name) == 0);
}

static int check_names(const struct taking *taking, const json_t *object)
{
    size_t count = tool_param_count(taking->tool);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;

        while (i < count && !is_name_of(&taking->tool->params[i], key))
            i++;
        if (i == count)
            return refuse_unknown(taking, key);
    }
    return 0;
}

/* NULL where it was not given; null is as if it were not there. */
static int find_value(const struct taking *taking, const json_t *object, const json_t **ret)
{
    const struct tool_param *param = taking->param;
    const json_t *value = json_object_get(object, param->name);
    const json_t *other = param->alias ? json_object_get(object, param->alias) : NULL;

    value = json_is_null(value) ? NULL : value;
    other = json_is_null(other) ? NULL : other;
    if (value && other && !json_equal(value, other)) {
        (void)buf_printf(taking->problem,
                         "'%s' and '%s' of %s are the same parameter, but have different values.",
                         param->name, param->alias, taking->tool->name);
        return -EINVAL;
    }
    *ret = value ? value : other;
    return 0;
}

int tool_params_take(const struct tool *tool, const json_t *object, struct tool_values *ret,
                     struct buf *problem)
{
    struct taking taking = { .tool = tool, .problem = problem };
    int r;

    *ret = (struct tool_values){ .count = tool_param_count(tool) };
    if (object && !json_is_object(object)) {
        (void)buf_printf(problem, "the parameters of %s must be an object, not %s.", tool->name,
                         json_word(object));
        return -EINVAL;
    }
    r = check_names(&taking, object);
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        const json_t *value = NULL;

        taking.param = &tool->params[i];
        set_default(taking.param, &ret->at[i]);
        r = find_value(&taking, object, &value);
        if (r == 0 && value)
            r = take_value(&taking, value, &ret->at[i]);
        else if (r == 0 && taking.param->is_needed)
            r = refuse_missing(&taking);
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
