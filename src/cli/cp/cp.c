// SPDX-License-Identifier: Apache-2.0
#include "cli/cp/cp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "holt.h"

enum { LINKS_MAX = 40 }; /* as the kernel's */

struct cp_options {
    struct common_options common;
    bool keeps_owner, follows_link;
};

static const struct option_row rows[] = {
    { "archive", 'a', NULL, "keep owners (numeric) and set-uid bits",
      OPTION_FLAG(struct cp_options, keeps_owner) },
    { "follow-link", 'L', NULL, "follow SOURCE if it is a symbolic link",
      OPTION_FLAG(struct cp_options, follows_link) },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Parses "ID:PATH"; a text that begins as a path or has a slash before the colon is local. */
static bool place_parse(const char *text, struct cp_place *ret)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
    size_t len = colon ? (size_t)(colon - text) : 0;

    *ret = (struct cp_place){ .text = text, .path = text, .is_stream = strcmp(text, "-") == 0 };
    if (!colon || len == 0 || text[0] == '.' || (slash && slash < colon))
        return true;
    if (len >= sizeof(ret->id))
        return false;
    memcpy(ret->id, text, len);
    ret->sandbox = ret->id;
    ret->path = colon[1] ? colon + 1 : ".";
    return true;
}

static bool ends_with_slash(const char *path)
{
    size_t len = strlen(path);

    return len > 0 && path[len - 1] == '/';
}

/* Returns whether a path names the contents of a directory ("dir/." or ".") rather than the
 * directory. */
static bool means_contents(const char *path)
{
    size_t len = strlen(path);

    return strcmp(path, ".") == 0 || (len >= 2 && strcmp(path + len - 2, "/.") == 0);
}

/* Splits a path into directory and name. Returns false if it has no name. */
static bool split(const char *path, char into[PATH_MAX], char name[NAME_MAX + 1])
{
    size_t len = strlen(path), start;

    while (len > 1 && path[len - 1] == '/')
        len--;
    start = len;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (start == len || len - start > NAME_MAX || start >= PATH_MAX)
        return false;
    memcpy(name, path + start, len - start);
    name[len - start] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    memcpy(into, path, start);
    into[start] = '\0';
    if (start == 0)
        memcpy(into, ".", 2);
    return true;
}

static int aim_into(struct cp *cp, bool is_source_directory)
{
    char ignored[PATH_MAX];

    if (snprintf(cp->into, sizeof(cp->into), "%s", cp->to.path) >= (int)sizeof(cp->into))
        return report_usage("'%s' is too long", cp->to.text);
    cp->name[0] = '\0';
    if (is_source_directory && means_contents(cp->from.path))
        return 0;
    if (!split(cp->from.path, ignored, cp->name))
        return report_usage("'%s' has no file name to use in '%s'", cp->from.text, cp->to.text);
    return 0;
}

int cp_aim(struct cp *cp, bool is_source_directory, const struct cp_target *target)
{
    if (target->exists && target->is_directory)
        return aim_into(cp, is_source_directory);
    if (target->exists && is_source_directory)
        return report_usage("'%s' is a directory, but '%s' is not", cp->from.text, cp->to.text);
    if (ends_with_slash(cp->to.path) && !is_source_directory)
        return report_usage("'%s' is not a directory", cp->to.text);
    if (!split(cp->to.path, cp->into, cp->name))
        return report_usage("'%s' cannot be copied to '%s'", cp->from.text, cp->to.text);
    return 0;
}

int cp_entry_path(const struct cp *cp, const char *path, char ret[ENTRY_PATH_MAX + 1])
{
    int len = snprintf(ret, ENTRY_PATH_MAX + 1, "%s%s%s", cp->name,
                       cp->name[0] && path[0] ? "/" : "", path);

    return len > ENTRY_PATH_MAX ? -1 : 0;
}

void cp_trouble(struct cp *cp, const char *path, const char *why)
{
    cp->troubles++;
    progress_end(&cp->progress); /* ends the progress line first */
    (void)report("'%s' is left out: %s", path[0] ? path : cp->from.text, why);
}

void cp_moved(struct cp *cp, size_t bytes)
{
    progress_add(&cp->progress, bytes);
}

int cp_stat_remote(struct holt *holt, const struct cp_place *place, bool follows,
                   struct file_entry *ret, struct holt_error *error)
{
    const struct tree_place at = { .sandbox = place->sandbox,
                                   .path = place->path,
                                   .follows_link = follows };

    ret->type = ENTRY_NONE;
    if (tree_stat(holt, &at, ret, error) == 0)
        return 0;
    return strcmp(error->cause, "FileNotFound") == 0 ? 0 : -1;
}

/* Stores the path that a link at `path` with this target leads to. */
static int link_resolve(const char *path, const char *target, char ret[PATH_MAX])
{
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    int len = snprintf(ret, PATH_MAX, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, target);

    return len >= PATH_MAX ? -1 : 0;
}

int cp_follow_remote(struct cp *cp, struct holt *holt)
{
    char target[ENTRY_PATH_MAX + 1], path[PATH_MAX];

    for (int i = 0; i < LINKS_MAX; i++) {
        const struct tree_place at = { .sandbox = cp->to.sandbox, .path = cp->to.path };
        struct holt_error error;

        if (tree_read_link(holt, &at, target, &error) < 0)
            return report_holt_error(&error);
        if (!target[0])
            return 0;
        if (link_resolve(cp->to.path, target, path) < 0)
            return report_usage("'%s' is too long", cp->to.text);
        memcpy(cp->followed, path, strlen(path) + 1);
        cp->to.path = cp->followed;
    }
    return report("'%s' has too many levels of symbolic links", cp->to.text);
}

static int cp_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "a SOURCE and a DESTINATION" };
    struct cp_options options = { .keeps_owner = false };
    struct cp cp = { .troubles = 0 };
    int next, status;

    if (!command_parse(&command_cp, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_cp, &operands, argc - next))
        return STATUS_HOLT;
    if (!place_parse(argv[next], &cp.from) || !place_parse(argv[next + 1], &cp.to))
        return command_misused(&command_cp, "cannot read the name of a sandbox");
    if (!cp.from.sandbox && !cp.to.sandbox)
        return command_misused(&command_cp, "needs a sandbox on one side, as ID:PATH");
    cp.keeps_owner = options.keeps_owner;
    cp.follows_link = options.follows_link || cp.to.is_stream || ends_with_slash(cp.from.path);
    progress_begin(&cp.progress, cp.from.text, 0);
    if (!cp.from.sandbox)
        status = cp_up(&cp);
    else
        status = cp.to.sandbox ? cp_across(&cp) : cp_down(&cp);
    progress_end(&cp.progress);
    return status == 0 && cp.troubles > 0 ? 1 : status;
}

const struct command command_cp = {
    .group = "Sandboxes",
    .name = "cp",
    .operands = "SOURCE DESTINATION",
    .summary = "Copy files and trees into or out of a sandbox (ID:PATH)",
    .example = "holt cp work:/workspace/out .\n"
               "holt cp work:/workspace/src - | tar tf -    # '-' is standard input or output",
    .options = &table,
    .run = cp_run,
};
