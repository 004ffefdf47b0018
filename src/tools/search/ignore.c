// SPDX-License-Identifier: Apache-2.0
#include "tools/search/ignore.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "tools/search/wildcard.h"

enum {
    RULES_MAX = 65536,
    FILE_MAX = 4 * 1024 * 1024,
};

struct part {
    struct wildcard wildcard;
    bool is_any; /* ** */
};

struct rule {
    struct part *parts;
    size_t part_count;
    bool is_negated;
    bool is_for_dirs;
    bool is_anchored; /* matches the path relative to the file, otherwise any name below it */
};

struct ignore {
    const struct ignore *parent;
    char *base;
    size_t base_len;
    struct rule *rules;
    size_t rule_count;
};

/* Returns the length without trailing unescaped spaces. */
static size_t trimmed_length(const char *line, size_t len)
{
    size_t ret = 0;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\\' && i + 1 < len)
            ret = ++i + 1;
        else if (line[i] != ' ')
            ret = i + 1;
    }
    return ret;
}

static void rule_add_part(struct rule *rule, const char *text, size_t len)
{
    struct part *part = &rule->parts[rule->part_count];
    bool is_any = len == 2 && memcmp(text, "**", 2) == 0;

    if (is_any && rule->part_count > 0 && part[-1].is_any)
        return;
    part->is_any = is_any;
    wildcard_init(&part->wildcard, WILDCARD_GIT, text, len);
    rule->part_count++;
}

static bool rule_parse(const char *line, size_t len, struct rule *ret)
{
    size_t slashes = 0, start = 0;

    *ret = (struct rule){ 0 };
    if (len > 0 && line[0] == '!') {
        ret->is_negated = true;
        line++;
        len--;
    }
    if (len > 0 && line[len - 1] == '/') {
        ret->is_for_dirs = true;
        len--;
    }
    for (size_t i = 0; i < len; i++)
        slashes += line[i] == '/';
    ret->is_anchored = slashes > 0;
    if (len > 0 && line[0] == '/') {
        line++;
        len--;
    }
    if (len == 0)
        return false;
    ret->parts = xcalloc(slashes + 1, sizeof(*ret->parts));
    for (size_t i = 0; i <= len; i++) {
        size_t bracket = i < len && line[i] == '[' ? wildcard_bracket(line + i, len - i) : 0;

        if (bracket > 0) {
            i += bracket - 1; /* a slash in it separates no names */
        } else if (i < len && line[i] == '\\') {
            i += i + 1 < len && line[i + 1] != '/';
        } else if (i == len || line[i] == '/') {
            rule_add_part(ret, line + start, i - start);
            start = i + 1;
        }
    }
    if (!ret->is_anchored)
        ret->parts[0].is_any = false; /* a single ** is the same as * */
    return true;
}

static void rule_done(struct rule *rule)
{
    for (size_t i = 0; i < rule->part_count; i++)
        wildcard_done(&rule->parts[i].wildcard);
    free(rule->parts);
}

static void ignore_parse_line(struct ignore *ignore, const char *line, size_t len)
{
    size_t size = len > 0 && line[len - 1] == '\r' ? len - 1 : len;

    size = trimmed_length(line, size);
    if (size == 0 || line[0] == '#' || memchr(line, '\0', size) || ignore->rule_count == RULES_MAX)
        return;
    if (rule_parse(line, size, &ignore->rules[ignore->rule_count]))
        ignore->rule_count++;
}

static size_t count_lines(const char *text, size_t len)
{
    size_t ret = 1;

    for (size_t i = 0; i < len; i++)
        ret += text[i] == '\n';
    return ret < RULES_MAX ? ret : RULES_MAX;
}

struct ignore *ignore_new(const struct ignore *parent, const char *base, const char *text,
                          size_t len)
{
    struct ignore *ignore = xcalloc(1, sizeof(*ignore));
    static const char mark[] = "\xef\xbb\xbf";

    ignore->parent = parent;
    ignore->base = xstrdup(base);
    ignore->base_len = strlen(base);
    ignore->rules = xcalloc(count_lines(text, len), sizeof(*ignore->rules));
    if (len >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        len -= 3;
    }
    for (size_t start = 0; start < len;) {
        const char *end = memchr(text + start, '\n', len - start);
        size_t size = end ? (size_t)(end - text) - start : len - start;

        ignore_parse_line(ignore, text + start, size);
        start += size + 1;
    }
    return ignore;
}

