// SPDX-License-Identifier: Apache-2.0
#include "builder/dockerfile/plan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

static struct scope scope_of(const struct plan *plan)
{
    return (struct scope){ .env = plan->env, .args = plan->args, .escape = plan->stages->escape };
}

static void text_set(char **slot, char *text)
{
    free(*slot);
    *slot = text;
}

static void step_add(struct plan *plan, json_t *step)
{
    (void)json_array_append_new(plan->steps, step);
}

static size_t words_count(char *const *words)
{
    size_t count = 0;

    while (words && words[count])
        count++;
    return count;
}

/* Returns the value of --name=value; NULL: the instruction has no such flag. */
static const char *flag_find(const struct instruction *item, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < item->flag_count; i++) {
        const char *flag = item->flags[i] + 2;

        if (strncmp(flag, name, len) == 0 && (flag[len] == '=' || flag[len] == '\0'))
            return flag[len] == '=' ? flag + len + 1 : "";
    }
    return NULL;
}

/* Fails for a flag that is not in the list, which ends with NULL. */
static int flags_check(const struct instruction *item, const char *const *known, struct err *err)
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
    if (flag_find(item, "network") && strcmp(flag_find(item, "network"), "default") != 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "the network of a build is that of its owner: --network=default");
    return flags_check(item, known, err);
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
    step_add(plan,
             json_pack("{s:s, s:o, s:o}", "type", "EXEC", "args", args, "env", run_env(plan)));
    return 0;
}

/* --- COPY and ADD ----------------------------------------------------------------------------- */

static int mode_check(const char *mode, struct err *err)
{
    size_t len = strlen(mode);

    return len <= 4 && strspn(mode, "01234567") == len
               ? 0
               : err_set(err, ERR_INVALID, "'%.20s' is no octal mode", mode);
}

/* A document is a file of its name. */
static void documents_add(struct plan *plan, const struct instruction *item, const char *target,
                          const char *owner, const char *mode)
{
    for (size_t i = 0; i < item->heredoc_count; i++) {
        const struct heredoc *doc = &item->heredocs[i];
        size_t len = strlen(target);
        cleanup_free char *path = len > 0 && target[len - 1] == '/'
                                      ? xasprintf("%s%s", target, doc->name)
                                      : xstrdup(target);
        cleanup_free char *text = NULL;
        const struct scope scope = scope_of(plan);
        struct err ignored;

        if (doc->is_plain || word_expand(doc->text, &scope, &text, &ignored) < 0)
            text_set(&text, xstrdup(doc->text));
        step_add(plan, json_pack("{s:s, s:[s, s, s, s]}", "type", "WRITE", "args", path, owner,
                                 mode, text));
    }
}

/* Drops the words that stand for documents. */
static void documents_drop(char **words)
{
    char **to = words;

    for (char **from = words; from && *from; from++) {
        if (strncmp(*from, "<<", 2) == 0)
            free(*from);
        else
            *to++ = *from;
    }
    if (to)
        *to = NULL;
}

