// SPDX-License-Identifier: Apache-2.0
/* Calls about files that are answered with a stream: as messages, or as frames (wire/raw.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/file_ask.h"
#include "api/message/file_request.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/stream.h"
#include "wire/file_json.h"
#include "wire/raw.h"

enum {
    ENOUGH = 512 * 1024, /* more is not put into one turn of a stream */
    EVENT_MAX = RAW_WHOLE_MAX,
};

struct file_stream {
    struct stream stream;
    struct sandbox *sandbox;
    struct file_call *files;
    enum file_message_type type;
    char path[ENTRY_PATH_MAX + 1]; /* absolute */
};

/* A worker's paths in a tree begin with a word for the top, which ours do not. */
static const char *below_top(const char *path)
{
    const char *slash = strchr(path, '/');

    return slash ? slash + 1 : "";
}

static json_t *entry_json(const struct file_stream *self, struct file_entry *entry)
{
    entry->path = self->type == FILE_PULL ? below_top(entry->path) : self->path;
    if (entry->same_as[0])
        entry->same_as = below_top(entry->same_as);
    return json_pack("{s:o}", "entry", file_json_of(entry));
}

static json_t *trouble_json(const struct file_failure *trouble)
{
    json_t *message = json_pack("{s:s}", "message", strerror((int)trouble->errnum));

    if (file_json_set_path(message, "path", "rawPath", below_top(trouble->path)) < 0) {
        json_decref(message);
        return NULL;
    }
    return json_pack("{s:o}", "trouble", message);
}

static json_t *event_json(const struct file_event *event)
{
    static const char *const names[FILE_EVENT_KINDS] = {
        [FILE_EVENT_CREATE] = "create", [FILE_EVENT_WRITE] = "write",
        [FILE_EVENT_REMOVE] = "remove", [FILE_EVENT_RENAME] = "rename",
        [FILE_EVENT_CHMOD] = "chmod",   [FILE_EVENT_OVERFLOW] = "overflow",
    };
    json_t *message = json_pack("{s:s}", "type", names[event->kind]);

    if (file_json_set_path(message, "path", "rawPath", event->path) < 0) {
        json_decref(message);
        return NULL;
    }
    return message;
}

/* Anything but data. */
static json_t *answer_json(const struct file_stream *self, struct file_answer *answer)
{
    switch ((int)answer->type) {
    case FILE_ENTRY:
        return entry_json(self, &answer->entry);
    case FILE_TROUBLE:
        return trouble_json(&answer->trouble);
    case FILE_EVENT:
        return event_json(&answer->event);
    default:
        return json_object();
    }
}

static int data_add(struct buf *out, const char *data, size_t len)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_add_str(out, "{\"data\":\"");
    if (r == 0)
        r = base64_encode(out, data, len);
    if (r == 0)
        r = buf_add_str(out, "\"}");
    if (r == 0)
        message_end(out, start);
    return r;
}

static int answer_add(const struct file_stream *self, struct file_answer *answer, struct buf *out)
{
    if (answer->type == FILE_DATA)
        return data_add(out, answer->data, answer->len);
    return message_add_take(out, answer_json(self, answer));
}

static int raw_answer_add(const struct file_stream *self, struct file_answer *answer,
                          struct buf *out)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(EVENT_MAX);
    cleanup_json json_t *message = NULL;
    int r;

    if (answer->type == FILE_DATA)
        return raw_add(out, RAW_STDOUT, answer->data, answer->len);
    message = answer_json(self, answer);
    r = message ? json_write(message, &text) : -ENOMEM;
    return r < 0 ? r : raw_add(out, RAW_EVENT, text.data, text.len);
}

typedef int answer_fn(const struct file_stream *self, struct file_answer *answer, struct buf *out);

/* As much as is here already goes together. */
static int answers_add(struct file_stream *self, answer_fn *add, struct buf *out, struct err *err)
{
    do {
        struct file_answer answer = { 0 };
        int r = file_call_next(self->files, &answer, err), added;

        if (r <= 0)
            return r;
        added = add(self, &answer, out);
        if (added < 0)
            return err_sys(err, added, "write a message");
    } while (out->len < ENOUGH && file_call_has_next(self->files));
    return 1;
}

static int file_next_messages(struct stream *stream, struct buf *out, struct err *err)
{
    return answers_add((struct file_stream *)stream, answer_add, out, err);
}

static int file_next_raw(struct stream *stream, struct buf *out, struct err *err)
{
    return answers_add((struct file_stream *)stream, raw_answer_add, out, err);
}

static void file_stream_close(struct stream *stream)
{
    struct file_stream *self = (struct file_stream *)stream;

    file_call_close(self->files);
    sandbox_unref(self->sandbox);
    free(self);
}

static void file_stream_close_slot(struct file_stream **self)
{
    if (*self)
        file_stream_close(&(*self)->stream);
}

static int file_stream_open(const struct call *call, const json_t *request,
                            enum file_message_type type, struct stream **ret, struct err *err)
{
    static const struct stream_ops ops = { file_next_messages, file_stream_close };
    static const struct stream_ops raw_ops = { file_next_raw, file_stream_close };
    cleanup_with(file_stream_close_slot) struct file_stream *self = xcalloc(1, sizeof(*self));
    cleanup_free struct file_call_request *wish = xcalloc(1, sizeof(*wish));
    int r = file_call_request_parse(request, type, wish, err);

    self->stream.ops = call->is_raw ? &raw_ops : &ops;
    self->type = type;
    if (r == 0 && file_call_request_absolute(wish->path, self->path) < 0)
        r = err_set(err, ERR_INVALID, "the path is too long");
    if (r == 0)
        r = file_ask(call, wish, &self->sandbox, &self->files, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->stream;
    return 0;
}

int file_service_read(const struct call *call, const json_t *request, struct stream **ret,
                      struct err *err)
{
    return file_stream_open(call, request, FILE_READ, ret, err);
}

int file_service_pull(const struct call *call, const json_t *request, struct stream **ret,
                      struct err *err)
{
    return file_stream_open(call, request, FILE_PULL, ret, err);
}

int file_service_watch(const struct call *call, const json_t *request, struct stream **ret,
                       struct err *err)
{
    return file_stream_open(call, request, FILE_WATCH, ret, err);
}
