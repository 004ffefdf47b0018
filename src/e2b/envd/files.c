// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "e2b/core/metadata.h"
#include "e2b/core/reset.h"
#include "e2b/core/signature.h"
#include "e2b/core/wake.h"
#include "e2b/envd/file.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/exchange.h"
#include "http/limits.h"

enum {
    BLOCK = 256 * 1024,
    SMALL = 64 * 1024,
    META_NAME_MAX = 246,
    META_MAX = 4096,
};

int e2b_files_may(const struct e2b_request *request, struct err *err)
{
    const char *token = e2b_metadata_text(request->metadata, "accessToken");

    if (request->has_token)
        return 0;
    if (!e2b_query(request, "signature"))
        return err_set(err, ERR_UNAUTHENTICATED, "missing signature query parameter");
    if (!token || !e2b_signature_matches(request, token))
        return err_set(err, ERR_UNAUTHENTICATED, "invalid signature");
    if (e2b_signature_is_over(request))
        return err_set(err, ERR_UNAUTHENTICATED, "signature is already expired");
    return 0;
}

/* --- metadata --------------------------------------------------------------------------------- */

struct meta_reading {
    struct buf *meta;
    bool is_wrong;
};

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static enum MHD_Result meta_note(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    static const char prefix[] = "X-Metadata-";
    struct meta_reading *reading = context;
    size_t start = reading->meta->len;
    const char *key = name + sizeof(prefix) - 1;

    (void)kind;
    if (strncasecmp(name, prefix, sizeof(prefix) - 1) != 0)
        return MHD_YES;
    if (!*key || strlen(key) > META_NAME_MAX || !is_printable(key) || !value ||
        !is_printable(value) || buf_add(reading->meta, key, strlen(key) + 1) < 0 ||
        buf_add(reading->meta, value, strlen(value) + 1) < 0) {
        reading->is_wrong = true;
        return MHD_NO;
    }
    for (char *c = reading->meta->data + start; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(unsigned char)(*c | 0x20);
    return MHD_YES;
}

int e2b_meta_read(const struct e2b_request *request, struct buf *ret, struct err *err)
{
    struct meta_reading reading = { .meta = ret };

    ret->max = META_MAX;
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, meta_note, &reading);
    if (reading.is_wrong)
        return err_set(err, ERR_INVALID,
                       "metadata is printable ASCII of at most %d bytes, with keys of at most %d",
                       META_MAX, META_NAME_MAX);
    return 0;
}

/* --- download --------------------------------------------------------------------------------- */

struct download {
    struct e2b_files files;
    struct sandbox *sandbox;
    struct client_connection *client;
    int connection_fd;
    uint64_t size;    /* as it was announced */
    const char *data; /* what the worker has said and was not sent yet */
    size_t len;
    bool is_over;
};

static void download_free(void *context)
{
    struct download *download = context;

    e2b_files_close(&download->files);
    sandbox_unref(download->sandbox);
    free(download);
}

DEFINE_CLEANUP(download_free, struct download *);

/* Waits for more. */
static int download_next(struct download *download, struct err *err)
{
    struct file_answer answer = { 0 };
    int r = file_call_next(download->files.call, &answer, err);

    if (r < 0)
        return r;
    download->is_over = r == 0;
    download->data = answer.type == FILE_DATA ? answer.data : NULL;
    download->len = answer.type == FILE_DATA ? answer.len : 0;
    return 0;
}

