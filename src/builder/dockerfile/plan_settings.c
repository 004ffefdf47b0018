// SPDX-License-Identifier: Apache-2.0
/* Instructions that set what an image has beside its files. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "builder/dockerfile/plan_internal.h"

/* Sets each NAME=value, or for the old form NAME value. */
static int pairs_read(struct plan *plan, const struct instruction *item, json_t *into,
                      struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_with(words_free) char **words = NULL;
    size_t name_len = strcspn(item->text, "= \t");
    int r;

    if (item->text[name_len] != '=') {
        const char *rest = item->text + name_len + strspn(item->text + name_len, " \t");
        cleanup_free char *name = xasprintf("%.*s", (int)name_len, item->text), *value = NULL;

        if (!*rest)
            return err_set(err, ERR_INVALID, "%s needs NAME=value", item->keyword);
        r = word_expand(rest, &scope, &value, err);
        if (r == 0)
            (void)json_object_set_new(into, name, json_string(value));
        return r;
    }
    r = words_expand(item->text, &scope, &words, err);
    for (char **word = words; r == 0 && *word; word++) {
        char *equals = strchr(*word, '=');

        if (!equals || equals == *word)
            return err_set(err, ERR_INVALID, "'%.64s' is not NAME=value", *word);
        *equals = '\0';
        (void)json_object_set_new(into, *word, json_string(equals + 1));
    }
    return r;
}

/* Each command gets its variables with its own step. */
int plan_env(struct plan *plan, const struct instruction *item, struct err *err)
{
    return pairs_read(plan, item, plan->env, err);
}

/* Returns an object of the image's settings. */
static json_t *fact_of(struct plan *plan, const char *name)
{
    json_t *old = json_object_get(plan->image, name);

    if (!json_is_object(old))
        (void)json_object_set_new(plan->image, name, json_object());
    return json_object_get(plan->image, name);
}

int plan_label(struct plan *plan, const struct instruction *item, struct err *err)
{
    return pairs_read(plan, item, fact_of(plan, "labels"), err);
}

int plan_maintainer(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    (void)json_object_set_new(fact_of(plan, "labels"), "maintainer", json_string(item->text));
    return 0;
}

int plan_arg(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_with(words_free) char **words = NULL;
    int r = words_expand(item->text, &scope, &words, err);

    for (char **word = words; r == 0 && *word; word++) {
        char *equals = strchr(*word, '=');
        json_t *value;

        if (equals)
            *equals = '\0';
        value = json_object_get(plan->stages->given, *word);
        value = value ? value : json_object_get(plan->stages->defaults, *word);
        if (value)
            (void)json_object_set(plan->args, *word, value);
        else if (equals)
            (void)json_object_set_new(plan->args, *word, json_string(equals + 1));
        else if (json_object_get(plan->stages->args, *word))
            (void)json_object_set(plan->args, *word, json_object_get(plan->stages->args, *word));
    }
    return r;
}

int plan_expose(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_with(words_free) char **words = NULL;
    int r = words_expand(item->text, &scope, &words, err);

    for (char **word = words; r == 0 && *word; word++) {
        size_t digits = strspn(*word, "0123456789-");

        if (digits == 0 || ((*word)[digits] && strcmp(*word + digits, "/tcp") != 0 &&
                            strcmp(*word + digits, "/udp") != 0))
            return err_set(err, ERR_INVALID, "'%.40s' is not PORT, PORT/tcp or PORT/udp", *word);
        if (!(*word)[digits])
            text_set(word, xasprintf("%s/tcp", *word));
        (void)json_object_set_new(fact_of(plan, "exposedPorts"), *word, json_object());
    }
    return r;
}

int plan_volume(struct plan *plan, const struct instruction *item, struct err *err)
{
    cleanup_with(words_free) char **words = NULL;
    int r = plan_words(plan, item, &words, err);

    for (char **word = words; r == 0 && *word; word++)
        (void)json_object_set_new(fact_of(plan, "volumes"), *word, json_object());
    return r;
}

static json_t *command_words(const struct plan *plan, const char *text)
{
    json_t *words = words_json(text);

    if (!words) {
        words = json_deep_copy(plan->shell);
        (void)json_array_append_new(words, json_string(text));
    }
    return words;
}

int plan_cmd(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    plan->has_cmd = true;
    (void)json_object_set_new(plan->image, "cmd", command_words(plan, item->text));
    return 0;
}

/* An entry point of its own does not have the arguments of that of the base. */
int plan_entrypoint(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    (void)json_object_set_new(plan->image, "entrypoint", command_words(plan, item->text));
    if (!plan->has_cmd)
        (void)json_object_del(plan->image, "cmd");
    return 0;
}

