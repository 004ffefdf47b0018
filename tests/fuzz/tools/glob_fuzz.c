// SPDX-License-Identifier: Apache-2.0
/* The first line is a glob pattern, the rest a .gitignore; both are matched against paths, one of
 * which is the second line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/search/glob_set.h"
#include "tools/search/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = { "a", "a/b", ".d/x.c", "src/lib/foo.h", "a/a/a/a/a/b" };

static void match_glob(const char *pattern, size_t len, const char *path, bool hidden)
{
    const char *why;
    struct glob_set *set = glob_set_new(pattern, len, hidden, &why);

    if (!set && !why)
        abort();
    if (!set)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        (void)glob_set_matches_path(set, paths[i]);
    (void)glob_set_matches_path(set, path);
    glob_set_free(set);
}

static void match_rules(const char *text, size_t len, const char *path)
{
    struct ignore *above = ignore_new(NULL, "", text, len);
    struct ignore *below = ignore_new(above, "a/", text, len);

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        (void)ignore_matches(below, paths[i], false);
        (void)ignore_matches(above, paths[i], true);
    }
    (void)ignore_matches(below, path, true);
    ignore_free(below);
    ignore_free(above);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *newline = size > 0 ? memchr(text, '\n', size) : NULL;
    size_t first = newline ? (size_t)(newline - text) : size;
    const char *rest = newline ? newline + 1 : text + size;
    size_t rest_len = size - (size_t)(rest - text);
    const char *end = rest_len > 0 ? memchr(rest, '\n', rest_len) : NULL;
    cleanup_free char *path = xasprintf("%.*s", (int)(end ? end - rest : 0), rest);

    match_glob(text, first, path, false);
    match_glob(text, first, path, true);
    match_rules(rest, rest_len, path);
    return 0;
}