/* Clients tell by a reset that it was the sandbox that has ended. */
static ssize_t download_break(const struct download *download)
{
    if (!e2b_is_active(download->sandbox))
        e2b_connection_reset(download->connection_fd);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* A file that has become shorter than was announced ends as a broken connection. */
static ssize_t download_read(void *context, uint64_t position, char *data, size_t size)
{
    struct download *download = context;
    struct err ignored;
    size_t len;

    while (download->len == 0) {
        if (download->is_over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (download_next(download, &ignored) < 0)
            return download_break(download);
    }
    /* Workers are few: a client that does not read must not keep one. */
    client_connection_allow(download->client, CONNECTION_IDLE_MS);
    len = download->len < size ? download->len : size;
    memcpy(data, download->data, len);
    download->data += len;
    download->len -= len;
    /* All was sent: if the worker has reported the end, it is ready for the next call. */
    if (position + len == download->size && file_call_has_next(download->files.call))
        (void)download_next(download, &ignored);
    return (ssize_t)len;
}

/* Up to its size, or to whatever its end is where it has none: a file of /proc. */
static int download_begin(struct e2b_request *request, struct download *download, struct err *err)
{
    const char *path = e2b_query(request, "path");
    struct file_request wish = { .type = FILE_READ, .path = path && *path ? path : "~" };
    struct file_answer answer = { 0 };
    int r = e2b_files_open(request, true, &download->files, err);

    if (r == 0)
        r = e2b_files_ask(&download->files, &wish, err);
    if (r < 0)
        return r;
    r = file_call_next(download->files.call, &answer, err);
    if (r < 0)
        return e2b_files_explain(&download->files, r, err);
    download->size = answer.entry.size;
    return download->size == 0 ? download_next(download, err) : 0;
}

/* A small file is here as a whole, or nearly: then it goes out together with its header, and the
 * worker is free. *ret NULL: it has become shorter meanwhile. */
static int download_small(struct download *download, struct MHD_Response **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(SMALL);

    while (!download->is_over) {
        size_t left = (size_t)download->size - all.len;
        int r = download_next(download, err);

        if (r == 0 &&
            buf_add(&all, download->data, download->len < left ? download->len : left) < 0)
            r = err_sys(err, -ENOMEM, "make room for a file");
        if (r < 0)
            return r;
    }
    download->len = 0;
    if (all.len < download->size)
        return err_set(err, ERR_BUSY, "the file has changed while it was read");
    *ret = MHD_create_response_from_buffer(all.len, all.data, MHD_RESPMEM_MUST_COPY);
    return 0;
}

static enum MHD_Result download_send(struct e2b_request *request, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    client_connection_allow(request->exchange->client, CONNECTION_IDLE_MS);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  "application/octet-stream");
    return e2b_reply_response(request, MHD_HTTP_OK, response);
}

static enum MHD_Result download_answer(struct e2b_request *request)
{
    cleanup_with(download_free_slot) struct download *download = xcalloc(1, sizeof(*download));
    struct MHD_Response *response = NULL;
    struct err err = { 0 };
    bool is_small;

    if (e2b_files_may(request, &err) < 0 || download_begin(request, download, &err) < 0)
        return e2b_reply_err(request, &err);
    if (download->size == 0 && download->is_over)
        return e2b_reply_empty(request, MHD_HTTP_OK);
    is_small = download->size > 0 && download->size <= SMALL;
    if (is_small && download_small(download, &response, &err) < 0)
        return e2b_reply_err(request, &err);
    if (is_small)
        return download_send(request, response);
    response = MHD_create_response_from_callback(download->size ? download->size : MHD_SIZE_UNKNOWN,
                                                 BLOCK, download_read, download, download_free);
    if (!response)
        return MHD_NO;
    download->connection_fd = request->connection_fd;
    download->client = request->exchange->client;
    TAKE_PTR(download)->sandbox = TAKE_PTR(request->sandbox);
    return download_send(request, response);
}

static const struct e2b_route routes[] = {
    { "GET", "/files", .answer = download_answer, .is_open = true, .is_transfer = true },
    { "HEAD", "/files", .answer = download_answer, .is_open = true },
    { "POST", "/files", .answer = e2b_upload_answer, .body = &e2b_upload_body,
      .close = e2b_upload_close, .is_open = true, .is_transfer = true },
};

const struct e2b_routes e2b_files_routes = { routes, ARRAY_SIZE(routes) };
