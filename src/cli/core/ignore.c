// SPDX-License-Identifier: Apache-2.0
#include "cli/core/ignore.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum { PATTERNS_MAX = 4096, PARTS_MAX = 256 };

struct pattern {
    char *text;
    bool is_exception; /* !PATTERN */
};

struct ignore {
    struct pattern *items;
    size_t count;
    bool has_exception;
};

/* Takes a line without blanks, slashes and "." around it. */
static void line_take(struct ignore *ignore, const char *line, size_t len)
{
    bool is_exception;

    while (len > 0 && strchr(" \t\r", line[len - 1]))
        len--;
    while (len > 0 && strchr(" \t", *line)) {
        line++;
        len--;
    }
    if (len == 0 || *line == '#' || ignore->count == PATTERNS_MAX)
        return;
    is_exception = *line == '!';
    line += is_exception;
    len -= is_exception;
    while (len > 0 && (*line == '/' || (len > 1 && strncmp(line, "./", 2) == 0))) {
        size_t skipped = *line == '/' ? 1 : 2;

        line += skipped;
        len -= skipped;
    }
    while (len > 0 && line[len - 1] == '/')
        len--;
    if (len == 0 || (len == 1 && *line == '.'))
        return;
    ignore->items = xreallocarray(ignore->items, ignore->count + 1, sizeof(*ignore->items));
    ignore->items[ignore->count++] =
        (struct pattern){ xasprintf("%.*s", (int)len, line), is_exception };
    ignore->has_exception = ignore->has_exception || is_exception;
}

struct ignore *ignore_new(const char *text)
{
    struct ignore *ignore;

    if (!text)
        return NULL;
    ignore = xcalloc(1, sizeof(*ignore));
    while (*text) {
        size_t len = strcspn(text, "\n");

        line_take(ignore, text, len);
        text += len + (text[len] == '\n');
    }
    return ignore;
}

void ignore_free(struct ignore *ignore)
{
    if (!ignore)
        return;
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->items[i].text);
    free(ignore->items);
    free(ignore);
}

/* Copies the first component and returns what follows its slash; "" at the end. */
static const char *part_next(const char *path, char ret[NAME_MAX + 1])
{
    size_t len = strcspn(path, "/");

    (void)snprintf(ret, NAME_MAX + 1, "%.*s", (int)len, path);
    return path + len + (path[len] == '/');
}

/* Returns whether a pattern matches a whole path: "**" stands for any number of components. */
static bool pattern_matches(const char *pattern, const char *path, int depth)
{
    char wanted[NAME_MAX + 1], part[NAME_MAX + 1];

    while (*pattern && depth < PARTS_MAX) {
        const char *rest = part_next(pattern, wanted);

        if (strcmp(wanted, "**") == 0) {
            if (!*rest)
                return true;
            for (; *path; path = part_next(path, part))
                if (pattern_matches(rest, path, depth + 1))
                    return true;
            return false;
        }
        if (!*path)
            return false;
        path = part_next(path, part);
        if (fnmatch(wanted, part, 0) != 0)
            return false;
        pattern = rest;
        depth++;
    }
    return !*path;
}

/* Returns whether a pattern matches the path or a directory above it. */
static bool pattern_covers(const char *pattern, const char *path)
{
    cleanup_free char *copy = xstrdup(path);

    for (;;) {
        char *slash = strrchr(copy, '/');

        if (pattern_matches(pattern, copy, 0))
            return true;
        if (!slash)
            return false;
        *slash = '\0';
    }
}

bool ignore_has(const struct ignore *ignore, const char *path)
{
    for (size_t i = ignore ? ignore->count : 0; i > 0; i--)
        if (pattern_covers(ignore->items[i - 1].text, path))
            return !ignore->items[i - 1].is_exception;
    return false;
}

bool ignore_is_final(const struct ignore *ignore)
{
    return !ignore->has_exception;
}
