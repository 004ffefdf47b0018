// SPDX-License-Identifier: Apache-2.0
/* What comes into a sandbox: one file, or a tree. */
#include <stdlib.h>

#include "api/message/file_ask.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/upload.h"
#include "wire/file_message.h"

struct file_upload {
    struct upload upload;
    struct sandbox *sandbox;
    struct file_call *files;
    enum file_message_type type;
    char path[ENTRY_PATH_MAX + 1]; /* absolute */
    bool has_file;                 /* of a tree: bytes may come */
};

static int take_data(struct upload *upload, const char *data, size_t len, struct err *err)
{
    struct file_upload *self = (struct file_upload *)upload;

    if (len > 0 && self->type == FILE_PUSH && !self->has_file)
        return err_set(err, ERR_INVALID, "there are bytes, but no file that they belong to");
    return file_call_send_data(self->files, data, len, err);
}

static int take_entry(struct file_upload *self, const struct msg_file_entry *message,
                      struct err *err)
{
    struct file_entry entry;
    int r = file_entry_of(message, &entry, err);

    if (r < 0)
        return r;
    if (!entry_path_is_below(entry.path))
        return err_set(err, ERR_INVALID, "'%.120s' is no path below the directory", entry.path);
    if (entry.same_as[0] && !entry_path_is_below(entry.same_as))
        return err_set(err, ERR_INVALID, "'%.120s' is no path below the directory", entry.same_as);
    self->has_file = entry.type == ENTRY_FILE && entry.same_as[0] == '\0';
    return file_call_send_entry(self->files, &entry, err);
}

static int take_parts(struct file_upload *self, const struct msg_file_entry *entry,
                      const struct span *data, struct err *err)
{
    int r = entry ? take_entry(self, entry, err) : 0;

    return r < 0 || !data->data ? r : take_data(&self->upload, data->data, data->len, err);
}

/* Decodes a message after the first, which has only the last fields: 1 of a file, 2 of a tree. */
static int rest_decode(const struct schema *schema, size_t count, void *message,
                       const json_t *object, struct arena *arena, struct err *err)
{
    struct schema rest = *schema;

    rest.fields += rest.field_count - count;
    rest.field_count = count;
    return schema_decode(&rest, message, object, DECODE_REQUEST, arena, err);
}

static int take_write(struct upload *upload, const json_t *object, struct err *err)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    struct msg_write_file_request message;
    int r = rest_decode(&msg_write_file_request_schema, 1, &message, object, &arena, err);

    return r < 0 ? r : take_parts((struct file_upload *)upload, NULL, &message.data, err);
}

static int take_push(struct upload *upload, const json_t *object, struct err *err)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    struct msg_push_files_request message;
    int r = rest_decode(&msg_push_files_request_schema, 2, &message, object, &arena, err);

    return r < 0 ? r : take_parts((struct file_upload *)upload, message.entry, &message.data, err);
}

static int finish(struct upload *upload, struct buf *out, struct err *err)
{
    struct file_upload *self = (struct file_upload *)upload;
    struct file_answer answer = { 0 };
    struct msg_file_entry message;
    int r = file_call_send_end(self->files, err);

    if (r == 0)
        r = file_call_next(self->files, &answer, err);
    if (r < 0 || self->type == FILE_PUSH)
        return r;
    answer.entry.path = self->path;
    message = file_entry_message(&answer.entry);
    r = schema_encode(MESSAGE(msg_write_file_response, .entry = &message), ENCODE_ALL, out);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

static void upload_close(struct upload *upload)
{
    struct file_upload *self = (struct file_upload *)upload;

    file_call_close(self->files);
    sandbox_unref(self->sandbox);
    free(self);
}

static void upload_close_slot(struct file_upload **self)
{
    if (*self)
        upload_close(&(*self)->upload);
}

static int upload_open(const struct call *call, const struct file_ask *ask,
                       const struct upload_ops *ops, struct file_upload **ret, struct err *err)
{
    cleanup_with(upload_close_slot) struct file_upload *self = xcalloc(1, sizeof(*self));
    int r = file_ask_absolute(ask->request.path, self->path, err);

    self->upload.ops = ops;
    self->type = ask->request.type;
    if (r == 0)
        r = file_ask_send(call, ask, &self->sandbox, &self->files, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(self);
    return 0;
}

int file_service_write(const struct call *call, const struct msg_write_file_request *first,
                       struct upload **ret, struct err *err)
{
    static const struct upload_ops ops = { take_write, finish, upload_close, take_data };
    const struct file_ask ask = FILE_ASK(
        first, .type = FILE_WRITE, .mode = first->mode, .offset = first->offset,
        .flags =
            FILE_FLAG(first->has_mode, FILE_HAS_MODE) | FILE_FLAG(first->parents, FILE_PARENTS) |
            FILE_FLAG(first->atomic, FILE_ATOMIC) | FILE_FLAG(first->exclusive, FILE_EXCLUSIVE) |
            FILE_FLAG(first->append, FILE_APPEND) | FILE_FLAG(first->has_offset, FILE_AT_OFFSET));
    cleanup_with(upload_close_slot) struct file_upload *self = NULL;
    int r = upload_open(call, &ask, &ops, &self, err);

    if (r == 0)
        r = take_parts(self, NULL, &first->data, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->upload;
    return 0;
}

int file_service_push(const struct call *call, const struct msg_push_files_request *first,
                      struct upload **ret, struct err *err)
{
    static const struct upload_ops ops = { take_push, finish, upload_close, take_data };
    const struct file_ask ask = FILE_ASK(first, .type = FILE_PUSH,
                                         .flags = FILE_FLAG(first->parents, FILE_PARENTS) |
                                                  FILE_FLAG(first->keep_owner, FILE_KEEP_OWNER));
    cleanup_with(upload_close_slot) struct file_upload *self = NULL;
    int r = upload_open(call, &ask, &ops, &self, err);

    if (r == 0)
        r = take_parts(self, first->entry, &first->data, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->upload;
    return 0;
}