static int copy_words(const struct plan *plan, const struct instruction *item, char ***ret,
                      struct err *err)
{
    const struct scope scope = scope_of(plan);
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

static bool is_archive(const char *path)
{
    static const char *const ends[] = { ".tar",    ".tar.gz", ".tgz",    ".tar.bz2",
                                        ".tar.xz", ".txz",    ".tar.zst" };
    size_t len = strlen(path);

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (len > strlen(ends[i]) && strcmp(path + len - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

static int sources_check(const struct instruction *item, char *const *sources, struct err *err)
{
    for (char *const *source = sources; *source; source++) {
        if (strstr(*source, "://") || strncmp(*source, "git@", 4) == 0)
            return err_set(err, ERR_UNSUPPORTED,
                           "'%.80s': the daemon fetches no addresses; use RUN with curl or git",
                           *source);
        if (strcmp(item->keyword, "ADD") == 0 && is_archive(*source))
            return err_set(err, ERR_UNSUPPORTED,
                           "'%.80s': ADD unpacks no archives; use COPY and RUN tar", *source);
    }
    return 0;
}

static int files_add(struct plan *plan, const struct instruction *item, char *const *sources,
                     const char *const options[3], struct err *err)
{
    const char *from = flag_find(item, "from");
    const struct plan_source source = { from ? from : "", sources };
    json_t *args = json_pack("[s, s, s]", options[0], options[1], options[2]),
           *paths = json_array();
    char hex[65] = "";
    int r = sources_check(item, sources, err);

    if (r == 0)
        r = plan->look(plan, &source, paths, hex, err);
    (void)json_array_extend(args, paths);
    json_decref(paths);
    if (r < 0) {
        json_decref(args);
        return r;
    }
    step_add(plan, json_pack("{s:s, s:o, s:s, s:s}", "type", "PLACE", "args", args, "filesHash",
                             hex, "from", source.from));
    return 0;
}

static int plan_copy(struct plan *plan, const struct instruction *item, struct err *err)
{
    static const char *const known[] = { "from", "chown", "chmod", "link", NULL };
    const struct scope scope = scope_of(plan);
    cleanup_with(words_free) char **words = NULL;
    cleanup_free char *owner = NULL, *mode = NULL, *path = NULL;
    const char *chown = flag_find(item, "chown"), *chmod = flag_find(item, "chmod");
    char *target;
    size_t count;
    int r = flags_check(item, known, err);

    if (r == 0)
        r = word_expand(chown ? chown : "", &scope, &owner, err);
    if (r == 0)
        r = word_expand(chmod ? chmod : "", &scope, &mode, err);
    if (r == 0)
        r = mode_check(mode, err);
    if (r == 0)
        r = copy_words(plan, item, &words, err);
    if (r < 0)
        return r;
    documents_drop(words);
    count = words_count(words);
    if (count < (item->heredoc_count > 0 ? 1 : 2))
        return err_set(err, ERR_INVALID, "%s needs a source and a destination", item->keyword);
    target = words[count - 1];
    path = target[0] == '/' ? xstrdup(target) : xasprintf("%s/%s", plan->workdir, target);
    if (count > 2 && path[strlen(path) - 1] != '/')
        return err_set(err, ERR_INVALID, "with several sources, the destination must end with '/'");
    free(target);
    words[count - 1] = NULL;
    documents_add(plan, item, path, owner, mode);
    return count > 1 ? files_add(plan, item, words, (const char *const[]){ path, owner, mode }, err)
                     : 0;
}

/* --- settings --------------------------------------------------------------------------------- */

/* Sets each NAME=value, or for the old form NAME value. */
static int pairs_read(struct plan *plan, const struct instruction *item, json_t *into,
                      struct err *err)
{
    const struct scope scope = scope_of(plan);
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
static int plan_env(struct plan *plan, const struct instruction *item, struct err *err)
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

static int plan_label(struct plan *plan, const struct instruction *item, struct err *err)
{
    return pairs_read(plan, item, fact_of(plan, "labels"), err);
}

static int plan_maintainer(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    (void)json_object_set_new(fact_of(plan, "labels"), "maintainer", json_string(item->text));
    return 0;
}

static int plan_arg(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = scope_of(plan);
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

static int plan_expose(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = scope_of(plan);
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

static int plan_volume(struct plan *plan, const struct instruction *item, struct err *err)
{
    cleanup_with(words_free) char **words = NULL;
    int r = copy_words(plan, item, &words, err);

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

static int plan_cmd(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    plan->has_cmd = true;
    (void)json_object_set_new(plan->image, "cmd", command_words(plan, item->text));
    return 0;
}

/* An entry point of its own does not have the arguments of that of the base. */
static int plan_entrypoint(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)err;
    (void)json_object_set_new(plan->image, "entrypoint", command_words(plan, item->text));
    if (!plan->has_cmd)
        (void)json_object_del(plan->image, "cmd");
    return 0;
}

static int plan_shell(struct plan *plan, const struct instruction *item, struct err *err)
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

static int plan_stopsignal(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = scope_of(plan);
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

static int plan_healthcheck(struct plan *plan, const struct instruction *item, struct err *err)
{
    static const struct {
        const char *flag, *field;
    } durations[] = { { "interval", "Interval" },
                      { "timeout", "Timeout" },
                      { "start-period", "StartPeriod" } };
    static const char *const known[] = { "interval", "timeout", "start-period", "retries", NULL };
    cleanup_json json_t *check = json_object();
    json_t *test = NULL;
    const char *text = item->text, *retries = flag_find(item, "retries");
    json_int_t ns = 0;
    uint64_t count;
    int r = flags_check(item, known, err);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(durations); i++) {
        const char *value = flag_find(item, durations[i].flag);

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

static int plan_user(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = scope_of(plan);
    char *user = NULL;
    int r = word_expand(item->text, &scope, &user, err);

    if (r < 0)
        return r;
    text_set(&plan->user, user);
    step_add(plan, json_pack("{s:s, s:[s]}", "type", "AS", "args", user));
    return 0;
}

static int plan_workdir(struct plan *plan, const struct instruction *item, struct err *err)
{
    const struct scope scope = scope_of(plan);
    cleanup_free char *path = NULL;
    int r = word_expand(item->text, &scope, &path, err);

    if (r < 0)
        return r;
    text_set(&plan->workdir,
             path[0] == '/'
                 ? xstrdup(path)
                 : xasprintf("%s/%s", strcmp(plan->workdir, "/") == 0 ? "" : plan->workdir, path));
    step_add(plan, json_pack("{s:s, s:[s]}", "type", "ENTER", "args", plan->workdir));
    return 0;
}

static int plan_onbuild(struct plan *plan, const struct instruction *item, struct err *err)
{
    (void)plan;
    (void)item;
    return err_set(err, ERR_UNSUPPORTED,
                   "ONBUILD is not supported: write the steps where they run");
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
