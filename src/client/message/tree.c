// SPDX-License-Identifier: Apache-2.0
#include "client/message/tree.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"
#include "wire/file_message.h"

enum { GATHER = 64 * 1024 }; /* bytes of small files that are sent together */

struct tree_pull {
    struct holt_stream *stream;
    void *latest; /* a result: the message of the latest entry */
};

struct tree_push {
    struct holt_stream *stream;
    struct holt_input *input;
    struct buf small; /* bytes of the current file that were not sent yet */
};

static int no_memory(struct holt_error *error)
{
    return error_set(error, "resource_exhausted", "no memory for a message");
}

/* Fills an entry in, which points into the message. */
static int entry_fill(struct file_entry *entry, const struct msg_file_entry *message,
                      struct holt_error *error)
{
    struct err err;

    if (!message)
        return reply_lacks("entry", error);
    if (file_entry_of(message, entry, &err) < 0 || entry->mode > 07777 ||
        strlen(entry->path) > ENTRY_PATH_MAX || strlen(entry->target) > ENTRY_PATH_MAX ||
        strlen(entry->same_as) > ENTRY_PATH_MAX)
        return error_set(error, "internal", "the daemon sent an invalid file entry");
    return 0;
}

/* The entry points into the result, which the caller frees. */
static int stat_call(struct holt *holt, const struct tree_place *place, struct file_entry *ret,
                     void **ret_result, struct holt_error *error)
{
    const struct msg_stat_file_request request = {
        .sandbox_id = place->sandbox,
        REQUEST_PATH(place->path),
        .user = place->user,
        .follow = place->follows_link,
    };
    const struct client_call call = { &method_file_service_stat, &request, true, HOLT_NO_DEADLINE };
    const struct msg_stat_file_response *reply;
    cleanup_result void *result = NULL;
    json_t *json;

    if (client_call(holt, &call, &json, error) < 0)
        return -1;
    result = result_new(0, json);
    reply = result_decode(result, call.method->reply, json, error);
    if (!reply || entry_fill(ret, reply->entry, error) < 0)
        return -1;
    *ret_result = TAKE_PTR(result);
    return 0;
}

int tree_stat(struct holt *holt, const struct tree_place *place, struct file_entry *ret,
              struct holt_error *error)
{
    cleanup_result void *result = NULL;

    if (stat_call(holt, place, ret, &result, error) < 0)
        return -1;
    ret->path = ret->target = ret->same_as = "";
    return 0;
}

/* A position in a list of files. */
struct size_mark {
    char path[ENTRY_PATH_MAX + 1];
    size_t len;
};

static int size_add_page(const struct msg_list_files_response *page, uint64_t *size,
                         struct size_mark *mark, struct holt_error *error)
{
    for (size_t i = 0; i < page->entries_count; i++)
        if (strcmp(page->entries[i].type, "file") == 0)
            *size += page->entries[i].size;
    if (page->next_after.len > sizeof(mark->path))
        return error_set(error, "internal", "the daemon sent a path that is too long");
    mark->len = page->next_after.len;
    memcpy(mark->path, page->next_after.data, mark->len);
    return 0;
}

int tree_size(struct holt *holt, const struct tree_place *place, int64_t deadline, uint64_t *ret,
              struct holt_error *error)
{
    struct size_mark mark = { .len = 0 };
    uint64_t size = 0;

    do {
        const struct msg_list_files_request request = {
            .sandbox_id = place->sandbox,
            REQUEST_PATH(place->path),
            .user = place->user,
            .depth = UINT32_MAX,
            .after = { mark.path, mark.len },
        };
        const struct client_call call = { &method_file_service_list, &request, true, deadline };
        const struct msg_list_files_response *page;
        cleanup_result void *result = NULL;
        json_t *json;

        if (client_call(holt, &call, &json, error) < 0)
            return -1;
        result = result_new(0, json);
        page = result_decode(result, call.method->reply, json, error);
        if (!page || size_add_page(page, &size, &mark, error) < 0)
            return -1;
    } while (mark.len > 0);
    *ret = size;
    return 0;
}

int tree_read_link(struct holt *holt, const struct tree_place *place,
                   char ret_target[ENTRY_PATH_MAX + 1], struct holt_error *error)
{
    cleanup_result void *result = NULL;
    struct file_entry entry;

    if (stat_call(holt, place, &entry, &result, error) < 0)
        return -1;
    (void)snprintf(ret_target, ENTRY_PATH_MAX + 1, "%s",
                   entry.type == ENTRY_LINK ? entry.target : "");
    return 0;
}

static int stream_open(struct holt *holt, const struct client_method *method, const void *request,
                       struct holt_stream **ret, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);

    if (request_encode(method->request, request, &text, error) < 0)
        return -1;
    return holt_stream_open_raw(holt, method->path, text.data, HOLT_NO_DEADLINE, ret, error);
}

/* --- out of a sandbox ------------------------------------------------------------------------- */

int tree_pull_open(struct holt *holt, const struct tree_place *place, struct tree_pull **ret,
                   struct holt_error *error)
{
    const struct msg_pull_files_request request = {
        .sandbox_id = place->sandbox,
        REQUEST_PATH(place->path),
        .user = place->user,
        .follow = place->follows_link,
    };
    struct holt_stream *stream;

    if (stream_open(holt, &method_file_service_pull, &request, &stream, error) < 0)
        return -1;
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->stream = stream;
    return 0;
}

