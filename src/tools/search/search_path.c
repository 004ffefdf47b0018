// SPDX-License-Identifier: Apache-2.0
#include "tools/search/search_path.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"
#include "tools/text.h"
#include "wire/file.h"

/* Removes double slashes and "." components; the result ends with a slash unless it is empty. */
static void path_normalize(char *path)
{
    size_t to = 0;

    if (*path == '/')
        path[to++] = '/';
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        bool is_dot = len == 1 && *at == '.';

        if (len > 0 && !is_dot) {
            memmove(path + to, at, len);
            to += len;
            path[to++] = '/';
        }
        at += len;
        at += strspn(at, "/");
    }
    path[to] = '\0';
}

char *search_path_prefix(const char *path, const char *more)
{
    char *ret = *more == '/' ? xasprintf("%s/", more) : xasprintf("%s/%s/", path, more);
    static const char workspace[] = FILE_WORKSPACE "/";
    size_t len = sizeof(workspace) - 1;

    path_normalize(ret);
    if (strncmp(ret, workspace, len) == 0)
        memmove(ret, ret + len, strlen(ret + len) + 1);
    return ret;
}

int search_path_add(struct buf *out, const char *path)
{
    size_t len = 0;

    while (path[len] > ' ' && path[len] < 0x7f && path[len] != '\\')
        len++;
    return path[len] == '\0' ? buf_add(out, path, len) : text_add_name(out, path);
}
