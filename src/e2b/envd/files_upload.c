// SPDX-License-Identifier: Apache-2.0
/* POST /files: a form with any number of files, or the bytes of one file, optionally gzipped. All
 * bytes go to the sandbox as they arrive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/file.h"
#include "e2b/envd/files.h"
#include "e2b/envd/inflate.h"
#include "e2b/envd/multipart.h"
#include "host/worker/file.h"
#include "http/connect.h"

#define FORM_TYPE "multipart/form-data"
#define BYTES_TYPE "application/octet-stream"

enum { FILES_MAX = 10000 }; /* of one request */

struct upload {
    struct e2b_files files;
    struct buf meta;
    const char *path; /* in the query: where the first goes; NULL: each says it itself */
    bool is_form;
    struct multipart form;
    struct inflater *inflater; /* NULL: not compressed */
    bool is_open;              /* a file is being written */
    json_t *written;
};

/* --- one file --------------------------------------------------------------------------------- */

static int file_begin(struct upload *upload, const char *path, struct err *err)
{
    struct file_request wish = {
        .type = FILE_WRITE,
        .path = path,
        .flags = FILE_PARENTS | FILE_HAS_META,
        .meta = upload->meta.len > 0 ? upload->meta.data : "",
        .meta_len = upload->meta.len,
    };
    int r;

    if (json_array_size(upload->written) == FILES_MAX)
        return err_set(err, ERR_EXHAUSTED, "a form has at most %d files", FILES_MAX);
    r = e2b_files_ask(&upload->files, &wish, err);
    upload->is_open = r == 0;
    return r;
}

static int file_data(void *context, const void *data, size_t len, struct err *err)
{
    struct upload *upload = context;

    if (!upload->is_open)
        return 0;
    return e2b_files_explain(&upload->files,
                             file_call_send_data(upload->files.call, data, len, err), err);
}

static json_t *file_json(const struct file_entry *entry)
{
    const char *path = entry->path ? entry->path : "", *slash = strrchr(path, '/');
    json_t *file = json_pack("{s:o, s:o, s:s}", "name", json_text(slash ? slash + 1 : path), "path",
                             json_text(path), "type", "file");

    if (file && entry->meta_len > 0)
        (void)json_object_set_new(file, "metadata", e2b_meta_json(entry));
    return file;
}

static int file_end(void *context, struct err *err)
{
    struct upload *upload = context;
    struct file_answer answer = { 0 };
    int r;

    if (!upload->is_open)
        return 0;
    upload->is_open = false;
    r = file_call_send_end(upload->files.call, err);
    if (r == 0)
        r = file_call_next(upload->files.call, &answer, err);
    if (r < 0)
        return e2b_files_explain(&upload->files, r, err);
    r = json_array_append_new(upload->written, file_json(&answer.entry));
    return r < 0 ? err_sys(err, -ENOMEM, "write the reply") : 0;
}

/* Other fields of the form are not for us. */
static int part_begin(void *context, const char *name, const char *filename, struct err *err)
{
    struct upload *upload = context;
    const char *path = upload->path ? upload->path : filename;

    if (strcmp(name, "file") != 0)
        return 0;
    if (path[0] == '\0')
        return err_set(err, ERR_INVALID, "a file of the form has no name, and the query no path");
    return file_begin(upload, path, err);
}

/* --- the body --------------------------------------------------------------------------------- */

static int plain_take(void *context, const void *data, size_t len, struct err *err)
{
    struct upload *upload = context;

    return upload->is_form ? multipart_feed(&upload->form, data, len, err)
                           : file_data(upload, data, len, err);
}

static int encoding_read(const struct e2b_request *request, struct upload *upload, struct err *err)
{
    const char *encoding = e2b_header(request, MHD_HTTP_HEADER_CONTENT_ENCODING);

    if (!encoding || strcasecmp(encoding, "identity") == 0)
        return 0;
    if (strcasecmp(encoding, "gzip") != 0)
        return err_set(err, ERR_INVALID, "unsupported content encoding '%.60s'", encoding);
    upload->inflater = inflater_new(plain_take, upload);
    return 0;
}

static int type_read(const struct e2b_request *request, struct upload *upload, struct err *err)
{
    static const struct multipart_ops ops = { part_begin, file_data, file_end };
    const char *type = e2b_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);

    upload->is_form = type && strncasecmp(type, FORM_TYPE, sizeof(FORM_TYPE) - 1) == 0;
    if (upload->is_form)
        return multipart_init(&upload->form, type, &ops, upload, err);
    if (!connect_type_is(type, BYTES_TYPE))
        return err_set(err, ERR_INVALID, "the content type must be %s or %s", FORM_TYPE,
                       BYTES_TYPE);
    if (!upload->path || !upload->path[0])
        return err_set(err, ERR_INVALID, "the query has no path");
    return 0;
}

static int upload_begin(struct e2b_request *request, struct err *err)
{
    struct upload *upload = xcalloc(1, sizeof(*upload));
    int r;

    request->state = upload;
    upload->written = json_array();
    upload->path = e2b_query(request, "path");
    r = e2b_files_may(request, err);
    if (r == 0)
        r = e2b_meta_read(request, &upload->meta, err);
    if (r == 0)
        r = encoding_read(request, upload, err);
    if (r == 0)
        r = type_read(request, upload, err);
    if (r == 0)
        r = e2b_files_open(request, true, &upload->files, err);
    if (r == 0 && !upload->is_form)
        r = file_begin(upload, upload->path, err);
    return r;
}

static int upload_receive(struct e2b_request *request, const char *data, size_t len,
                          struct err *err)
{
    struct upload *upload = request->state;

    return upload->inflater ? inflater_feed(upload->inflater, data, len, err)
                            : plain_take(upload, data, len, err);
}

const struct e2b_body_ops e2b_upload_body = { upload_begin, upload_receive };

enum MHD_Result e2b_upload_answer(struct e2b_request *request)
{
    struct upload *upload = request->state;
    struct err err = { 0 };
    int r = upload->inflater ? inflater_finish(upload->inflater, &err) : 0;

    if (r == 0)
        r = upload->is_form ? multipart_finish(&upload->form, &err) : file_end(upload, &err);
    if (r < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_json(request, MHD_HTTP_OK, json_incref(upload->written));
}

/* A file that has no end yet is left as far as it has come. */
void e2b_upload_close(struct e2b_request *request)
{
    struct upload *upload = request->state;

    multipart_done(&upload->form);
    inflater_free(upload->inflater);
    e2b_files_close(&upload->files);
    buf_done(&upload->meta);
    json_decref(upload->written);
    free(upload);
    request->state = NULL;
}
