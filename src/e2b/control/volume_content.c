// SPDX-License-Identifier: Apache-2.0
/* Files of a volume. Requests carry the volume's own token, which gives access to that volume
 * alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/control/volume_internal.h"
#include "e2b/core/e2b.h"
#include "host/volume/shared_volume.h"
#include "http/exchange.h"
#include "http/limits.h"

static enum MHD_Result refuse(struct e2b_request *request)
{
    return e2b_reply_error(request, MHD_HTTP_UNAUTHORIZED, "the token of this volume is needed");
}

/* A number of the query; absent: as it was. */
static int number_parse(const struct e2b_request *request, const char *name, uint32_t *ret,
                        struct err *err)
{
    const char *text = e2b_query(request, name);
    uint64_t value;

    if (!text)
        return 0;
    if (parse_u64(text, &value) < 0 || value >= UINT32_MAX)
        return err_set(err, ERR_INVALID, "%s must be a number", name);
    *ret = (uint32_t)value;
    return 0;
}

static int file_parse(const struct e2b_request *request, struct shared_volume_file *ret,
                      struct err *err)
{
    const char *path = e2b_query(request, "path");
    int r;

    *ret = (struct shared_volume_file){ request->params[0], path, SHARED_VOLUME_KEEP,
                                        SHARED_VOLUME_KEEP, SHARED_VOLUME_KEEP };
    if (!path || *path == '\0')
        return err_set(err, ERR_INVALID, "path is missing");
    r = number_parse(request, "uid", &ret->uid, err);
    if (r == 0)
        r = number_parse(request, "gid", &ret->gid, err);
    return r == 0 ? number_parse(request, "mode", &ret->mode, err) : r;
}

static bool is_forced(const struct e2b_request *request)
{
    const char *text = e2b_query(request, "force");

    return text && strcmp(text, "true") == 0;
}

static const char *type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "directory";
    return S_ISLNK(mode) ? "symlink" : "unknown";
}

static json_t *moment_json(struct timespec at)
{
    return e2b_time_json((uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000);
}

/* Normalises the requested path: absolute, without trailing slashes. */
static json_t *entry_json(const char *path, const struct stat *st, const char *target)
{
    cleanup_free char *full = xasprintf("/%s", path + strspn(path, "/"));
    size_t len = strlen(full);
    const char *name;

    while (len > 1 && full[len - 1] == '/')
        full[--len] = '\0';
    name = strrchr(full, '/') + 1;
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o*}", "name",
                     json_text(*name ? name : "/"), "type", type_of(st->st_mode), "path",
                     json_text(full), "size", (json_int_t)st->st_size, "mode",
                     (json_int_t)(st->st_mode & 07777), "uid", (json_int_t)st->st_uid, "gid",
                     (json_int_t)st->st_gid, "atime", moment_json(st->st_atim), "mtime",
                     moment_json(st->st_mtim), "ctime", moment_json(st->st_ctim), "target",
                     *target ? json_text(target) : NULL);
}

static json_t *look(const struct e2b_request *request, const struct shared_volume_file *file,
                    struct err *err)
{
    cleanup_free char *target = xcalloc(SHARED_VOLUME_PATH_MAX, 1);
    struct stat st;

    if (shared_volume_stat(request->host, file, &st, target, err) < 0)
        return NULL;
    return entry_json(file->path, &st, target);
}

static enum MHD_Result entry_answer(struct e2b_request *request, unsigned status,
                                    const struct shared_volume_file *file)
{
    struct err err = { 0 };
    json_t *entry = look(request, file, &err);

    return entry ? e2b_reply_json(request, status, entry) : e2b_reply_err(request, &err);
}

static enum MHD_Result stat_path(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0)
        return e2b_reply_err(request, &err);
    return entry_answer(request, MHD_HTTP_OK, &file);
}

static enum MHD_Result change_path(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0 ||
        json_get_u32(request->body, "uid", &file.uid, &err) < 0 ||
        json_get_u32(request->body, "gid", &file.gid, &err) < 0 ||
        json_get_u32(request->body, "mode", &file.mode, &err) < 0 ||
        shared_volume_change(request->host, &file, &err) < 0)
        return e2b_reply_err(request, &err);
    return entry_answer(request, MHD_HTTP_OK, &file);
}

static enum MHD_Result remove_path(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0 ||
        shared_volume_remove(request->host, &file, &err) < 0)
        return e2b_reply_err(request, &err);
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static enum MHD_Result make_dir(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0 ||
        shared_volume_make_dir(request->host, &file, is_forced(request), &err) < 0)
        return e2b_reply_err(request, &err);
    return entry_answer(request, MHD_HTTP_CREATED, &file);
}

