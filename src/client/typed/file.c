// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/request.h"
#include "holt.h"

enum {
    READ_MAX = 64 * 1024 * 1024,
    WRITE_PART = 256 * 1024, /* bytes of one message */
    WRITE_TEXT_MAX = WRITE_PART / 3 * 4 + 64,
    PATH_TEXT_MAX = 64 * 1024,
};

/* The path as text, or, where it is not UTF-8, its bytes. */
static json_t *request_path(json_t *request, const char *name, const char *raw_name,
                            const char *path)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PATH_TEXT_MAX);
    json_t *value = path ? json_string(path) : NULL;

    if (value || !path)
        return request_value(request, name, value);
    if (base64_encode(&text, path, strlen(path)) < 0)
        return request_value(request, raw_name, NULL);
    return request_text(request, raw_name, text.data);
}

static json_t *request_file(const char *sandbox, const char *path)
{
    return request_path(request_for(sandbox), "path", "rawPath", path);
}

static void file_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_file *file = into;

    file->path = read_path(reading, object, "path", "rawPath");
    file->name = read_text(reading, object, "name");
    file->type = read_text(reading, object, "type");
    file->size_bytes = read_u64(reading, object, "size");
    file->mode = read_u32(reading, object, "mode");
    file->uid = read_u32(reading, object, "uid");
    file->gid = read_u32(reading, object, "gid");
    file->owner = read_text(reading, object, "owner");
    file->group = read_text(reading, object, "group");
    file->modified_ms = read_time(reading, object, "modifiedTime");
    file->inode = read_u64(reading, object, "inode");
    file->links = read_u32(reading, object, "links");
    file->target = read_path(reading, object, "target", "rawTarget");
}

