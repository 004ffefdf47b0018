// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/sandbox_request.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/feed.h"

/* Bytes of a patch in one message, which with base64 around them stay below an envelope's limit. */
enum { PATCH_PIECE = 512 * 1024, PATCH_TEXT_MAX = 2 * PATCH_PIECE };

struct diff_feed {
    struct sandbox *sandbox;
    struct sandbox_diff what;
    char *from, *to; /* what `what` points to */
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

static json_t *bytes_json(const char *data, size_t len)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PATCH_TEXT_MAX);

    return base64_encode(&text, data, len) < 0 || !text.data ? NULL : json_string(text.data);
}

/* A name can be any bytes; one that is not UTF-8 is also sent exactly, as bytes. */
static void path_add(json_t *message, const char *field, const char *raw_field, const char *path)
{
    json_t *exact = json_string(path);

    if (!exact)
        (void)json_object_set_new(message, raw_field, bytes_json(path, strlen(path)));
    (void)json_object_set_new(message, field, exact ? exact : json_text(path));
}

static json_t *entry_json(const struct diff_entry *entry, const struct diff_options *options)
{
    json_t *message = json_pack("{s:s}", "kind", kind_name(entry->kind));

    path_add(message, "path", "rawPath", entry->path);
    if (entry->old_path)
        path_add(message, "oldPath", "rawOldPath", entry->old_path);
    (void)json_object_set_new(message, "type", json_string(type_name(entry->type)));
    (void)json_object_set_new(message, "size", json_u64(entry->size));
    (void)json_object_set_new(message, "oldSize", json_u64(entry->old_size));
    (void)json_object_set_new(message, "binary", json_boolean(entry->is_binary));
    if (options->wants_lines) {
        (void)json_object_set_new(message, "addedLines", json_u64(entry->added_lines));
        (void)json_object_set_new(message, "deletedLines", json_u64(entry->deleted_lines));
    }
    return message;
}

/* What does not fit the first message follows in messages that have nothing else. */
static int entry_put(const struct diff_entry *entry, void *context)
{
    const struct diff_feed *diff = context;
    json_t *message = entry_json(entry, &diff->what.options);
    size_t sent = 0;

    while (entry->patch && entry->patch_len - sent > 0) {
        size_t len = entry->patch_len - sent < PATCH_PIECE ? entry->patch_len - sent : PATCH_PIECE;
        int r;

        (void)json_object_set_new(message, "patch", bytes_json(entry->patch + sent, len));
        sent += len;
        if (sent == entry->patch_len)
            break;
        r = feed_put(diff->feed, message);
        if (r < 0)
            return r;
        message = json_object();
    }
    return feed_put(diff->feed, message);
}

static int diff_run_feed(struct feed *feed, void *context, struct err *err)
{
    struct diff_feed *diff = context;

    diff->feed = feed;
    return sandbox_diff(diff->sandbox, &diff->what, entry_put, diff, err);
}

static void diff_free(void *context)
{
    struct diff_feed *diff = context;

    sandbox_unref(diff->sandbox);
    free(diff->from);
    free(diff->to);
    free(diff);
}

static const struct feed_ops diff_ops = { diff_run_feed, diff_free };

int snapshot_service_diff(const struct call *call, const json_t *request, struct stream **ret,
                          struct err *err)
{
    struct diff_request wanted = { 0 };
    struct sandbox *sandbox = NULL;
    struct diff_feed *diff;
    int r = diff_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.sandbox, &sandbox, err);
    if (r < 0)
        return r;
    diff = xcalloc(1, sizeof(*diff));
    diff->sandbox = sandbox;
    diff->from = wanted.what.from ? xstrdup(wanted.what.from) : NULL;
    diff->to = wanted.what.to ? xstrdup(wanted.what.to) : NULL;
    diff->what = (struct sandbox_diff){ diff->from, diff->to, wanted.what.options };
    return feed_start(&diff_ops, diff, call->connection_fd, ret, err);
}
