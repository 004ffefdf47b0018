// SPDX-License-Identifier: Apache-2.0
#include "builder/source.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/host.h"
#include "host/net/host_layer.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "store/import/digest.h"

enum { SOURCES_MAX = 64, MATCHES_MAX = 10000 };

struct source {
    char *word;
    char template[TEMPLATE_NAME_MAX + 1];
    struct sandbox *sandbox; /* NULL: not made yet */
};

struct build_sources {
    struct host *host;
    struct caller caller;
    struct sandbox *context;
    char *path;
    struct source items[SOURCES_MAX];
    size_t count;
};

DEFINE_CLEANUP(file_call_close, struct file_call *);

struct build_sources *build_sources_new(struct host *host, const struct caller *caller,
                                        struct sandbox *context, const char *path)
{
    struct build_sources *sources = xcalloc(1, sizeof(*sources));

    sources->host = host;
    sources->caller = *caller;
    sources->context = context;
    sources->path = xstrdup(path);
    return sources;
}

void build_sources_free(struct build_sources *sources)
{
    struct err ignored;

    if (!sources)
        return;
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->items[i].sandbox) {
            (void)sandbox_destroy(sources->items[i].sandbox, &ignored);
            sandbox_unref(sources->items[i].sandbox);
        }
        free(sources->items[i].word);
    }
    free(sources->path);
    free(sources);
}

static struct source *source_find(const struct build_sources *sources, const char *word)
{
    for (size_t i = 0; i < sources->count; i++)
        if (strcmp(sources->items[i].word, word) == 0)
            return (struct source *)(uintptr_t)&sources->items[i];
    return NULL;
}

void build_sources_add(struct build_sources *sources, const char *word, const char *template)
{
    struct source *source;

    if (source_find(sources, word) || sources->count == SOURCES_MAX)
        return;
    source = &sources->items[sources->count++];
    source->word = xstrdup(word);
    (void)snprintf(source->template, sizeof(source->template), "%s", template);
}

bool build_sources_has(const struct build_sources *sources, const char *word)
{
    return *word ? source_find(sources, word) != NULL : sources->context != NULL;
}

