// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"
#include "wire/file_message.h"

enum {
    READ_MAX = 64 * 1024 * 1024,
    WRITE_PART = 256 * 1024, /* bytes of one message */
};

static void file_fill(void *result, struct holt_file *file, const struct msg_file_entry *message)
{
    const struct timestamp *modified = &message->modified_time;

    (void)result;
    *file = (struct holt_file){
        .path = path_of(message->path, &message->raw_path),
        .name = message->name,
        .type = message->type,
        .size_bytes = message->size,
        .mode = message->mode,
        .uid = message->uid,
        .gid = message->gid,
        .owner = message->owner,
        .group = message->group,
        .modified_ms = modified->seconds * 1000 + modified->nanoseconds / 1000000,
        .inode = message->inode,
        .links = message->links,
        .target = path_of(message->target, &message->raw_target),
    };
}

static int stat_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_stat_file_response *reply = message;

    if (!reply->entry)
        return reply_lacks("entry", error);
    file_fill(result, result, reply->entry);
    return 0;
}

int holt_file_stat(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                   struct holt_file **ret, struct holt_error *error)
{
    const struct msg_stat_file_request request = { .sandbox_id = sandbox, REQUEST_PATH(path) };
    const struct client_call call = { &method_file_service_stat, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), stat_fill, ret, error);
}

/* --- listing ---------------------------------------------------------------------------------- */

/* The pages of a list, whose files go to the result. */
struct listing {
    struct holt_file_list *list; /* a result */
    const struct holt_file **items;
    size_t room; /* of items */
    struct span after;
};

static void page_add(struct listing *listing, const struct msg_list_files_response *page)
{
    struct holt_file_list *list = listing->list;
    size_t count = list->count + page->entries_count;

    if (!listing->items || count + 1 > listing->room) {
        listing->room = 2 * (count + 1);
        listing->items = result_part(list, listing->room, sizeof(*listing->items));
        if (list->count > 0)
            memcpy(listing->items, list->items, list->count * sizeof(*listing->items));
        list->items = listing->items;
    }
    for (size_t i = 0; i < page->entries_count; i++) {
        struct holt_file *file = result_part(list, 1, sizeof(*file));

        file_fill(list, file, &page->entries[i]);
        listing->items[list->count++] = file;
    }
    listing->after = page->next_after;
}

/* Decodes a page with the memory of the list, and keeps its JSON, which the names are in. */
static int page_take(struct listing *listing, json_t *pages, json_t *json, struct holt_error *error)
{
    const struct msg_list_files_response *page;

    if (json_array_append_new(pages, json) < 0)
        return error_set(error, "resource_exhausted", "no memory for the list");
    page = result_decode(listing->list, &msg_list_files_response_schema, json, error);
    if (!page)
        return -1;
    page_add(listing, page);
    return 0;
}

int holt_file_list(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                   struct holt_file_list **ret, struct holt_error *error)
{
    json_t *pages = json_array();
    cleanup_result struct holt_file_list *list = result_new(sizeof(*list), pages);
    struct listing listing = { .list = list };

    do {
        const struct msg_list_files_request request = { .sandbox_id = sandbox,
                                                        REQUEST_PATH(path),
                                                        .after = listing.after };
        const struct client_call call = { &method_file_service_list, &request, true, deadline };
        json_t *json;

        if (client_call(holt, &call, &json, error) < 0 ||
            page_take(&listing, pages, json, error) < 0)
            return -1;
    } while (listing.after.len > 0);
    *ret = TAKE_PTR(list);
    return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reading {
    struct holt_read_options options;
    struct holt_content *content; /* a result */
    struct buf bytes;
};

static int bytes_take(struct reading *reading, const struct span *data, struct holt_error *error)
{
    const struct holt_read_options *options = &reading->options;

    if (data->len == 0)
        return 0;
    if (options->on_data)
        return options->on_data(options->context, data->data, data->len) == 0
                   ? 0
                   : error_set(error, "canceled", "the caller ended the read");
    if (buf_add(&reading->bytes, data->data, data->len) < 0)
        return error_set(error, "resource_exhausted", "the file has more than %zu bytes",
                         reading->bytes.max);
    return 0;
}

/* The first message has the entry, and its result becomes that of the call. */
static int read_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_read_file_response *reply = message;
    struct reading *reading = context;

    if (bytes_take(reading, &reply->data, error) < 0)
        return -1;
    if (reply->entry && !reading->content) {
        struct holt_file *file = result_part(*result, 1, sizeof(*file));

        file_fill(*result, file, reply->entry);
        reading->content = TAKE_PTR(*result);
        reading->content->file = file;
    }
    return 0;
}

