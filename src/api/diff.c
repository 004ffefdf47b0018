// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/feed.h"
#include "wire/file_message.h"

/* Bytes of a patch in one message, which with base64 around them stay below an envelope's limit. */
enum { PATCH_PIECE = 512 * 1024 };

struct diff_feed {
    struct sandbox *sandbox;
    struct sandbox_diff what;
    char *from, *to; /* what `what` points to */
    char *path;      /* the same, or NULL */
    char *word;      /* the id or name of the request */
    struct feed *feed;
};

static const char *kind_name(enum diff_kind kind)
{
    switch (kind) {
    case DIFF_ADDED:
        return "added";
    case DIFF_MODIFIED:
        return "modified";
    case DIFF_DELETED:
        return "deleted";
    case DIFF_RENAMED:
        return "renamed";
    }
    return "";
}

static const char *type_name(char type)
{
    static const char letters[] = "fdlpscb";
    static const char *const names[] = {
        "file", "directory", "link", "pipe", "socket", "character-device", "block-device",
    };
    const char *at = type ? strchr(letters, type) : NULL;

    return at ? names[at - letters] : "";
}

static struct msg_diff_response entry_message(const struct diff_entry *entry,
                                              const struct diff_options *options)
{
    const char *old_path = entry->old_path ? entry->old_path : "";

    return (struct msg_diff_response){
        .kind = kind_name(entry->kind),
        .path = entry->path,
        .raw_path = path_raw(entry->path),
        .old_path = old_path,
        .raw_old_path = path_raw(old_path),
        .type = type_name(entry->type),
        .size = entry->size,
        .old_size = entry->old_size,
        .binary = entry->is_binary,
        .added_lines = entry->added_lines,
        .has_added_lines = options->wants_lines,
        .deleted_lines = entry->deleted_lines,
        .has_deleted_lines = options->wants_lines,
    };
}

/* What does not fit the first message follows in messages that have nothing else. */
static int entry_put(const struct diff_entry *entry, void *context)
{
    const struct diff_feed *diff = context;
    struct msg_diff_response message = entry_message(entry, &diff->what.options);
    size_t len = entry->patch ? entry->patch_len : 0, sent = len < PATCH_PIECE ? len : PATCH_PIECE;
    int r;

    if (len > 0)
        message.patch = (struct span){ entry->patch, sent };
    r = feed_put(diff->feed, SCHEMA_OF(msg_diff_response, &message), ENCODE_ALL);
    while (r == 0 && sent < len) {
        size_t piece = len - sent < PATCH_PIECE ? len - sent : PATCH_PIECE;

        r = feed_put(diff->feed,
                     MESSAGE(msg_diff_response, .patch = { entry->patch + sent, piece }),
                     ENCODE_SOME);
        sent += piece;
    }
    return r;
}

static int diff_run_feed(struct feed *feed, void *context, struct err *err)
{
    struct diff_feed *diff = context;
    int r;

    diff->feed = feed;
    r = sandbox_diff(diff->sandbox, &diff->what, entry_put, diff, err);
    if (r < 0)
        call_set_word(diff->sandbox, diff->word, err);
    return r;
}

static void diff_free(void *context)
{
    struct diff_feed *diff = context;

    sandbox_unref(diff->sandbox);
    if (diff->what.to_sandbox)
        sandbox_unref(diff->what.to_sandbox);
    free(diff->path);
    free(diff->from);
    free(diff->to);
    free(diff->word);
    free(diff);
}

static const struct feed_ops diff_ops = { diff_run_feed, diff_free };

/* Returns a side of the diff as the host names it, for the caller to free: NULL for the default, ""
 * for the template. */
static char *side_of(const char *name)
{
    if (*name == '\0')
        return NULL;
    return xstrdup(strcmp(name, SNAPSHOT_TEMPLATE) == 0 ? "" : name);
}

static int path_check(const char *path, struct err *err)
{
    if (*path == '\0' || *path == '/')
        return 0;
    return err_set(err, ERR_INVALID, "field 'path' must be an absolute path");
}

int snapshot_service_diff(const struct call *call, const struct msg_diff_request *request,
                          struct stream **ret, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(sandbox_unref_slot) struct sandbox *other = NULL;
    const char *path = path_of(request->path, &request->raw_path);
    struct diff_feed *diff;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0 && *request->to_sandbox_id)
        r = sandbox_find(call->host, call->caller, request->to_sandbox_id, &other, err);
    if (r == 0)
        r = path_check(path, err);
    if (r == 0 && request->codebase && (*request->from || *request->to_sandbox_id))
        r = err_set(err, ERR_INVALID,
                    "with field 'codebase', 'from' and 'toSandboxId' must be empty");
    if (r < 0)
        return r;
    diff = xcalloc(1, sizeof(*diff));
    diff->sandbox = TAKE_PTR(sandbox);
    diff->from = side_of(request->from);
    diff->to = side_of(request->to);
    diff->path = *path ? xstrdup(path) : NULL;
    diff->word = xstrdup(request->sandbox_id);
    diff->what = (struct sandbox_diff){
        .from = diff->from,
        .to = diff->to,
        .is_from_codebase = request->codebase,
        .options = { .wants_lines = request->lines,
                     .wants_patch = request->patch,
                     .path = diff->path },
        .to_sandbox = TAKE_PTR(other),
    };
    return feed_start(&diff_ops, diff, call->connection_fd, ret, err);
}
