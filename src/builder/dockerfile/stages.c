// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "builder/dockerfile/plan.h"

/* Sets NAME or NAME=word among the ARGs before the first FROM. What the caller gives wins. */
static int arg_set(const struct stages *stages, const struct instruction *item, struct err *err)
{
    const struct scope scope = { .env = stages->args,
                                 .args = stages->defaults,
                                 .escape = stages->escape };
    char **words = NULL;
    int r = words_expand(item->text, &scope, &words, err);

    for (char **word = words; r == 0 && *word; word++) {
        char *equals = strchr(*word, '=');
        json_t *value;

        if (equals)
            *equals = '\0';
        value = json_object_get(stages->given, *word);
        if (value)
            (void)json_object_set(stages->args, *word, value);
        else if (equals)
            (void)json_object_set_new(stages->args, *word, json_string(equals + 1));
    }
    words_free(&words);
    return r;
}

/* An image for another platform would not run here. */
static int platform_check(const struct stages *stages, const struct instruction *item,
                          const struct scope *scope, struct err *err)
{
    const char *own = json_string_value(json_object_get(stages->defaults, "TARGETPLATFORM"));

    for (size_t i = 0; i < item->flag_count; i++) {
        const char *flag = item->flags[i];
        char *platform = NULL;
        bool is_own;
        int r;

        if (strncmp(flag, "--platform=", 11) != 0)
            return err_set(err, ERR_UNSUPPORTED, "flag '%.40s' is not supported", flag);
        r = word_expand(flag + 11, scope, &platform, err);
        if (r < 0)
            return r;
        is_own = strncmp(platform, own, strlen(own)) == 0;
        free(platform);
        if (!is_own)
            return err_set(err, ERR_UNSUPPORTED, "'%.40s': this machine is %s", flag, own);
    }
    return 0;
}

/* Reads "IMAGE [AS NAME]". */
static int from_read(const struct stages *stages, const struct instruction *item, struct stage *ret,
                     struct err *err)
{
    const struct scope scope = { .env = stages->args,
                                 .args = stages->defaults,
                                 .escape = stages->escape };
    char **words = NULL;
    int r = platform_check(stages, item, &scope, err);
    size_t count = 0;

    if (r == 0)
        r = words_expand(item->text, &scope, &words, err);
    if (r < 0 || !words)
        return r;
    while (words[count])
        count++;
    if (!(count == 1 || (count == 3 && strcasecmp(words[1], "AS") == 0)))
        r = err_set(err, ERR_INVALID, "FROM needs IMAGE or IMAGE AS NAME");
    else if (!*words[0])
        r = err_set(err, ERR_INVALID, "FROM names no image: a variable of it has no value");
    if (r == 0) {
        ret->base = xstrdup(words[0]);
        ret->name = xstrdup(count == 3 ? words[2] : "");
        for (char *c = ret->name; *c; c++)
            *c = (char)tolower((unsigned char)*c);
    }
    words_free(&words);
    return r;
}

static void defaults_set(struct stages *stages, const char *arch)
{
    static const char *const known[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
                                         "NO_PROXY",   "no_proxy",   "ALL_PROXY",   "all_proxy",
                                         "FTP_PROXY",  "ftp_proxy" };
    static const char *const sides[] = { "BUILD", "TARGET" };

    for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%sPLATFORM", sides[i]);
        (void)json_object_set_new(stages->defaults, name, json_sprintf("linux/%s", arch));
        (void)snprintf(name, sizeof(name), "%sOS", sides[i]);
        (void)json_object_set_new(stages->defaults, name, json_string("linux"));
        (void)snprintf(name, sizeof(name), "%sARCH", sides[i]);
        (void)json_object_set_new(stages->defaults, name, json_string(arch));
    }
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        json_t *value = json_object_get(stages->given, known[i]);

        if (value)
            (void)json_object_set(stages->defaults, known[i], value);
    }
}

static int item_take(struct stages *stages, const struct instruction *item, struct err *err)
{
    struct stage *stage;

    if (strcmp(item->keyword, "FROM") != 0) {
        if (stages->count > 0)
            stages->items[stages->count - 1].count++;
        else if (strcmp(item->keyword, "ARG") != 0)
            return err_set(err, ERR_INVALID, "only ARG may stand before the first FROM");
        return stages->count > 0 ? 0 : arg_set(stages, item, err);
    }
    if (stages->count == STAGES_MAX)
        return err_set(err, ERR_INVALID, "more than %d stages", STAGES_MAX);
    stage = &stages->items[stages->count++];
    *stage = (struct stage){ .from = item, .items = item + 1 };
    return from_read(stages, item, stage, err);
}

int stages_find(const struct dockerfile *file, const json_t *given, const char *arch,
                struct stages *ret, struct err *err)
{
    int r = 0;

    *ret = (struct stages){ .args = json_object(),
                            .defaults = json_object(),
                            .given = given ? json_deep_copy(given) : json_object(),
                            .escape = file->escape };
    defaults_set(ret, arch);
    for (size_t i = 0; r == 0 && i < file->count; i++) {
        r = item_take(ret, &file->items[i], err);
        if (r < 0)
            r = err_wrap(err, "line %u", file->items[i].line);
    }
    if (r == 0 && ret->count == 0)
        r = err_set(err, ERR_INVALID, "the Dockerfile has no FROM");
    if (r < 0)
        stages_done(ret);
    return r;
}

void stages_done(struct stages *stages)
{
    for (size_t i = 0; i < stages->count; i++) {
        free(stages->items[i].base);
        free(stages->items[i].name);
    }
    json_decref(stages->args);
    json_decref(stages->defaults);
    json_decref(stages->given);
    *stages = (struct stages){ .count = 0 };
}

int stage_named(const struct stages *stages, size_t before, const char *word)
{
    uint64_t number;

    for (size_t i = before; i > 0; i--)
        if (stages->items[i - 1].name[0] && strcasecmp(stages->items[i - 1].name, word) == 0)
            return (int)(i - 1);
    return parse_u64(word, &number) == 0 && number < before ? (int)number : -1;
}

int stage_target(const struct stages *stages, const char *word, struct err *err)
{
    int found = *word ? stage_named(stages, stages->count, word) : (int)stages->count - 1;

    return found >= 0 ? found : err_set(err, ERR_NOT_FOUND, "no stage '%.64s'", word);
}
