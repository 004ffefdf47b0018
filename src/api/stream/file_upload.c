// SPDX-License-Identifier: Apache-2.0
/* What comes into a sandbox: one file, or a tree. */
#include <errno.h>
#include <stdlib.h>

#include "api/message/file_ask.h"
#include "api/message/file_request.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/upload.h"
#include "wire/envelope.h"
#include "wire/file_json.h"

struct file_upload {
    struct upload upload;
    struct sandbox *sandbox;
    struct file_call *files;
    enum file_message_type type;
    char path[ENTRY_PATH_MAX + 1]; /* absolute */
    bool has_file;                 /* of a tree: bytes may come */
    struct file_json_texts texts;
    struct buf data;
};

static int take_data(struct upload *upload, const char *data, size_t len, struct err *err)
{
    struct file_upload *self = (struct file_upload *)upload;

    if (len > 0 && self->type == FILE_PUSH && !self->has_file)
        return err_set(err, ERR_INVALID, "there are bytes, but no file that they belong to");
    return file_call_send_data(self->files, data, len, err);
}

static int take_entry(struct file_upload *self, const json_t *message, struct err *err)
{
    struct file_entry entry;
    int r = file_json_get(message, &self->texts, &entry, err);

    if (r < 0)
        return r;
    if (!entry_path_is_below(entry.path))
        return err_set(err, ERR_INVALID, "'%.120s' is no path below the directory", entry.path);
    if (entry.same_as[0] && !entry_path_is_below(entry.same_as))
        return err_set(err, ERR_INVALID, "'%.120s' is no path below the directory", entry.same_as);
    self->has_file = entry.type == ENTRY_FILE && entry.same_as[0] == '\0';
    return file_call_send_entry(self->files, &entry, err);
}

static int take_parts(struct file_upload *self, const json_t *message, struct err *err)
{
    const json_t *entry = NULL;
    int r = json_get_object(message, "entry", &entry, err);

    if (r == 0 && entry)
        r = take_entry(self, entry, err);
    if (r < 0 || !json_field(message, "data"))
        return r;
    buf_clear(&self->data);
    r = json_get_bytes(message, "data", &self->data, err);
    return r < 0 ? r : take_data(&self->upload, self->data.data, self->data.len, err);
}

static int take_message(struct upload *upload, const json_t *message, struct err *err)
{
    static const char *const write_fields[] = { "data", NULL };
    static const char *const push_fields[] = { "entry", "data", NULL };
    struct file_upload *self = (struct file_upload *)upload;
    int r = json_only_fields(message, self->type == FILE_WRITE ? write_fields : push_fields, err);

    return r < 0 ? r : take_parts(self, message, err);
}

static int finish(struct upload *upload, json_t **ret_reply, struct err *err)
{
    struct file_upload *self = (struct file_upload *)upload;
    struct file_answer answer = { 0 };
    int r = file_call_send_end(self->files, err);

    if (r == 0)
        r = file_call_next(self->files, &answer, err);
    if (r < 0 || self->type == FILE_PUSH)
        return r;
    answer.entry.path = self->path;
    *ret_reply = json_pack("{s:o}", "entry", file_json_of(&answer.entry));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

static void upload_close(struct upload *upload)
{
    struct file_upload *self = (struct file_upload *)upload;

    file_call_close(self->files);
    sandbox_unref(self->sandbox);
    buf_done(&self->data);
    free(self);
}

static void upload_close_slot(struct file_upload **self)
{
    if (*self)
        upload_close(&(*self)->upload);
}

static int upload_open(const struct call *call, const json_t *first, enum file_message_type type,
                       struct upload **ret, struct err *err)
{
    static const struct upload_ops ops = { take_message, finish, upload_close, take_data };
    cleanup_with(upload_close_slot) struct file_upload *self = xcalloc(1, sizeof(*self));
    cleanup_free struct file_call_request *wish = xcalloc(1, sizeof(*wish));
    int r = file_call_request_parse(first, type, wish, err);

    self->upload.ops = &ops;
    self->type = type;
    self->data.max = ENVELOPE_PAYLOAD_MAX;
    if (r == 0 && file_call_request_absolute(wish->path, self->path) < 0)
        r = err_set(err, ERR_INVALID, "the path is too long");
    if (r == 0)
        r = file_ask(call, wish, &self->sandbox, &self->files, err);
    if (r == 0)
        r = take_parts(self, first, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->upload;
    return 0;
}

int file_service_write(const struct call *call, const json_t *first, struct upload **ret,
                       struct err *err)
{
    return upload_open(call, first, FILE_WRITE, ret, err);
}

int file_service_push(const struct call *call, const json_t *first, struct upload **ret,
                      struct err *err)
{
    return upload_open(call, first, FILE_PUSH, ret, err);
}