void ignore_free(struct ignore *ignore)
{
    if (!ignore)
        return;
    for (size_t i = 0; i < ignore->rule_count; i++)
        rule_done(&ignore->rules[i]);
    free(ignore->rules);
    free(ignore->base);
    free(ignore);
}

struct ignore *ignore_parent(const struct ignore *ignore)
{
    return (struct ignore *)(uintptr_t)ignore->parent;
}

/* Backtracks only to the last **, as wildcard_matches does with *. */
static bool rule_matches_path(const struct rule *rule, const char *path)
{
    const char *at = path, *star_at = NULL;
    size_t i = 0, star = 0;

    while (*at) {
        size_t len = strcspn(at, "/");
        const char *next = at + len + (at[len] == '/');

        if (i < rule->part_count && rule->parts[i].is_any) {
            star = ++i;
            star_at = at;
            if (i == rule->part_count)
                return true;
            continue;
        }
        if (i < rule->part_count && wildcard_matches(&rule->parts[i].wildcard, at, len)) {
            i++;
            at = next;
            continue;
        }
        if (!star_at)
            return false;
        star_at += strcspn(star_at, "/");
        star_at += *star_at == '/';
        at = star_at;
        i = star;
    }
    return i == rule->part_count;
}

static bool rule_matches(const struct rule *rule, const char *path, const char *name, bool is_dir)
{
    if (rule->is_for_dirs && !is_dir)
        return false;
    if (rule->is_anchored)
        return rule_matches_path(rule, path);
    return wildcard_matches(&rule->parts[0].wildcard, name, strlen(name));
}

bool ignore_matches(const struct ignore *ignore, const char *path, bool is_dir)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (; ignore; ignore = ignore->parent) {
        if (strncmp(path, ignore->base, ignore->base_len) != 0)
            continue;
        for (size_t i = ignore->rule_count; i > 0; i--)
            if (rule_matches(&ignore->rules[i - 1], path + ignore->base_len, name, is_dir))
                return !ignore->rules[i - 1].is_negated;
    }
    return false;
}

/* Returns the length of the root of the repository in an absolute path; 0 outside of one. */
static size_t repository_root(const char *path)
{
    for (size_t len = strlen(path); len > 0; len--) {
        cleanup_free char *git = NULL;

        if (path[len] != '/' && path[len] != '\0')
            continue;
        git = xasprintf("%.*s/.git", (int)len, path);
        if (faccessat(AT_FDCWD, git, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return len;
    }
    return 0;
}

struct ignore *ignore_read(const struct ignore *parent, const char *base, int dir_fd,
                           const char *file)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_MAX);
    /* O_NONBLOCK because of pipes; git does not follow links here either. */
    cleanup_close int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX ||
        buf_reserve(&text, (size_t)st.st_size) < 0)
        return NULL;
    n = read_full(fd, text.data, (size_t)st.st_size);
    return n > 0 ? ignore_new(parent, base, text.data, (size_t)n) : NULL;
}

/* Adds the rules of a file to the chain, if it exists. */
static struct ignore *ignore_add_file(struct ignore *chain, const char *base, const char *file)
{
    struct ignore *link = ignore_read(chain, base, AT_FDCWD, file);

    return link ? link : chain;
}

struct ignore *ignore_of_repository(const char *path, char **ret_prefix)
{
    cleanup_free char *whole = realpath(path, NULL);
    size_t root = whole ? repository_root(whole) : 0;
    struct ignore *chain = NULL;

    *ret_prefix = NULL;
    if (root == 0)
        return NULL;
    {
        cleanup_free char *file = xasprintf("%.*s/.git/info/exclude", (int)root, whole);

        chain = ignore_add_file(chain, "", file);
    }
    /* Without the directory itself, whose file the walk reads. */
    for (size_t at = root; whole[at] == '/'; at += 1 + strcspn(whole + at + 1, "/")) {
        cleanup_free char *file = xasprintf("%.*s/.gitignore", (int)at, whole);
        cleanup_free char *base =
            at == root ? xstrdup("") : xasprintf("%.*s/", (int)(at - root - 1), whole + root + 1);

        chain = ignore_add_file(chain, base, file);
    }
    *ret_prefix = whole[root] == '\0' ? xstrdup("") : xasprintf("%s/", whole + root + 1);
    return chain;
}