int holt_file_stat(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                   struct holt_file **ret, struct holt_error *error)
{
    const struct client_answer answer = { "entry", sizeof(**ret), file_read };
    const struct client_call call = { "FileService/Stat", request_file(sandbox, path), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

/* Appends the entries of one page to all of them; "" when it was the last. */
static int list_page(struct holt *holt, const struct client_call *call, json_t *all,
                     json_t **ret_after, struct holt_error *error)
{
    cleanup_json json_t *reply = NULL;
    json_t *entries;

    if (client_call(holt, call, &reply, error) < 0)
        return -1;
    entries = json_object_get(reply, "entries");
    if (entries && json_array_extend(all, entries) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: no 'entries'");
    *ret_after = json_incref(json_object_get(reply, "nextAfter"));
    return 0;
}

static int list_all(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                    json_t *all, struct holt_error *error)
{
    json_t *after = NULL;

    do {
        struct client_call call = { "FileService/List", request_file(sandbox, path), true,
                                    deadline };

        if (after)
            call.request = request_value(call.request, "after", TAKE_PTR(after));
        if (list_page(holt, &call, all, &after, error) < 0)
            return -1;
    } while (after && *json_string_value(after));
    json_decref(after);
    return 0;
}

int holt_file_list(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                   struct holt_file_list **ret, struct holt_error *error)
{
    cleanup_result struct holt_file_list *list = NULL;
    struct reading reading = { .is_wrong = false };
    json_t *all = json_array();

    reading.result = list = result_new(sizeof(*list), all);
    if (list_all(holt, sandbox, path, deadline, all, error) < 0)
        return -1;
    list->count = json_array_size(all);
    list->items =
        (const struct holt_file *const *)read_list(&reading, all, sizeof(**list->items), file_read);
    if (reading_end(&reading, error) < 0)
        return -1;
    *ret = TAKE_PTR(list);
    return 0;
}

struct read {
    struct holt_read_options options;
    struct holt_content *content; /* a result */
    struct buf bytes;
};

static int take_bytes(struct read *read, const char *data, size_t len, struct holt_error *error)
{
    const struct holt_read_options *options = &read->options;

    if (options->on_data && len > 0 && options->on_data(options->context, data, len) != 0)
        return error_set(error, "canceled", "the caller wanted no more of the file");
    if (!options->on_data && buf_add(&read->bytes, data, len) < 0)
        return error_set(error, "resource_exhausted", "the file has more than %zu bytes",
                         read->bytes.max);
    return 0;
}

static int take_message(void *context, struct reading *reading, const json_t *message,
                        struct holt_error *error)
{
    json_t *entry = (json_t *)(uintptr_t)read_object(reading, message, "entry");
    struct read *read = context;
    const char *data;
    size_t len;

    if (entry && !read->content) {
        struct reading own = { .is_wrong = false };
        struct holt_file *file;

        own.result = read->content = result_new(sizeof(*read->content), json_incref(entry));
        file = result_part(read->content, 1, sizeof(*file));
        file_read(&own, entry, file);
        read->content->file = file;
        if (reading_end(&own, error) < 0)
            return -1;
    }
    data = read_bytes(reading, message, "data", &len);
    return take_bytes(read, data, len, error);
}

int holt_file_read(struct holt *holt, const char *sandbox, const struct holt_read_options *options,
                   int64_t deadline, struct holt_content **ret, struct holt_error *error)
{
    struct read read = { .options = HOLT_INIT(holt_read_options) };
    struct messages_call call = {
        .method = "holt.v1.FileService/Read",
        .deadline = deadline,
        .each = take_message,
        .context = &read,
    };
    cleanup_result struct holt_content *content = NULL;
    int r;

    if (options_take(&read.options, sizeof(read.options), options, error) < 0)
        return -1;
    read.bytes.max = read.options.max ? read.options.max : READ_MAX;
    call.request =
        request_text(request_file(sandbox, read.options.path), "user", read.options.user);
    call.request = request_u64(call.request, "offset", read.options.offset);
    call.request = request_u64(call.request, "length", read.options.length);
    r = messages_follow(holt, &call, error);
    content = read.content;
    if (r == 0 && !content)
        r = error_set(error, "internal", "the daemon has not said what file it read");
    if (r == 0) {
        content->data = result_bytes(content, read.bytes.data, read.bytes.len);
        content->len = read.bytes.len;
        *ret = TAKE_PTR(content);
    }
    buf_done(&read.bytes);
    return r;
}

static json_t *write_request(const char *sandbox, const struct holt_write_options *options)
{
    json_t *request = request_text(request_file(sandbox, options->path), "user", options->user);

    if (options->has_mode)
        request = request_value(request, "mode", json_integer(options->mode));
    request = request_true(request, "parents", options->makes_parents);
    request = request_true(request, "atomic", options->is_atomic);
    request = request_true(request, "exclusive", options->is_exclusive);
    return request_true(request, "append", options->appends);
}

/* The first message names the file, the others have its bytes. */
static int send_all(struct holt_upload *upload, json_t *first, const char *data, size_t len,
                    struct holt_error *error)
{
    cleanup_json json_t *request = first;
    cleanup_free char *head = request ? json_dumps(request, JSON_COMPACT) : NULL;
    cleanup_with(buf_done) struct buf text = BUF_INIT(WRITE_TEXT_MAX);

    if (!head)
        return error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    if (holt_upload_send(upload, head, strlen(head), error) < 0)
        return -1;
    while (len > 0) {
        size_t part = len < WRITE_PART ? len : WRITE_PART;

        buf_clear(&text);
        if (buf_add_str(&text, "{\"data\":\"") < 0 || base64_encode(&text, data, part) < 0 ||
            buf_add_str(&text, "\"}") < 0)
            return error_set(error, "resource_exhausted", "no memory for the file");
        if (holt_upload_send(upload, text.data, text.len, error) < 0)
            return -1;
        data += part;
        len -= part;
    }
    return 0;
}

static int write_reply(const char *text, struct holt_file **ret, struct holt_error *error)
{
    cleanup_result struct holt_file *file = NULL;
    struct reading reading = { .is_wrong = false };
    json_t *reply;
    struct err err;

    if (json_parse_object(text, strlen(text), &reply, &err) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: %s", err.msg);
    reading.result = file = result_new(sizeof(*file), reply);
    file_read(&reading, read_object(&reading, reply, "entry"), file);
    if (reading_end(&reading, error) < 0)
        return -1;
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
        holt_upload_open(holt, "holt.v1.FileService/Write", deadline, &upload, error) < 0)
        return -1;
    r = send_all(upload, write_request(sandbox, &given), given.data, given.len, error);
    if (r == 0)
        r = holt_upload_finish(upload, &reply, error);
    holt_upload_close(upload);
    return r < 0 || !reply ? -1 : write_reply(reply, ret, error);
}

int holt_file_mkdir(struct holt *holt, const char *sandbox, const char *path, int64_t deadline,
                    struct holt_error *error)
{
    const struct client_call call = { "FileService/MakeDir",
                                      request_true(request_file(sandbox, path), "parents", true),
                                      false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_file_move(struct holt *holt, const char *sandbox, const char *path, const char *to,
                   int64_t deadline, struct holt_error *error)
{
    const struct client_call call = { "FileService/Move",
                                      request_path(request_file(sandbox, path), "to", "rawTo", to),
                                      false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_file_remove(struct holt *holt, const char *sandbox, const char *path, bool is_recursive,
                     int64_t deadline, struct holt_error *error)
{
    const struct client_call call = {
        "FileService/Remove", request_true(request_file(sandbox, path), "recursive", is_recursive),
        false, deadline
    };

    return client_call_void(holt, &call, error);
}

static int take_change(void *context, struct reading *reading, const json_t *message,
                       struct holt_error *error)
{
    const struct holt_watch_options *options = context;
    const char *type = read_text(reading, message, "type");
    const char *path = read_path(reading, message, "path", "rawPath");

    if (reading_end(reading, error) < 0)
        return -1;
    if (options->on_change && options->on_change(options->context, type, path) != 0)
        return error_set(error, "canceled", "the caller wanted no more changes");
    return 0;
}

int holt_file_watch(struct holt *holt, const char *sandbox,
                    const struct holt_watch_options *options, int64_t deadline,
                    struct holt_error *error)
{
    struct holt_watch_options given = HOLT_INIT(holt_watch_options);
    struct messages_call call = {
        .method = "holt.v1.FileService/Watch",
        .deadline = deadline,
        .each = take_change,
        .context = &given,
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_true(request_file(sandbox, given.path), "recursive", given.is_recursive);
    return messages_follow(holt, &call, error);
}