int holt_file_read(struct holt *holt, const char *sandbox, const struct holt_read_options *options,
                   int64_t deadline, struct holt_content **ret, struct holt_error *error)
{
    struct reading reading = { .options = HOLT_INIT(holt_read_options) };
    const struct holt_read_options *given = &reading.options;
    cleanup_result struct holt_content *content = NULL;
    struct msg_read_file_request request;
    const struct messages_call call = {
        .method = &method_file_service_read,
        .request = &request,
        .deadline = deadline,
        .each = read_take,
        .context = &reading,
        .size = sizeof(struct holt_content),
    };
    int r;

    if (options_take(&reading.options, sizeof(reading.options), options, error) < 0)
        return -1;
    reading.bytes.max = given->max ? given->max : READ_MAX;
    request = (struct msg_read_file_request){
        .sandbox_id = sandbox,
        REQUEST_PATH(given->path),
        .user = given->user,
        .offset = given->offset,
        .length = given->length,
    };
    r = messages_follow(holt, &call, error);
    content = reading.content;
    if (r == 0 && !content)
        r = reply_lacks("entry", error);
    if (r == 0) {
        content->data = result_bytes(content, reading.bytes.data, reading.bytes.len);
        content->len = reading.bytes.len;
        *ret = TAKE_PTR(content);
    }
    buf_done(&reading.bytes);
    return r;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Sends a part of the file. Fields that only the first message needs are absent. */
static int data_send(struct holt_upload *upload, struct span data, struct buf *text,
                     struct holt_error *error)
{
    const struct msg_write_file_request message = { .data = data };

    buf_clear(text);
    if (schema_encode(&msg_write_file_request_schema, &message, ENCODE_SOME, text) < 0)
        return error_set(error, "resource_exhausted", "no memory for the request");
    return holt_upload_send(upload, text->data, text->len, error);
}

/* The first message names the file, the others have its bytes. */
static int file_send(struct holt_upload *upload, const char *sandbox,
                     const struct holt_write_options *options, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
    const struct msg_write_file_request first = {
        .sandbox_id = sandbox,
        REQUEST_PATH(options->path),
        .user = options->user,
        .has_mode = options->has_mode,
        .mode = options->mode,
        .parents = options->makes_parents,
        .atomic = options->is_atomic,
        .exclusive = options->is_exclusive,
        .append = options->appends,
    };
    const char *data = options->data;
    size_t left = options->len;

    if (request_encode(&msg_write_file_request_schema, &first, &text, error) < 0 ||
        holt_upload_send(upload, text.data, text.len, error) < 0)
        return -1;
    while (left > 0) {
        size_t part = left < WRITE_PART ? left : WRITE_PART;

        if (data_send(upload, (struct span){ data, part }, &text, error) < 0)
            return -1;
        data += part;
        left -= part;
    }
    return 0;
}

static int write_reply(const char *text, struct holt_file **ret, struct holt_error *error)
{
    cleanup_result struct holt_file *file = NULL;
    const struct msg_write_file_response *reply;
    json_t *json;
    struct err err;

    if (json_parse_object(text, strlen(text), &json, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    file = result_new(sizeof(*file), json);
    reply = result_decode(file, &msg_write_file_response_schema, json, error);
    if (!reply)
        return -1;
    if (!reply->entry)
        return reply_lacks("entry", error);
    file_fill(file, file, reply->entry);
    if (ret)
        *ret = TAKE_PTR(file);
    return 0;
}

int holt_file_write(struct holt *holt, const char *sandbox,
                    const struct holt_write_options *options, int64_t deadline,
                    struct holt_file **ret, struct holt_error *error)
{
    struct holt_write_options given = HOLT_INIT(holt_write_options);
    cleanup_free char *reply = NULL;
    struct holt_upload *upload;
    int r;

    if (options_take(&given, sizeof(given), options, error) < 0 ||
        holt_upload_open(holt, method_file_service_write.path, deadline, &upload, error) < 0)
        return -1;
    r = file_send(upload, sandbox, &given, error);
    if (r == 0)
        r = holt_upload_finish(upload, &reply, error);
    holt_upload_close(upload);
    return r < 0 || !reply ? -1 : write_reply(reply, ret, error);
}

int holt_file_mkdir(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                    struct holt_error *error)
{
    const struct msg_make_dir_request request = { .sandbox_id = sandbox,
                                                  REQUEST_PATH(path),
                                                  .parents = true };
    const struct client_call call = { &method_file_service_make_dir, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_file_move(struct holt *holt, const char *sandbox, const char *path, const char *to,
                   int64_t deadline, struct holt_error *error)
{
    const struct msg_move_file_request request = {
        .sandbox_id = sandbox,
        REQUEST_PATH(path),
        .to = path_text(to),
        .raw_to = path_raw(to),
    };
    const struct client_call call = { &method_file_service_move, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_file_remove(struct holt *holt, const char *sandbox, const char *path, bool is_recursive,
                     int64_t deadline, struct holt_error *error)
{
    const struct msg_remove_file_request request = { .sandbox_id = sandbox,
                                                     REQUEST_PATH(path),
                                                     .recursive = is_recursive };
    const struct client_call call = { &method_file_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

/* --- watching --------------------------------------------------------------------------------- */

static int change_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct holt_watch_options *options = context;
    const struct msg_watch_files_response *reply = message;

    (void)result;
    if (options->on_change && options->on_change(options->context, reply->type,
                                                 path_of(reply->path, &reply->raw_path)) != 0)
        return error_set(error, "canceled", "the caller ended the watch");
    return 0;
}

int holt_file_watch(struct holt *holt, const char *sandbox,
                    const struct holt_watch_options *options, int64_t deadline,
                    struct holt_error *error)
{
    struct holt_watch_options given = HOLT_INIT(holt_watch_options);
    struct msg_watch_files_request request;
    const struct messages_call call = {
        .method = &method_file_service_watch,
        .request = &request,
        .deadline = deadline,
        .each = change_take,
        .context = &given,
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_watch_files_request){
        .sandbox_id = sandbox,
        REQUEST_PATH(given.path),
        .recursive = given.is_recursive,
    };
    return messages_follow(holt, &call, error);
}
