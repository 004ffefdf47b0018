// SPDX-License-Identifier: Apache-2.0
/* The built files of the console: plain files below one directory, each perhaps with a compressed
 * copy (.gz) beside it. They are looked up at each request, so a new build needs no restart. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "console/console_internal.h"
#include "http/exchange.h"
#include "kernel/path.h"

#define INDEX "index.html"

enum { HASH_LETTERS = 8, ETAG_SIZE = 64 }; /* esbuild puts a hash of so many letters into a name */

static const char not_built[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Holt</title>\n"
    "<h1>Holt</h1>\n<p>holtd is running. Its web console is not built: run "
    "<code>make console</code> in the source tree, then reload this page.</p>\n</html>\n";

static const struct {
    const char *suffix, *type;
} types[] = {
    { ".html", "text/html; charset=utf-8" },
    { ".js", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".json", "application/json" },
    { ".map", "application/json" },
    { ".svg", "image/svg+xml" },
    { ".png", "image/png" },
    { ".ico", "image/x-icon" },
    { ".woff2", "font/woff2" },
    { ".txt", "text/plain; charset=utf-8" },
};

/* Returns the type of a file that may be sent; NULL: it is none of the console's. */
static const char *type_of(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        size_t suffix = strlen(types[i].suffix);

        if (len > suffix && strcmp(name + len - suffix, types[i].suffix) == 0)
            return types[i].type;
    }
    return NULL;
}

/* Returns the name of the file for a path, or NULL. Names of built files need no escapes, so one
 * with an escape, which might hide a slash or a NUL, names no file. */
static const char *name_of(const struct exchange *exchange)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-/";
    size_t len = strcspn(exchange->target, "?");
    const char *path = exchange->path;

    if (strlen(path) != len || strncmp(path, exchange->target, len) != 0 || path[0] != '/' ||
        path[strspn(path, letters)] != '\0' || strstr(path, "/.") || strstr(path, "//"))
        return NULL;
    path = path[1] == '\0' ? INDEX : path + 1;
    return type_of(path) ? path : NULL;
}

/* Opens the directory of the files: the configured one, or beside holtd in a build tree, or where
 * make install puts it. */
static int dir_open(const struct console *console)
{
    static const char *const folders[] = { "console", "../share/holt/console",
                                           "../../build/console" /* of build/asan/holtd */ };
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (*console->dir != '\0')
        return open(console->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (len < 0)
        return -EBADF;
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        cleanup_free char *path = xasprintf("%s/%s", self, folders[i]);
        cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0 && faccessat(fd, INDEX, R_OK, 0) == 0)
            return TAKE_FD(fd);
    }
    return -EBADF;
}

static int file_open(int dir_fd, const char *name, struct stat *ret)
{
    cleanup_close int fd = open_no_links(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);

    if (fd < 0 || fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode))
        return -EBADF;
    return TAKE_FD(fd);
}

bool console_has_file(const struct console *console, const struct exchange *exchange)
{
    const char *name = name_of(exchange);
    cleanup_close int dir_fd = -EBADF, fd = -EBADF;
    struct stat st;

    if (!name)
        return false;
    if (strcmp(name, INDEX) == 0)
        return true;
    dir_fd = dir_open(console);
    fd = dir_fd < 0 ? -EBADF : file_open(dir_fd, name, &st);
    return fd >= 0;
}

static bool accepts_gzip(const struct exchange *exchange)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT_ENCODING);

    return accept && strstr(accept, "gzip") && !strstr(accept, "gzip;q=0");
}

/* Whether the name changes with the content: "app-3QK5XZ7A.js". */
static bool is_hashed(const char *name)
{
    const char *dash = strrchr(name, '-');
    size_t len = 0;

    if (!dash)
        return false;
    while (isupper((unsigned char)dash[len + 1]) || isdigit((unsigned char)dash[len + 1]))
        len++;
    return len == HASH_LETTERS && dash[len + 1] == '.';
}

static enum MHD_Result response_send(struct exchange *exchange, unsigned status,
                                     struct MHD_Response *response)
{
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    console_headers_add(response);
    result = MHD_queue_response(exchange->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result not_built_send(struct exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        sizeof(not_built) - 1, (void *)(uintptr_t)not_built, MHD_RESPMEM_PERSISTENT);

    if (response) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, types[0].type);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    return response_send(exchange, MHD_HTTP_OK, response);
}

static void file_headers_add(struct MHD_Response *response, const char *name, const char *etag)
{
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type_of(name));
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, etag);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                  is_hashed(name) ? "public, max-age=31536000, immutable"
                                                  : "no-cache");
}

static enum MHD_Result file_send(struct exchange *exchange, int dir_fd, const char *name)
{
    cleanup_free char *compressed = xasprintf("%s.gz", name);
    const char *known = exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    struct stat st;
    cleanup_close int fd = accepts_gzip(exchange) ? file_open(dir_fd, compressed, &st) : -EBADF;
    const bool is_compressed = fd >= 0;
    struct MHD_Response *response;
    char etag[ETAG_SIZE];
    bool is_known;

    if (!is_compressed)
        fd = file_open(dir_fd, name, &st);
    if (fd < 0)
        return not_built_send(exchange);
    (void)snprintf(etag, sizeof(etag), "\"%llx-%lx-%llx\"", (unsigned long long)st.st_mtim.tv_sec,
                   (unsigned long)st.st_mtim.tv_nsec, (unsigned long long)st.st_size);
    is_known = known && strcmp(known, etag) == 0;
    response = is_known ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                        : MHD_create_response_from_fd((size_t)st.st_size, fd);
    if (response) {
        if (!is_known)
            (void)TAKE_FD(fd);
        file_headers_add(response, name, etag);
        if (is_compressed)
            (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    return response_send(exchange, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}

enum MHD_Result console_send_file(const struct console *console, struct exchange *exchange)
{
    cleanup_close int dir_fd = dir_open(console);

    return dir_fd < 0 ? not_built_send(exchange) : file_send(exchange, dir_fd, name_of(exchange));
}
