// SPDX-License-Identifier: Apache-2.0
/* The files of a build's COPY steps, by their hash. A request with a key asks whether they exist;
 * the upload goes to a pre-signed URL, as clients send no key there. The URL is returned in every
 * case: some clients upload again. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_owner.h"
#include "e2b/template/archive.h"
#include "e2b/template/build.h"
#include "http/exchange.h"

struct upload {
    char *path, *part;
    uint64_t bytes;
    int fd;
};

static bool is_hash(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= 128 && strspn(text, "0123456789abcdefABCDEF") == len;
}

static char *path_of(const struct e2b_request *request, const json_t *template)
{
    cleanup_free char *files = e2b_builds_files(request->e2b->builds, e2b_object_owner(template));

    return xasprintf("%s/%s.tar.gz", files, request->params[1]);
}

static enum MHD_Result ask(struct e2b_request *request)
{
    const struct listener *listener = request->exchange->listener;
    const char *host = e2b_header(request, MHD_HTTP_HEADER_HOST), *hash = request->params[1];
    cleanup_json json_t *template =
        e2b_builds_find(request->e2b->builds, &request->exchange->caller, request->params[0]);
    cleanup_free char *path = NULL;
    char ticket[65];
    bool is_present;

    if (!is_hash(hash))
        return e2b_reply_error(request, MHD_HTTP_BAD_REQUEST, "'%.64s' is not a hash", hash);
    if (!template)
        return e2b_reply_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found",
                               request->params[0]);
    path = path_of(request, template);
    if (request->is_read_only) /* the address is a leave to write */
        return e2b_reply_error(request, MHD_HTTP_FORBIDDEN, "this token is read-only");
    is_present = e2b_archive_use(path);
    e2b_builds_ticket(request->e2b->builds, e2b_object_owner(template), hash, ticket);
    return e2b_reply_json(
        request, MHD_HTTP_CREATED,
        json_pack("{s:b, s:o}", "present", is_present, "url",
                  json_sprintf("%s://%s/templates/%s/files/%s/%s",
                               listener->is_tls ? "https" : "http", host ? host : "localhost",
                               json_string_value(json_object_get(template, "id")), hash, ticket)));
}

/* Makes room in the directory of the owner, which is inside that of root. */
static int directory_make(const struct e2b_builds *builds, const char *owner)
{
    cleanup_free char *all = e2b_builds_files(builds, OWNER_ROOT);
    cleanup_free char *own = e2b_builds_files(builds, owner);
    int r = e2b_archives_prune(all);

    return r < 0 || strcmp(all, own) == 0 ? r : e2b_archives_prune(own);
}

/* The ticket permits it, whoever sends it. */
static int put_begin(struct e2b_request *request, struct err *err)
{
    struct e2b_builds *builds = request->e2b->builds;
    cleanup_json json_t *template = e2b_builds_find(builds, &caller_root, request->params[0]);
    struct upload *upload;
    char ticket[65];
    int r;

    e2b_builds_ticket(builds, e2b_object_owner(template), request->params[1], ticket);
    if (!template || !is_hash(request->params[1]) ||
        strlen(request->params[2]) != sizeof(ticket) - 1 ||
        CRYPTO_memcmp(ticket, request->params[2], sizeof(ticket) - 1) != 0)
        return err_set(err, ERR_DENIED, "this address is not valid");
    r = directory_make(builds, e2b_object_owner(template));
    if (r < 0)
        return err_sys(err, r, "make the directory of uploaded files");
    upload = xcalloc(1, sizeof(*upload));
    request->state = upload;
    upload->path = path_of(request, template);
    upload->part = xasprintf("%s.XXXXXX", upload->path);
    upload->fd = mkostemp(upload->part, O_CLOEXEC);
    return upload->fd < 0 ? err_sys(err, -errno, "make the uploaded file") : 0;
}

static int put_receive(struct e2b_request *request, const char *data, size_t len, struct err *err)
{
    struct upload *upload = request->state;
    int r;

    upload->bytes += len;
    if (upload->bytes > E2B_ARCHIVE_BYTES_MAX)
        return err_set(err, ERR_EXHAUSTED, "the files have more than %llu bytes",
                       E2B_ARCHIVE_BYTES_MAX);
    r = write_all(upload->fd, data, len);
    return r < 0 ? err_sys(err, r, "write the uploaded file") : 0;
}

static enum MHD_Result put(struct e2b_request *request)
{
    struct upload *upload = request->state;
    struct err err = { 0 };

    if (rename(upload->part, upload->path) < 0) {
        (void)err_sys(&err, -errno, "name the uploaded file");
        return e2b_reply_err(request, &err);
    }
    upload->part[0] = '\0';
    return e2b_reply_empty(request, MHD_HTTP_OK);
}

static void put_close(struct e2b_request *request)
{
    struct upload *upload = request->state;

    if (upload->fd >= 0)
        (void)close(upload->fd);
    if (upload->part[0])
        (void)unlink(upload->part);
    free(upload->path);
    free(upload->part);
    free(upload);
}

static const struct e2b_body_ops put_ops = { put_begin, put_receive };

static const struct e2b_route routes[] = {
    { "GET", "/templates/{}/files/{}", .answer = ask },
    { "PUT", "/templates/{}/files/{}/{}", .answer = put, .body = &put_ops, .close = put_close,
      .is_open = true },
};

const struct e2b_routes e2b_upload_routes = { routes, ARRAY_SIZE(routes) };
