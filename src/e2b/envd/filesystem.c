// SPDX-License-Identifier: Apache-2.0
/* filesystem.Filesystem of E2B's envd, but for watching. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/file.h"
#include "e2b/envd/methods.h"
#include "host/worker/file.h"
#include "http/reply.h"

enum {
    LIST_MAX = 200 * 1000, /* entries of one answer */
    ENTRY_BYTES = 512,     /* of one entry, besides its path */
};

/* Appends a message with one field, "entry": those of Stat, MakeDir and Move are alike. */
static int entry_reply(const struct file_entry *entry, struct buf *out, struct err *err)
{
    cleanup_with(e2b_entry_done) struct e2b_entry described = { .metadata = NULL };

    e2b_entry_init(&described, entry->path, entry);
    return envd_reply(out, MESSAGE(envd_stat_response, .entry = &described.info), err);
}

int envd_filesystem_stat(struct e2b_request *request, const struct envd_stat_request *message,
                         struct buf *out, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_STAT, .path = e2b_files_path(message->path) };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_open(request, false, &files, err);

    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, out, err);
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

int envd_filesystem_make_dir(struct e2b_request *request,
                             const struct envd_make_dir_request *message, struct buf *out,
                             struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_MKDIR,
                                 .path = e2b_files_path(message->path),
                                 .flags = FILE_PARENTS };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_open(request, false, &files, err);

    if (r == 0)
        r = refuse_taken(&files, wish.path, err);
    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, out, err);
}

int envd_filesystem_move(struct e2b_request *request, const struct envd_move_request *message,
                         struct buf *out, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_MOVE,
                                 .path = e2b_files_path(message->source),
                                 .to = e2b_files_path(message->destination),
                                 .flags = FILE_PARENTS | FILE_REPLACE };
    struct file_entry entry = { .path = "" };
    int r = e2b_files_open(request, false, &files, err);

    if (r == 0)
        r = e2b_files_ask_one(&files, &wish, &entry, err);
    return r < 0 ? r : entry_reply(&entry, out, err);
}

int envd_filesystem_remove(struct e2b_request *request, const struct envd_remove_request *message,
                           struct buf *out, struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_REMOVE,
                                 .path = e2b_files_path(message->path),
                                 .flags = FILE_RECURSIVE | FILE_MISSING_OK };
    struct file_answer answer;
    int r = e2b_files_open(request, false, &files, err);

    (void)out;
    if (r == 0)
        r = e2b_files_ask(&files, &wish, err);
    if (r < 0)
        return r;
    return e2b_files_explain(&files, file_call_next(files.call, &answer, err), err);
}

/* --- listing ---------------------------------------------------------------------------------- */

static int list_add(struct list_encoder *entries, const char *top, const struct file_entry *entry)
{
    cleanup_free char *path = xasprintf("%s/%s", top[1] ? top : "", entry->path);
    cleanup_with(e2b_entry_done) struct e2b_entry described = { .metadata = NULL };

    e2b_entry_init(&described, path, entry);
    return list_encoder_add(entries, &described.info);
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

static int list_fill(struct e2b_files *files, struct list_encoder *entries, struct err *err)
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

int envd_filesystem_list_dir(struct e2b_request *request,
                             const struct envd_list_dir_request *message, struct buf *out,
                             struct err *err)
{
    cleanup_with(e2b_files_close) struct e2b_files files = { .call = NULL };
    struct file_request wish = { .type = FILE_LIST,
                                 .path = e2b_files_path(message->path),
                                 .depth = message->depth,
                                 .limit = LIST_MAX };
    struct list_encoder entries;
    int r = e2b_files_open(request, false, &files, err);

    if (r == 0)
        r = e2b_files_ask(&files, &wish, err);
    if (r < 0)
        return r;
    if (list_encoder_begin(&entries, &envd_list_dir_response_schema, out) < 0)
        return err_sys(err, -ENOMEM, "write the reply");
    r = list_fill(&files, &entries, err);
    if (r == 0 && list_encoder_end(&entries) < 0)
        return err_sys(err, -ENOMEM, "write the reply");
    return r;
}