static int event_take(struct tree_pull *pull, const struct holt_piece *piece,
                      struct tree_piece *ret, struct holt_error *error)
{
    const struct msg_pull_files_response *event;
    const struct msg_file_trouble *trouble;
    json_t *json;
    struct err err;

    if (json_parse_object(piece->data, piece->len, &json, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    pull->latest = result_new(0, json);
    event = result_decode(pull->latest, &msg_pull_files_response_schema, json, error);
    if (!event)
        return -1;
    trouble = event->trouble;
    *ret = (struct tree_piece){ .kind = trouble ? TREE_TROUBLE : TREE_ENTRY };
    if (!trouble)
        return entry_fill(&ret->entry, event->entry, error) < 0 ? -1 : 1;
    ret->entry.path = path_of(trouble->path, &trouble->raw_path);
    ret->data = trouble->message;
    ret->len = strlen(trouble->message);
    return 1;
}

int tree_pull_next(struct tree_pull *pull, struct tree_piece *ret, struct holt_error *error)
{
    struct holt_piece piece;
    int r = holt_stream_next_raw(pull->stream, &piece, error);

    holt_free(TAKE_PTR(pull->latest));
    if (r <= 0)
        return r;
    if (piece.kind == HOLT_EVENT)
        return event_take(pull, &piece, ret, error);
    *ret = (struct tree_piece){ .kind = TREE_DATA, .data = piece.data, .len = piece.len };
    return 1;
}

void tree_pull_close(struct tree_pull *pull)
{
    if (!pull)
        return;
    holt_stream_close(pull->stream);
    holt_free(pull->latest);
    free(pull);
}

/* --- into a sandbox --------------------------------------------------------------------------- */

/* Waits for the first piece: the daemon is ready, or refuses. */
static int push_start(struct tree_push *push, struct holt_error *error)
{
    struct holt_piece piece;
    int r = holt_stream_next_raw(push->stream, &piece, error);

    if (r == 0)
        return error_set(error, "internal", "the daemon ended the copy before it started");
    return r < 0 ? -1 : holt_input_open(push->stream, &push->input, error);
}

int tree_push_open(struct holt *holt, const struct tree_place *place, struct tree_push **ret,
                   struct holt_error *error)
{
    const struct msg_push_files_request request = {
        .sandbox_id = place->sandbox,
        REQUEST_PATH(place->path),
        .user = place->user,
        .keep_owner = place->keeps_owner,
    };
    struct holt_stream *stream;
    struct tree_push *push;

    if (stream_open(holt, &method_file_service_push, &request, &stream, error) < 0)
        return -1;
    push = xcalloc(1, sizeof(*push));
    push->stream = stream;
    push->small.max = GATHER;
    if (push_start(push, error) < 0) {
        tree_push_close(push);
        return -1;
    }
    *ret = push;
    return 0;
}

/* Replaces the error with that of the daemon, if it has sent one. Returns -1. */
static int push_fail(struct tree_push *push, struct holt_error *error)
{
    struct holt_error heard = { .code = "" };
    struct holt_piece piece;
    int r;

    do
        r = holt_stream_next_raw(push->stream, &piece, &heard);
    while (r > 0);
    if (r < 0)
        *error = heard;
    return -1;
}

/* Fails if the daemon has replied, which it does before the end only to refuse. */
static int push_check(struct tree_push *push, struct holt_error *error)
{
    struct pollfd wait = { .fd = holt_stream_fd(push->stream), .events = POLLIN };

    if (wait.fd >= 0 && poll(&wait, 1, 0) <= 0)
        return 0;
    error_fill(error, "internal", "the daemon ended the copy early");
    return push_fail(push, error);
}

static int small_send(struct tree_push *push, struct holt_error *error)
{
    if (push->small.len == 0)
        return 0;
    if (holt_input_send(push->input, push->small.data, push->small.len, false, HOLT_NO_DEADLINE,
                        error) < 0)
        return push_fail(push, error);
    buf_clear(&push->small);
    return 0;
}

int tree_push_entry(struct tree_push *push, const struct file_entry *entry,
                    struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
    const struct msg_file_entry message = file_entry_message(entry);
    const struct msg_push_files_request request = { .entry = &message };

    if (schema_encode(SCHEMA_OF(msg_push_files_request, &request), ENCODE_SOME, &text) < 0)
        return no_memory(error);
    if (push_check(push, error) < 0 || small_send(push, error) < 0)
        return -1;
    return holt_input_message(push->input, text.data, HOLT_NO_DEADLINE, error) < 0
               ? push_fail(push, error)
               : 0;
}

int tree_push_data(struct tree_push *push, const void *data, size_t len, struct holt_error *error)
{
    if (push->small.len + len <= GATHER)
        return buf_add(&push->small, data, len) < 0 ? no_memory(error) : 0;
    if (push_check(push, error) < 0 || small_send(push, error) < 0)
        return -1;
    return holt_input_send(push->input, data, len, false, HOLT_NO_DEADLINE, error) < 0
               ? push_fail(push, error)
               : 0;
}

int tree_push_finish(struct tree_push *push, struct holt_error *error)
{
    struct holt_piece piece;
    int r;

    if (small_send(push, error) < 0)
        return -1;
    if (holt_input_send(push->input, NULL, 0, true, HOLT_NO_DEADLINE, error) < 0)
        return push_fail(push, error);
    do
        r = holt_stream_next_raw(push->stream, &piece, error);
    while (r > 0);
    return r;
}

void tree_push_close(struct tree_push *push)
{
    if (!push)
        return;
    holt_input_close(push->input);
    holt_stream_close(push->stream);
    buf_done(&push->small);
    free(push);
}
