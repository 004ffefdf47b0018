// SPDX-License-Identifier: Apache-2.0
/* COPY and ADD. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "builder/dockerfile/plan_internal.h"

static size_t words_count(char *const *words)
{
    size_t count = 0;

    while (words && words[count])
        count++;
    return count;
}

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
        const struct scope scope = plan_scope(plan);
        struct err ignored;

        if (doc->is_plain || word_expand(doc->text, &scope, &text, &ignored) < 0)
            text_set(&text, xstrdup(doc->text));
        plan_step(plan, json_pack("{s:s, s:[s, s, s, s]}", "type", "WRITE", "args", path, owner,
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
    const char *from = instruction_flag(item, "from");
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
    plan_step(plan, json_pack("{s:s, s:o, s:s, s:s}", "type", "PLACE", "args", args, "filesHash",
                              hex, "from", source.from));
    return 0;
}

int plan_copy(struct plan *plan, const struct instruction *item, struct err *err)
{
    static const char *const known[] = { "from", "chown", "chmod", "link", NULL };
    const struct scope scope = plan_scope(plan);
    cleanup_with(words_free) char **words = NULL;
    cleanup_free char *owner = NULL, *mode = NULL, *path = NULL;
    const char *chown = instruction_flag(item, "chown"), *chmod = instruction_flag(item, "chmod");
    char *target;
    size_t count;
    int r = instruction_flags_check(item, known, err);

    if (r == 0)
        r = word_expand(chown ? chown : "", &scope, &owner, err);
    if (r == 0)
        r = word_expand(chmod ? chmod : "", &scope, &mode, err);
    if (r == 0)
        r = mode_check(mode, err);
    if (r == 0)
        r = plan_words(plan, item, &words, err);
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