int plan_shell(struct plan *plan, const struct instruction *item, struct err *err)
{
    json_t *words = words_json(item->text);

    if (!words || json_array_size(words) == 0) {
        json_decref(words);
        return err_set(err, ERR_INVALID, "SHELL needs a list: [\"/bin/bash\", \"-c\"]");
    }
    json_decref(plan->shell);
    plan->shell = words;
    (void)json_object_set(plan->image, "shell", words);
    return 0;
}

int plan_stopsignal(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_free char *signal = NULL;
    int r = word_expand(item->text, &scope, &signal, err);

    if (r == 0)
        (void)json_object_set_new(plan->image, "stopSignal", json_string(signal));
    return r;
}

/* Reads "1m30s" as nanoseconds. */
static int duration_read(const char *text, json_int_t *ret, struct err *err)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "ns", 1 },  { "us", 1e3 }, { "ms", 1e6 },
                  { "s", 1e9 }, { "m", 6e10 }, { "h", 36e11 } };
    const char *at = text;
    double sum = 0;

    while (*at) {
        char *end;
        double value = strtod(at, &end);
        size_t unit_len = strspn(end, "numsh"), i;

        for (i = 0; i < ARRAY_SIZE(units); i++)
            if (strlen(units[i].unit) == unit_len && memcmp(units[i].unit, end, unit_len) == 0)
                break;
        if (end == at || i == ARRAY_SIZE(units) || !(value >= 0 && value < 1e6))
            return err_set(err, ERR_INVALID, "'%.20s' is no duration such as 30s", text);
        sum += value * units[i].ns;
        at = end + unit_len;
    }
    *ret = (json_int_t)sum;
    return 0;
}

int plan_healthcheck(struct plan *plan, const struct instruction *item, struct err *err)
{
    static const struct {
        const char *flag, *field;
    } durations[] = { { "interval", "Interval" },
                      { "timeout", "Timeout" },
                      { "start-period", "StartPeriod" } };
    static const char *const known[] = { "interval", "timeout", "start-period", "retries", NULL };
    cleanup_json json_t *check = json_object();
    json_t *test = NULL;
    const char *text = item->text, *retries = instruction_flag(item, "retries");
    json_int_t ns = 0;
    uint64_t count;
    int r = instruction_flags_check(item, known, err);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(durations); i++) {
        const char *value = instruction_flag(item, durations[i].flag);

        r = value ? duration_read(value, &ns, err) : 0;
        if (r == 0 && value)
            (void)json_object_set_new(check, durations[i].field, json_integer(ns));
    }
    if (r < 0)
        return r;
    if (retries && parse_u64(retries, &count) == 0)
        (void)json_object_set_new(check, "Retries", json_integer((json_int_t)count));
    if (strcmp(text, "NONE") == 0) {
        test = json_pack("[s]", "NONE");
    } else if (strncmp(text, "CMD", 3) == 0 && isspace((unsigned char)text[3])) {
        test = words_json(text + 3 + strspn(text + 3, " \t"));
        if (test)
            (void)json_array_insert_new(test, 0, json_string("CMD"));
        else
            test = json_pack("[s, s]", "CMD-SHELL", text + 3 + strspn(text + 3, " \t"));
    }
    if (!test)
        return err_set(err, ERR_INVALID, "HEALTHCHECK needs CMD or NONE");
    (void)json_object_set_new(check, "Test", test);
    (void)json_object_set(plan->image, "healthcheck", check);
    return 0;
}

int plan_user(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = plan_scope(plan);
    char *user = NULL;
    int r = word_expand(item->text, &scope, &user, err);

    if (r < 0)
        return r;
    text_set(&plan->user, user);
    plan_step(plan, json_pack("{s:s, s:[s]}", "type", "AS", "args", user));
    return 0;
}

int plan_workdir(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_free char *path = NULL;
    int r = word_expand(item->text, &scope, &path, err);

    if (r < 0)
        return r;
    text_set(&plan->workdir,
             path[0] == '/'
                 ? xstrdup(path)
                 : xasprintf("%s/%s", strcmp(plan->workdir, "/") == 0 ? "" : plan->workdir, path));
    plan_step(plan, json_pack("{s:s, s:[s]}", "type", "ENTER", "args", plan->workdir));
    return 0;
}

int plan_onbuild(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)plan;
    (void)item;
    return err_set(err, ERR_UNSUPPORTED,
                   "ONBUILD is not supported: write the steps where they run");
}
