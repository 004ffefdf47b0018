// SPDX-License-Identifier: Apache-2.0
/* Calls about files that have one answer. */
#include "host/worker/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/file_ask.h"
#include "api/message/file_request.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "wire/file_json.h"

enum {
    LIST_BYTES = 4 * 1024 * 1024, /* of paths in one answer, which JSON makes longer */
    AFTER_MAX = 2 * (ENTRY_PATH_MAX + 1),
};

DEFINE_CLEANUP(file_call_close, struct file_call *);

static json_t *entry_at(struct file_entry entry, const char *path)
{
    char absolute[ENTRY_PATH_MAX + 1];

    if (file_call_request_absolute(path, absolute) == 0)
        entry.path = absolute;
    return file_json_of(&entry);
}

/* One request with one answer: an entry, or nothing. */
static int answer_one(const struct call *call, const json_t *message, enum file_message_type type,
                      json_t **ret_reply, struct err *err)
{
    cleanup_free struct file_call_request *wish = xcalloc(1, sizeof(*wish));
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(file_call_close_slot) struct file_call *files = NULL;
    struct file_answer answer = { .type = FILE_END };
    int r = file_call_request_parse(message, type, wish, err);

    if (r == 0)
        r = file_ask(call, wish, &sandbox, &files, err);
    if (r == 0)
        r = file_call_next(files, &answer, err);
    if (r < 0 || answer.type == FILE_END)
        return r;
    *ret_reply = json_pack("{s:o}", "entry",
                           entry_at(answer.entry, type == FILE_MOVE ? wish->to : wish->path));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int file_service_stat(const struct call *call, const json_t *request, json_t **ret_reply,
                      struct err *err)
{
    return answer_one(call, request, FILE_STAT, ret_reply, err);
}

int file_service_make_dir(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    return answer_one(call, request, FILE_MKDIR, ret_reply, err);
}

int file_service_move(const struct call *call, const json_t *request, json_t **ret_reply,
                      struct err *err)
{
    return answer_one(call, request, FILE_MOVE, ret_reply, err);
}

int file_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    return answer_one(call, request, FILE_REMOVE, ret_reply, err);
}

/* --- listing --------------------------------------------------------------------------------- */

struct listing {
    json_t *entries;
    char base[ENTRY_PATH_MAX + 1]; /* absolute, without a slash behind it */
    char last[ENTRY_PATH_MAX + 1]; /* of the last entry sent, relative to the base */
    size_t bytes;
};

static int listing_add(struct listing *listing, struct file_entry entry)
{
    char path[2 * ENTRY_PATH_MAX + 2];

    (void)snprintf(listing->last, sizeof(listing->last), "%s", entry.path);
    (void)snprintf(path, sizeof(path), "%s/%s", listing->base, entry.path);
    listing->bytes += strlen(path) + strlen(entry.target);
    entry.path = path;
    return json_array_append_new(listing->entries, file_json_of(&entry)) < 0 ? -ENOMEM : 0;
}

/* Entries that do not fit are left for the next call; the worker is then not read to its end. */
static int listing_fill(struct listing *listing, struct file_call *files, bool *ret_more,
                        struct err *err)
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
        if (listing->bytes > LIST_BYTES) {
            *ret_more = true;
            return 0;
        }
        r = listing_add(listing, answer.entry);
        if (r < 0)
            return err_sys(err, r, "write the reply");
    }
}

static int listing_reply(const struct listing *listing, bool has_more, json_t **ret_reply)
{
    cleanup_with(buf_done) struct buf after = BUF_INIT(AFTER_MAX);

    *ret_reply = json_pack("{s:O}", "entries", listing->entries);
    if (!*ret_reply || !has_more)
        return *ret_reply ? 0 : -ENOMEM;
    if (base64_encode(&after, listing->last, strlen(listing->last)) < 0)
        return -ENOMEM;
    return json_object_set_new(*ret_reply, "nextAfter", json_string(after.data)) < 0 ? -ENOMEM : 0;
}

static void listing_free(struct listing **listing)
{
    json_decref((*listing)->entries);
    free(*listing);
}

int file_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                      struct err *err)
{
    cleanup_free struct file_call_request *wish = xcalloc(1, sizeof(*wish));
    cleanup_with(listing_free) struct listing *listing = xcalloc(1, sizeof(*listing));
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(file_call_close_slot) struct file_call *files = NULL;
    bool has_more = false;
    int r = file_call_request_parse(request, FILE_LIST, wish, err);

    listing->entries = json_array();
    if (r == 0 && file_call_request_absolute(wish->path, listing->base) < 0)
        r = err_set(err, ERR_INVALID, "the path is too long");
    if (r == 0)
        r = file_ask(call, wish, &sandbox, &files, err);
    for (size_t len = strlen(listing->base); len > 0 && listing->base[len - 1] == '/'; len--)
        listing->base[len - 1] = '\0';
    if (r == 0)
        r = listing_fill(listing, files, &has_more, err);
    if (r < 0)
        return r;
    r = listing_reply(listing, has_more, ret_reply);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}
