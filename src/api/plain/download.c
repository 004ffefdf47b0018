// SPDX-License-Identifier: Apache-2.0
#include "api/plain/download.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/plain/reply.h"
#include "api/plain/tar.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/exchange.h"
#include "http/limits.h"

enum {
    BLOCK = 256 * 1024,
    ARCHIVE_MAX = 4 * FILE_DATA_MAX, /* what one answer of a worker makes of an archive */
};

struct download {
    struct sandbox *sandbox;
    struct file_call *files;
    const struct exchange *exchange;
    struct tar_writer *tar; /* NULL: a file */
    struct buf archive;     /* of a directory: what was not sent yet */
    const char *data;       /* of a file: the same */
    size_t len;
    uint64_t size; /* of a file, as it was announced */
    bool is_over;
    char tag[ENTRY_TAG_SIZE];
};

static void download_free(void *context)
{
    struct download *download = context;

    tar_writer_free(download->tar);
    buf_done(&download->archive);
    file_call_close(download->files);
    sandbox_unref(download->sandbox);
    free(download);
}

DEFINE_CLEANUP(download_free, struct download *);

static int archive_take(struct download *download, const struct file_answer *answer,
                        struct err *err)
{
    int r = download->is_over ? tar_writer_finish(download->tar, err)
                              : tar_writer_add(download->tar, answer, err);

    download->data = download->archive.data;
    download->len = download->archive.len;
    return r;
}

/* Waits for more. */
static int download_next(struct download *download, struct err *err)
{
    struct file_answer answer = { 0 };
    int r = file_call_next(download->files, &answer, err);

    if (r < 0)
        return r;
    download->is_over = r == 0;
    if (download->tar) {
        buf_clear(&download->archive);
        return archive_take(download, &answer, err);
    }
    download->data = answer.type == FILE_DATA ? answer.data : NULL;
    download->len = answer.type == FILE_DATA ? answer.len : 0;
    return 0;
}

/* A file that has become shorter than was announced, and a download whose token or session was
 * revoked, end as a broken connection. */
static ssize_t download_read(void *context, uint64_t position, char *data, size_t size)
{
    struct download *download = context;
    const struct exchange *exchange = download->exchange;
    struct err ignored;
    size_t len;

    if (exchange_is_stopped(exchange, &ignored))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    while (download->len == 0) {
        if (download->is_over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (download_next(download, &ignored) < 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    /* Workers are few: a client that does not read must not keep one. */
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    len = download->len < size ? download->len : size;
    memcpy(data, download->data, len);
    download->data += len;
    download->len -= len;
    /* All was sent: if the worker has reported the end, it is ready for the next call. */
    if (!download->tar && position + len == download->size && file_call_has_next(download->files))
        (void)download_next(download, &ignored);
    return (ssize_t)len;
}

static int files_ask(struct download *download, const struct exchange *exchange,
                     const struct download_spec *spec, enum file_message_type type, struct err *err)
{
    const struct file_request request = {
        .type = type, .path = spec->path, .to = "", .after = "", .user = spec->user
    };
    int r;

    file_call_close(TAKE_PTR(download->files));
    r = file_call_open(download->sandbox, exchange->connection_fd, !caller_may_change(spec->caller),
                       &download->files, err);
    return r < 0 ? r : file_call_send_request(download->files, &request, err);
}

/* Returns the last part of a path, for a file of this name on another machine. */
static char *name_make(const char *path)
{
    size_t end = strlen(path), start;

    while (end > 0 && path[end - 1] == '/')
        end--;
    start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (strspn(path + start, ".") >= end - start)
        return xstrdup("files");
    return xasprintf("%.*s", (int)(end - start), path + start);
}

static int tree_begin(struct download *download, const struct exchange *exchange,
                      const struct download_spec *spec, struct err *err)
{
    cleanup_free char *top = name_make(spec->path);
    int r = files_ask(download, exchange, spec, FILE_PULL, err);

    if (r < 0)
        return r;
    download->archive.max = ARCHIVE_MAX;
    download->tar = tar_writer_new(&download->archive, top);
    if (!download->tar)
        return err_sys(err, -ENOMEM, "begin an archive");
    return download_next(download, err);
}

/* The first answer tells the size, or that it is a directory. The bytes of a file of /proc, which
 * has no size, are sent up to their end. */
static int download_begin(struct download *download, const struct exchange *exchange,
                          const struct download_spec *spec, struct err *err)
{
    struct file_answer answer = { 0 };
    const char *path;
    int r = sandbox_find(spec->host, spec->caller, spec->sandbox, &download->sandbox, err);

    if (r == 0)
        r = files_ask(download, exchange, spec, FILE_READ, err);
    if (r < 0)
        return r;
    r = file_call_next(download->files, &answer, err);
    if (r < 0 && file_call_failure(download->files, &path) == EISDIR)
        return tree_begin(download, exchange, spec, err);
    if (r < 0)
        return r;
    download->size = answer.entry.size;
    entry_tag(&answer.entry, download->tag);
    return download->size == 0 ? download_next(download, err) : 0;
}

/* Appends the name for browsers in the form of RFC 8187, with ".tar" for an archive. */
static int name_add(const struct download *download, const char *path, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    cleanup_free char *name = name_make(path);
    int r = buf_add_str(out, "attachment; filename*=UTF-8''");

    for (const char *at = name; r == 0 && *at; at++)
        r = strchr(plain, *at) ? buf_add(out, at, 1)
                               : buf_printf(out, "%%%02X", (unsigned char)*at);
    return r == 0 && download->tar ? buf_add_str(out, ".tar") : r;
}

static void headers_add(const struct download *download, const struct download_spec *spec,
                        struct MHD_Response *response)
{
    cleanup_with(buf_done) struct buf name = BUF_INIT((size_t)4 * ENTRY_PATH_MAX);

    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  download->tar ? "application/x-tar" : "application/octet-stream");
    if (name_add(download, spec->path, &name) == 0)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, name.data);
    plain_headers_add(response, download->tag);
    if (spec->headers_add)
        spec->headers_add(response);
}

static enum MHD_Result download_send(struct exchange *exchange, struct download *download,
                                     const struct download_spec *spec)
{
    cleanup_with(download_free_slot) struct download *owned = download;
    bool is_known = download->tag[0] &&
                    plain_tag_matches(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH, download->tag);
    bool is_empty = is_known || (!download->tar && download->size == 0 && download->is_over);
    struct MHD_Response *response =
        is_empty ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                 : MHD_create_response_from_callback(
                       download->size && !download->tar ? download->size : MHD_SIZE_UNKNOWN, BLOCK,
                       download_read, download, download_free);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    headers_add(download, spec, response);
    if (!is_empty)
        (void)TAKE_PTR(owned);
    result = MHD_queue_response(exchange->connection,
                                is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result download_answer(struct exchange *exchange, const struct download_spec *spec)
{
    cleanup_with(download_free_slot) struct download *download = xcalloc(1, sizeof(*download));
    struct err err = { 0 };

    download->exchange = exchange;
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    if (download_begin(download, exchange, spec, &err) < 0)
        return plain_fail(exchange, &err, 0, spec->headers_add);
    return download_send(exchange, TAKE_PTR(download), spec);
}
