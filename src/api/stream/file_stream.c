// SPDX-License-Identifier: Apache-2.0
/* Calls about files that are answered with a stream: as messages, or as frames (wire/raw.h). */
#include <stdlib.h>
#include <string.h>

#include "api/message/file_ask.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/stream.h"
#include "wire/file_message.h"
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

/* Appends a message in the form that the stream has. */
typedef int put_fn(struct buf *out, const struct schema *schema, const void *message,
                   enum encode_mode mode);

static int raw_put(struct buf *out, const struct schema *schema, const void *message,
                   enum encode_mode mode)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(EVENT_MAX);
    int r = schema_encode(schema, message, mode, &text);

    return r < 0 ? r : raw_add(out, RAW_EVENT, text.data, text.len);
}

/* PullFilesResponse has the fields of ReadFileResponse, too. */
static int entry_put(const struct file_stream *self, struct file_entry *entry, put_fn *put,
                     struct buf *out)
{
    struct msg_file_entry message;

    entry->path = self->type == FILE_PULL ? below_top(entry->path) : self->path;
    if (entry->same_as[0])
        entry->same_as = below_top(entry->same_as);
    message = file_entry_message(entry);
    return put(out, MESSAGE(msg_pull_files_response, .entry = &message), ENCODE_ALL);
}

static int trouble_put(const struct file_failure *trouble, put_fn *put, struct buf *out)
{
    const char *path = below_top(trouble->path);
    const struct msg_file_trouble message = {
        .path = path,
        .raw_path = path_raw(path),
        .message = strerror((int)trouble->errnum),
    };

    return put(out, MESSAGE(msg_pull_files_response, .trouble = &message), ENCODE_ALL);
}

static int event_put(const struct file_event *event, put_fn *put, struct buf *out)
{
    static const char *const names[FILE_EVENT_KINDS] = {
        [FILE_EVENT_CREATE] = "create", [FILE_EVENT_WRITE] = "write",
        [FILE_EVENT_REMOVE] = "remove", [FILE_EVENT_RENAME] = "rename",
        [FILE_EVENT_CHMOD] = "chmod",   [FILE_EVENT_OVERFLOW] = "overflow",
    };

    return put(out,
               MESSAGE(msg_watch_files_response, .type = names[event->kind], .path = event->path,
                       .raw_path = path_raw(event->path)),
               ENCODE_ALL);
}

/* Sends a message other than data. One without fields reports that the watch has begun. */
static int answer_put(const struct file_stream *self, struct file_answer *answer, put_fn *put,
                      struct buf *out)
{
    switch ((int)answer->type) {
    case FILE_ENTRY:
        return entry_put(self, &answer->entry, put, out);
    case FILE_TROUBLE:
        return trouble_put(&answer->trouble, put, out);
    case FILE_EVENT:
        return event_put(&answer->event, put, out);
    default:
        return put(out, MESSAGE(msg_watch_files_response, .path = NULL), ENCODE_SOME);
    }
}

static int answer_add(const struct file_stream *self, struct file_answer *answer, struct buf *out)
{
    if (answer->type == FILE_DATA)
        return message_add(out,
                           MESSAGE(msg_read_file_response, .data = { answer->data, answer->len }));
    return answer_put(self, answer, message_add_as, out);
}

static int raw_answer_add(const struct file_stream *self, struct file_answer *answer,
                          struct buf *out)
{
    if (answer->type == FILE_DATA)
        return raw_add(out, RAW_STDOUT, answer->data, answer->len);
    return answer_put(self, answer, raw_put, out);
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

static int file_stream_open(const struct call *call, const struct file_ask *ask,
                            struct stream **ret, struct err *err)
{
    static const struct stream_ops ops = { file_next_messages, file_stream_close };
    static const struct stream_ops raw_ops = { file_next_raw, file_stream_close };
    cleanup_with(file_stream_close_slot) struct file_stream *self = xcalloc(1, sizeof(*self));
    int r = file_ask_absolute(ask->request.path, self->path, err);

    self->stream.ops = call->is_raw ? &raw_ops : &ops;
    self->type = ask->request.type;
    if (r == 0)
        r = file_ask_send(call, ask, &self->sandbox, &self->files, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->stream;
    return 0;
}

int file_service_read(const struct call *call, const struct msg_read_file_request *request,
                      struct stream **ret, struct err *err)
{
    const struct file_ask ask =
        FILE_ASK(request, .type = FILE_READ, .offset = request->offset, .length = request->length);

    return file_stream_open(call, &ask, ret, err);
}

int file_service_pull(const struct call *call, const struct msg_pull_files_request *request,
                      struct stream **ret, struct err *err)
{
    const struct file_ask ask =
        FILE_ASK(request, .type = FILE_PULL, .flags = FILE_FLAG(request->follow, FILE_FOLLOW));

    return file_stream_open(call, &ask, ret, err);
}

int file_service_watch(const struct call *call, const struct msg_watch_files_request *request,
                       struct stream **ret, struct err *err)
{
    const struct file_ask ask = FILE_ASK(request, .type = FILE_WATCH,
                                         .flags = FILE_FLAG(request->recursive, FILE_RECURSIVE));

    return file_stream_open(call, &ask, ret, err);
}
