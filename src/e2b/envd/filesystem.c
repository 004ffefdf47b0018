// SPDX-License-Identifier: Apache-2.0
/* filesystem.Filesystem of E2B's envd, but for watching. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/file.h"
#include "e2b/envd/watch.h"
#include "e2b/envd/watcher.h"
#include "host/worker/file.h"
#include "http/reply.h"

enum {
    LIST_MAX = 200 * 1000, /* entries of one answer */
    ENTRY_BYTES = 512,     /* of one entry, besides its path */
};

static int entry_reply(const struct file_entry *entry, json_t **ret_reply)
{
    *ret_reply = json_pack("{s:o}", "entry", e2b_entry_json(entry->path, entry));
    return *ret_reply ? 0 : -ENOMEM;
}

static int stat_path(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_STAT };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_path(request, "path", &wish.path, err);

    if (r == 0)
        r = e2b_files_open(request, false, &files, err);
    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, ret_reply);
}

/* Refuses to overwrite an existing path. */
static int refuse_taken(struct e2b_files *files, const char *path, struct err *err)
{
    struct file_request wish = { .type = FILE_STAT, .path = path, .flags = FILE_FOLLOW };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_ask_one(files, &wish, &entry, err);

    if (r < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : r;
    if (entry.type == ENTRY_DIRECTORY)
        return err_set(err, ERR_EXISTS, "directory already exists: %.180s", entry.path);
    return err_set(err, ERR_INVALID, "path already exists but it is not a directory: %.150s",
                   entry.path);
}

static int make_dir(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_MKDIR, .flags = FILE_PARENTS };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_path(request, "path", &wish.path, err);

    if (r == 0)
        r = e2b_files_open(request, false, &files, err);
    if (r == 0)
        r = refuse_taken(&files, wish.path, err);
    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, ret_reply);
}

static int move(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_MOVE, .flags = FILE_PARENTS | FILE_REPLACE };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_path(request, "source", &wish.path, err);

    if (r == 0)
        r = e2b_files_path(request, "destination", &wish.to, err);
    if (r == 0)
        r = e2b_files_open(request, false, &files, err);
    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, ret_reply);
}

static int remove_path(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_REMOVE, .flags = FILE_RECURSIVE | FILE_MISSING_OK };
    struct file_answer answer;
    int r = e2b_files_path(request, "path", &wish.path, err);

    (void)ret_reply;
    if (r == 0)
        r = e2b_files_open(request, false, &files, err);
    if (r == 0)
        r = e2b_files_ask(&files, &wish, err);
    if (r < 0)
        return r;
    return e2b_files_explain(&files, file_call_next(files.call, &answer, err), err);
}

/* --- listing ---------------------------------------------------------------------------------- */

static int list_add(json_t *entries, const char *top, const struct file_entry *entry)
{
    cleanup_free char *path = xasprintf("%s/%s", top[1] ? top : "", entry->path);

    return json_array_append_new(entries, e2b_entry_json(path, entry)) < 0 ? -ENOMEM : 0;
}

/* The first entry is the directory itself. */
static int list_top(struct e2b_files *files, char ret[ENTRY_PATH_MAX + 1], struct err *err)
{
    struct file_answer answer = { 0 };
    int r = file_call_next(files->call, &answer, err);

    if (r < 0)
        return e2b_files_explain(files, r, err);
    if (answer.type != FILE_ENTRY)
        return err_set(err, ERR_INTERNAL, "the sandbox lists nothing");
    (void)snprintf(ret, ENTRY_PATH_MAX + 1, "%s", answer.entry.path);
    return 0;
}

static int list_fill(struct e2b_files *files, json_t *entries, struct err *err)
{
    char top[ENTRY_PATH_MAX + 1] = "";
    size_t bytes = 0;
    int r = list_top(files, top, err);

    while (r == 0) {
        struct file_answer answer = { 0 };

        r = file_call_next(files->call, &answer, err);
        if (r == 0 && answer.number == 0)
            return 0;
        if (r < 0)
            return e2b_files_explain(files, r, err);
        bytes += ENTRY_BYTES + strlen(top) + 2 * strlen(answer.entry.path ? answer.entry.path : "");
        if (r == 0 || bytes > REPLY_MAX)
            return err_set(err, ERR_EXHAUSTED, "there are too many entries for one answer");
        r = list_add(entries, top, &answer.entry);
        if (r < 0)
            return err_sys(err, r, "write the reply");
    }
    return r;
}

static int list_dir(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    cleanup_json json_t *entries = json_array();
    struct file_request wish = { .type = FILE_LIST, .limit = LIST_MAX };
    int r = json_get_u32(request->body, "depth", &wish.depth, err);

    if (r == 0)
        r = e2b_files_path(request, "path", &wish.path, err);
    if (r == 0)
        r = e2b_files_open(request, false, &files, err);
    if (r == 0)
        r = e2b_files_ask(&files, &wish, err);
    if (r == 0)
        r = list_fill(&files, entries, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:O}", "entries", entries);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

#define FILESYSTEM "/filesystem.Filesystem/"

static const struct e2b_route routes[] = {
    { "POST", FILESYSTEM "Stat", .unary = stat_path },
    { "POST", FILESYSTEM "MakeDir", .unary = make_dir },
    { "POST", FILESYSTEM "Move", .unary = move },
    { "POST", FILESYSTEM "ListDir", .unary = list_dir },
    { "POST", FILESYSTEM "Remove", .unary = remove_path },
    { "POST", FILESYSTEM "WatchDir", .stream = e2b_watch },
    { "POST", FILESYSTEM "CreateWatcher", .unary = e2b_watcher_create },
    { "POST", FILESYSTEM "GetWatcherEvents", .unary = e2b_watcher_events },
    { "POST", FILESYSTEM "RemoveWatcher", .unary = e2b_watcher_remove },
};

const struct e2b_routes e2b_filesystem_routes = { routes, ARRAY_SIZE(routes) };