/* Finds the sandbox with the files of a source, and its top. */
static int source_enter(struct build_sources *sources, const char *word, struct sandbox **ret,
                        const char **ret_top, struct err *err)
{
    const struct net_layer network = { .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    struct source *source = *word ? source_find(sources, word) : NULL;
    int r = 0;

    if (!build_sources_has(sources, word))
        return *word ? err_set(err, ERR_NOT_FOUND, "no stage or image '%.100s'", word)
                     : err_set(err, ERR_INVALID, "the build has no context to copy files from");
    if (source && !source->sandbox)
        r = sandbox_create(sources->host,
                           &(struct sandbox_spec){ .caller = &sources->caller,
                                                   .stored_template = source->template,
                                                   .labels = &build_label,
                                                   .label_count = 1,
                                                   .network = &network },
                           &source->sandbox, err);
    *ret = source ? source->sandbox : sources->context;
    *ret_top = source ? "" : sources->path;
    return r;
}

/* Sends a request about a path of a source. */
static int source_ask(struct build_sources *sources, const char *word, const char *path,
                      const struct file_request *like, struct file_call **ret, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    struct file_request request = *like;
    char full[PATH_MAX];
    struct sandbox *sandbox = NULL;
    const char *top = "";
    int r = source_enter(sources, word, &sandbox, &top, err);

    if (r < 0)
        return r;
    if (snprintf(full, sizeof(full), "%s/%s", strcmp(top, "/") == 0 ? "" : top, path) >=
        (int)sizeof(full))
        return err_set(err, ERR_INVALID, "'%.80s...' is too long", path);
    request.path = full;
    request.to = request.after = request.user = request.meta = "";
    r = file_call_open(sandbox, -1, false, &call, err);
    if (r == 0)
        r = file_call_send_request(call, &request, err);
    if (r == 0)
        *ret = TAKE_PTR(call);
    return r;
}

/* --- patterns --------------------------------------------------------------------------------- */

/* Cleans a pattern: no slash at its ends, no "." and no "..", which leads out of a context. */
static int pattern_clean(const char *pattern, char ret[PATH_MAX], struct err *err)
{
    size_t len = 0;

    ret[0] = '\0';
    while (*pattern) {
        size_t part = strcspn(pattern, "/");

        if (part == 2 && strncmp(pattern, "..", 2) == 0)
            return err_set(err, ERR_INVALID, "'..' leads out of the source");
        if (part > 0 && !(part == 1 && *pattern == '.')) {
            if (len + part + 2 > PATH_MAX)
                return err_set(err, ERR_INVALID, "a path is too long");
            len += (size_t)snprintf(ret + len, PATH_MAX - len, "%s%.*s", len > 0 ? "/" : "",
                                    (int)part, pattern);
        }
        pattern += part;
        pattern += strspn(pattern, "/");
    }
    return 0;
}

static int path_check(struct build_sources *sources, const char *word, const char *path,
                      struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    struct file_answer answer;
    int r =
        source_ask(sources, word, path,
                   &(struct file_request){ .type = FILE_STAT, .flags = FILE_FOLLOW }, &call, err);

    return r < 0 ? r : file_call_next(call, &answer, err);
}

static uint32_t slashes_count(const char *text)
{
    uint32_t count = 0;

    for (; *text; text++)
        count += *text == '/';
    return count;
}

static int pattern_list(struct build_sources *sources, const char *word, const char *pattern,
                        json_t *paths, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    const struct file_request request = { .type = FILE_LIST,
                                          .depth = slashes_count(pattern) + 1,
                                          .limit = MATCHES_MAX };
    struct file_answer answer;
    int r = source_ask(sources, word, "", &request, &call, err);

    if (r < 0)
        return r;
    while ((r = file_call_next(call, &answer, err)) > 0) {
        if (answer.type == FILE_ENTRY && fnmatch(pattern, answer.entry.path, FNM_PATHNAME) == 0)
            (void)json_array_append_new(paths, json_string(answer.entry.path));
    }
    if (r == 0 && answer.number == 1)
        return err_set(err, ERR_EXHAUSTED, "'%.80s' is looked for among more than %d files",
                       pattern, MATCHES_MAX);
    return r;
}

int build_source_match(struct build_sources *sources, const char *word, const char *pattern,
                       json_t *paths, struct err *err)
{
    size_t before = json_array_size(paths);
    char clean[PATH_MAX];
    int r = pattern_clean(pattern, clean, err);

    if (r < 0)
        return r;
    if (!strpbrk(clean, "*?[")) {
        r = path_check(sources, word, clean, err);
        (void)json_array_append_new(paths, json_string(clean));
        return r < 0 ? r : 0;
    }
    r = pattern_list(sources, word, clean, paths, err);
    if (r == 0 && json_array_size(paths) == before)
        return err_set(err, ERR_NOT_FOUND, "no file matches '%.100s'", pattern);
    return r;
}

/* --- contents --------------------------------------------------------------------------------- */

int build_source_open(struct build_sources *sources, const char *word, const char *path,
                      bool *ret_is_directory, struct file_call **ret, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    struct file_answer answer = { .type = FILE_NONE };
    int r =
        source_ask(sources, word, path,
                   &(struct file_request){ .type = FILE_STAT, .flags = FILE_FOLLOW }, &call, err);

    if (r == 0)
        r = file_call_next(call, &answer, err);
    if (r < 0)
        return r;
    *ret_is_directory = answer.entry.type == ENTRY_DIRECTORY;
    file_call_close(TAKE_PTR(call));
    return source_ask(sources, word, path,
                      &(struct file_request){ .type = FILE_PULL, .flags = FILE_FOLLOW }, ret, err);
}

/* What differs between two entries of the same content must differ here, too. */
static void entry_digest(struct digest *digest, const struct file_entry *entry)
{
    cleanup_free char *text = xasprintf("%d %o %llu %zu %zu %zu\n", (int)entry->type, entry->mode,
                                        (unsigned long long)entry->size, strlen(entry->path),
                                        strlen(entry->target), strlen(entry->same_as));

    digest_add(digest, text, strlen(text));
    digest_add(digest, entry->path, strlen(entry->path));
    digest_add(digest, entry->target, strlen(entry->target));
    digest_add(digest, entry->same_as, strlen(entry->same_as));
}

static int path_digest(struct build_sources *sources, const char *word, const char *path,
                       struct digest *digest, struct err *err)
{
    cleanup_with(file_call_close_slot) struct file_call *call = NULL;
    struct file_answer answer;
    bool is_directory;
    int r = build_source_open(sources, word, path, &is_directory, &call, err);

    while (r >= 0 && (r = file_call_next(call, &answer, err)) > 0) {
        if (answer.type == FILE_ENTRY) {
            /* The size of a directory is that of its file system. */
            if (answer.entry.type != ENTRY_FILE)
                answer.entry.size = 0;
            entry_digest(digest, &answer.entry);
        }
        if (answer.type == FILE_DATA)
            digest_add(digest, answer.data, answer.len);
        if (answer.type == FILE_TROUBLE)
            return err_set(err, ERR_INVALID, "cannot read '%.100s'", answer.trouble.path);
    }
    return r;
}

int build_source_digest(struct build_sources *sources, const char *word, const json_t *paths,
                        char ret_hex[65], struct err *err)
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    const json_t *path;
    size_t i;
    int r = digest ? 0 : err_sys(err, -1, "compute a digest");

    json_array_foreach(paths, i, path) {
        if (r == 0)
            r = path_digest(sources, word, json_string_value(path), digest, err);
    }
    if (r < 0)
        return r;
    r = digest_hex(digest, ret_hex);
    return r < 0 ? err_sys(err, r, "compute a digest") : 0;
}
