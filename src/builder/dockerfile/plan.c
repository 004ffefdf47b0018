// SPDX-License-Identifier: Apache-2.0
#include "builder/dockerfile/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/dockerfile/plan_internal.h"

struct scope plan_scope(const struct plan *plan)
{
    return (struct scope){ .env = plan->env, .args = plan->args, .escape = plan->stages->escape };
}

void plan_step(struct plan *plan, json_t *step)
{
    (void)json_array_append_new(plan->steps, step);
}

const char *instruction_flag(const struct instruction *item, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < item->flag_count; i++) {
        const char *flag = item->flags[i] + 2;

        if (strncmp(flag, name, len) == 0 && (flag[len] == '=' || flag[len] == '\0'))
            return flag[len] == '=' ? flag + len + 1 : "";
    }
    return NULL;
}

int instruction_flags_check(const struct instruction *item, const char *const *known,
                            struct err *err)
{
    for (size_t i = 0; i < item->flag_count; i++) {
        size_t len = strcspn(item->flags[i] + 2, "=");
        bool is_known = false;

        for (const char *const *name = known; *name; name++)
            is_known =
                is_known || (strlen(*name) == len && memcmp(*name, item->flags[i] + 2, len) == 0);
        if (!is_known)
            return err_set(err, ERR_UNSUPPORTED, "flag '%.40s' is not supported", item->flags[i]);
    }
    return 0;
}

int plan_words(const struct plan *plan, const struct instruction *item, char ***ret,
               struct err *err)
{
    const struct scope scope = plan_scope(plan);
    cleanup_json json_t *array = words_json(item->text);
    const json_t *word;
    size_t i;
    char **words;

    if (!array)
        return words_expand(item->text, &scope, ret, err);
    words = xcalloc(json_array_size(array) + 1, sizeof(*words));
    json_array_foreach(array, i, word)
        words[i] = xstrdup(json_string_value(word));
    *ret = words;
    return 0;
}

/* --- RUN -------------------------------------------------------------------------------------- */

/* A cache of a package manager makes a build faster, not different: without it, the files are made
 * in the image. Other mounts have files that the command needs. */
static int mounts_check(const struct instruction *item, struct err *err)
{
    static const char *const known[] = { "mount", "network", NULL };

    for (size_t i = 0; i < item->flag_count; i++)
        if (strncmp(item->flags[i], "--mount=", 8) == 0 && !strstr(item->flags[i], "type=cache"))
            return err_set(err, ERR_UNSUPPORTED, "'%.60s': only mounts with type=cache are known",
                           item->flags[i]);
    if (instruction_flag(item, "network") &&
        strcmp(instruction_flag(item, "network"), "default") != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "the network of a build is that of its owner: --network=default");
    return instruction_flags_check(item, known, err);
}

/* The text for the shell: documents follow the command, or are the command. */
static char *run_text(const struct instruction *item)
{
    char *text;

    if (item->heredoc_count == 1 && strncmp(item->text, "<<", 2) == 0 &&
        !strpbrk(item->text, " \t"))
        return xstrdup(item->heredocs[0].text);
    text = xstrdup(item->text);
    for (size_t i = 0; i < item->heredoc_count; i++)
        text_set(&text,
                 xasprintf("%s\n%s%s", text, item->heredocs[i].text, item->heredocs[i].name));
    return text;
}

/* The ARGs of the stage are variables of its commands; those of ENV win. */
static json_t *run_env(const struct plan *plan)
{
    json_t *env = json_object();

    (void)json_object_update(env, plan->args);
    (void)json_object_update(env, plan->env);
    return env;
}

static int plan_run(struct plan *plan, const struct instruction *item, struct err *err)
{
    json_t *args = words_json(item->text);
    cleanup_free char *text = NULL;
    int r = mounts_check(item, err);

    if (r < 0) {
        json_decref(args);
        return r;
    }
    if (!args) {
        text = run_text(item);
        if (strncmp(text, "#!", 2) == 0)
            return err_set(err, ERR_UNSUPPORTED,
                           "a document that begins with #! is not supported: name the interpreter, "
                           "RUN python3 <<EOF");
        args = json_deep_copy(plan->shell);
        (void)json_array_append_new(args, json_string(text));
    }
    if (json_array_size(args) == 0) {
        json_decref(args);
        return err_set(err, ERR_INVALID, "RUN needs a command");
    }
    plan_step(plan,
              json_pack("{s:s, s:o, s:o}", "type", "EXEC", "args", args, "env", run_env(plan)));
    return 0;
}
/* --- the stage -------------------------------------------------------------------------------- */

static const struct {
    const char *keyword;
    int (*plan)(struct plan *plan, const struct instruction *item, struct err *err);
} kinds[] = {
    { "ADD", plan_copy },
    { "ARG", plan_arg },
    { "CMD", plan_cmd },
    { "COPY", plan_copy },
    { "ENTRYPOINT", plan_entrypoint },
    { "ENV", plan_env },
    { "EXPOSE", plan_expose },
    { "HEALTHCHECK", plan_healthcheck },
    { "LABEL", plan_label },
    { "MAINTAINER", plan_maintainer },
    { "ONBUILD", plan_onbuild },
    { "RUN", plan_run },
    { "SHELL", plan_shell },
    { "STOPSIGNAL", plan_stopsignal },
    { "USER", plan_user },
    { "VOLUME", plan_volume },
    { "WORKDIR", plan_workdir },
};

static int item_plan(struct plan *plan, const struct instruction *item, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].keyword, item->keyword) == 0) {
            int r = kinds[i].plan(plan, item, err);

            return r < 0 ? err_wrap(err, "line %u", item->line) : 0;
        }
    }
    return err_set(err, ERR_INVALID, "line %u: unknown instruction", item->line);
}

void plan_init(struct plan *plan, const json_t *env, const json_t *image, const char *user,
               const char *workdir)
{
    const json_t *shell = json_object_get(image, "shell");

    plan->env = env ? json_deep_copy(env) : json_object();
    plan->image = image ? json_deep_copy(image) : json_object();
    plan->args = json_object();
    plan->steps = json_array();
    plan->shell =
        json_array_size(shell) > 0 ? json_deep_copy(shell) : json_pack("[s, s]", "/bin/sh", "-c");
    plan->user = xstrdup(user);
    plan->workdir = xstrdup(*workdir ? workdir : "/");
}

void plan_done(struct plan *plan)
{
    json_decref(plan->env);
    json_decref(plan->image);
    json_decref(plan->args);
    json_decref(plan->steps);
    json_decref(plan->shell);
    free(plan->user);
    free(plan->workdir);
}

int plan_stage(struct plan *plan, struct err *err)
{
    const struct stage *stage = &plan->stages->items[plan->stage];
    int r = 0;

    for (size_t i = 0; r == 0 && i < stage->count; i++)
        r = item_plan(plan, &stage->items[i], err);
    return r;
}
