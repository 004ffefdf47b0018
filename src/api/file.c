// SPDX-License-Identifier: Apache-2.0
/* Calls about files that have one answer. */
#include "host/worker/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/file_ask.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"
#include "wire/file_message.h"

enum {
    LIST_BYTES = 4 * 1024 * 1024, /* of paths in one answer, which JSON makes longer */
    LIST_MAX = 10000,
};

static void call_close_slot(struct file_call **call)
{
    file_call_close(*call);
}

/* Replies with the entry, with the absolute path of the request. */
static int entry_reply(const struct call *call, struct file_entry entry, const char *path,
                       struct err *err)
{
    char absolute[ENTRY_PATH_MAX + 1];
    struct msg_file_entry message;
    struct err ignored;

    if (file_ask_absolute(path, absolute, &ignored) == 0)
        entry.path = absolute;
    message = file_entry_message(&entry);
    return call_reply(call, MESSAGE(msg_stat_file_response, .entry = &message), err);
}

/* One request with one answer: an entry, or nothing. */
static int answer_one(const struct call *call, const struct file_ask *ask, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(call_close_slot) struct file_call *files = NULL;
    struct file_answer answer = { .type = FILE_END };
    const char *path = ask->request.type == FILE_MOVE ? ask->request.to : ask->request.path;
    int r = file_ask_send(call, ask, &sandbox, &files, err);

    if (r == 0)
        r = file_call_next(files, &answer, err);
    return r < 0 || answer.type == FILE_END ? r : entry_reply(call, answer.entry, path, err);
}

int file_service_stat(const struct call *call, const struct msg_stat_file_request *request,
                      struct err *err)
{
    const struct file_ask ask =
        FILE_ASK(request, .type = FILE_STAT, .flags = FILE_FLAG(request->follow, FILE_FOLLOW));

    return answer_one(call, &ask, err);
}

int file_service_make_dir(const struct call *call, const struct msg_make_dir_request *request,
                          struct err *err)
{
    const struct file_ask ask = FILE_ASK(request, .type = FILE_MKDIR, .mode = request->mode,
                                         .flags = FILE_FLAG(request->parents, FILE_PARENTS) |
                                                  FILE_FLAG(request->has_mode, FILE_HAS_MODE));

    return answer_one(call, &ask, err);
}

int file_service_move(const struct call *call, const struct msg_move_file_request *request,
                      struct err *err)
{
    struct file_ask ask = FILE_ASK(request, .type = FILE_MOVE,
                                   .flags = FILE_FLAG(request->replace, FILE_REPLACE) |
                                            FILE_FLAG(request->parents, FILE_PARENTS));

    ask.request.to = path_of(request->to, &request->raw_to);
    return answer_one(call, &ask, err);
}

int file_service_remove(const struct call *call, const struct msg_remove_file_request *request,
                        struct err *err)
{
    const struct file_ask ask = FILE_ASK(request, .type = FILE_REMOVE,
                                         .flags = FILE_FLAG(request->recursive, FILE_RECURSIVE) |
                                                  FILE_FLAG(request->missing_ok, FILE_MISSING_OK));

    return answer_one(call, &ask, err);
}

/* --- listing --------------------------------------------------------------------------------- */

struct listing {
    struct arena *arena;
    struct msg_file_entry *entries; /* capacity for the requested number */
    size_t count;
    size_t bytes;
    const char *last;              /* path of the last entry, relative to the base */
    char base[ENTRY_PATH_MAX + 1]; /* absolute, without a slash at the end */
};

/* Copies the texts: the answer is valid only until the next one. */
static void listing_add(struct listing *listing, struct file_entry entry)
{
    size_t base_len = strlen(listing->base), size = base_len + strlen(entry.path) + 2;
    char *path = arena_take(listing->arena, size, 1);

    (void)snprintf(path, size, "%s/%s", listing->base, entry.path);
    listing->last = path + base_len + 1;
    listing->bytes += strlen(path) + strlen(entry.target);
    entry.path = path;
    entry.target = arena_copy_text(listing->arena, entry.target);
    entry.user_name = arena_copy_text(listing->arena, entry.user_name);
    entry.group_name = arena_copy_text(listing->arena, entry.group_name);
    entry.same_as = "";
    listing->entries[listing->count++] = file_entry_message(&entry);
}

/* Entries that do not fit are left for the next call; the worker is then not read to its end. */
static int listing_fill(struct listing *listing, size_t limit, struct file_call *files,
                        bool *ret_more, struct err *err)
{
    for (;;) {
        struct file_answer answer;
        int r = file_call_next(files, &answer, err);

        if (r < 0)
            return r;
        if (r == 0) {
            *ret_more = answer.number == 1;
            return 0;
        }
        if (listing->bytes > LIST_BYTES || listing->count == limit) {
            *ret_more = true;
            return 0;
        }
        listing_add(listing, answer.entry);
    }
}

static int listing_reply(const struct call *call, const struct listing *listing, bool has_more,
                         struct err *err)
{
    struct span after = { .data = NULL };

    if (has_more && listing->last)
        after = (struct span){ listing->last, strlen(listing->last) };
    return call_reply(call,
                      MESSAGE(msg_list_files_response, .entries = listing->entries,
                              .entries_count = listing->count, .next_after = after),
                      err);
}

static void slashes_cut(char *path)
{
    for (size_t len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
}

int file_service_list(const struct call *call, const struct msg_list_files_request *request,
                      struct err *err)
{
    uint32_t limit = request->limit == 0 || request->limit > LIST_MAX ? LIST_MAX : request->limit;
    struct file_ask ask =
        FILE_ASK(request, .type = FILE_LIST, .depth = request->depth, .limit = limit);
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(call_close_slot) struct file_call *files = NULL;
    struct listing listing = { .arena = call->arena };
    bool has_more = false;
    int r = file_ask_absolute(ask.request.path, listing.base, err);

    ask.request.after = request->after.len > 0 ? request->after.data : "";
    if (r == 0)
        r = file_ask_send(call, &ask, &sandbox, &files, err);
    if (r < 0)
        return r;
    slashes_cut(listing.base);
    listing.entries = arena_take(call->arena, limit, sizeof(*listing.entries));
    r = listing_fill(&listing, limit, files, &has_more, err);
    return r < 0 ? r : listing_reply(call, &listing, has_more, err);
}