struct listing {
    const struct e2b_request *request;
    const struct shared_volume_file *dir;
    json_t *array;
};

/* Skips entries that vanish meanwhile. */
static int list_add(void *context, const char *below)
{
    struct listing *listing = context;
    cleanup_free char *path = xasprintf("%s/%s", listing->dir->path, below);
    const struct shared_volume_file file = { .shared_volume = listing->dir->shared_volume,
                                             .path = path };
    struct err ignored;
    json_t *entry = look(listing->request, &file, &ignored);

    if (entry)
        (void)json_array_append_new(listing->array, entry);
    return 0;
}

static enum MHD_Result list_dir(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct listing listing = { .request = request, .dir = &file };
    uint32_t depth = 1;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0 || number_parse(request, "depth", &depth, &err) < 0)
        return e2b_reply_err(request, &err);
    listing.array = json_array();
    if (shared_volume_list(request->host, &file, depth, list_add, &listing, &err) < 0) {
        json_decref(listing.array);
        return e2b_reply_err(request, &err);
    }
    return e2b_reply_json(request, MHD_HTTP_OK, listing.array);
}

/* A client may take as long as it keeps reading. */
static enum MHD_Result read_file(struct e2b_request *request)
{
    cleanup_close int fd = -EBADF;
    struct MHD_Response *response;
    struct shared_volume_file file;
    struct stat st;
    struct err err = { 0 };

    if (!e2b_volume_opens(request))
        return refuse(request);
    if (file_parse(request, &file, &err) < 0 ||
        shared_volume_open_read(request->host, &file, &fd, &err) < 0)
        return e2b_reply_err(request, &err);
    if (fstat(fd, &st) < 0)
        return MHD_NO;
    client_connection_allow(request->exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(request->exchange->client, (uint64_t)st.st_size);
    response = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
    if (!response)
        return MHD_NO;
    (void)TAKE_FD(fd);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  "application/octet-stream");
    return e2b_reply_response(request, MHD_HTTP_OK, response);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct upload {
    int fd;
};

static int write_begin(struct e2b_request *request, struct err *err)
{
    struct shared_volume_file file;
    struct upload *upload;
    int fd = -EBADF;
    int r;

    if (!e2b_volume_opens(request))
        return err_set(err, ERR_UNAUTHENTICATED, "the token of this volume is needed");
    r = file_parse(request, &file, err);
    if (r == 0)
        r = shared_volume_open_write(request->host, &file, is_forced(request), &fd, err);
    if (r < 0)
        return r;
    upload = xcalloc(1, sizeof(*upload));
    upload->fd = fd;
    request->state = upload;
    return 0;
}

static int write_receive(struct e2b_request *request, const char *data, size_t len, struct err *err)
{
    const struct upload *upload = request->state;
    int r = write_all(upload->fd, data, len);

    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, CAUSE_NO_SPACE, "no space left on the volume");
    return r < 0 ? err_sys(err, r, "write to a volume") : 0;
}

static enum MHD_Result write_answer(struct e2b_request *request)
{
    struct shared_volume_file file;
    struct err err = { 0 };

    if (file_parse(request, &file, &err) < 0)
        return e2b_reply_err(request, &err);
    return entry_answer(request, MHD_HTTP_CREATED, &file);
}

static void write_close(struct e2b_request *request)
{
    struct upload *upload = request->state;

    upload->fd = fd_close(upload->fd);
    free(upload);
}

static const struct e2b_body_ops write_body = { write_begin, write_receive };

static const struct e2b_route routes[] = {
    { "GET", "/volumecontent/{}/path", .answer = stat_path, .is_open = true },
    { "PATCH", "/volumecontent/{}/path", .answer = change_path, .is_open = true },
    { "DELETE", "/volumecontent/{}/path", .answer = remove_path, .is_open = true },
    { "GET", "/volumecontent/{}/dir", .answer = list_dir, .is_open = true },
    { "POST", "/volumecontent/{}/dir", .answer = make_dir, .is_open = true },
    { "GET", "/volumecontent/{}/file", .answer = read_file, .is_open = true },
    { "PUT", "/volumecontent/{}/file", .answer = write_answer, .body = &write_body,
      .close = write_close, .is_open = true },
};

const struct e2b_routes e2b_volume_content_routes = { routes, ARRAY_SIZE(routes) };
