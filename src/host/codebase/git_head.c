// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/git_head.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "kernel/path.h"

enum { PACKED_MAX = 16 << 20, CHUNK = 64 << 10, ID_LEN = GIT_HEAD_SIZE - 1 };

static const char digits[] = "0123456789abcdef";
static const char symbolic[] = "ref: ";

/* Reads a file of the tree, without following links. */
static int text_read(int tree_fd, const char *path, struct buf *ret)
{
    cleanup_close int fd = open_no_links(tree_fd, path, O_RDONLY | O_NONBLOCK, 0);
    char chunk[CHUNK];
    struct stat st;
    ssize_t len = 0;
    int r = 0;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    while (r == 0 && (len = read(fd, chunk, sizeof(chunk))) > 0)
        r = buf_add(ret, chunk, (size_t)len);
    if (r == 0 && len < 0)
        r = -errno;
    return r < 0 ? r : buf_add(ret, "", 1);
}

/* Returns whether a text begins with an id and one of these characters. */
static bool is_id(const char *text, const char *end)
{
    return strspn(text, digits) == ID_LEN && strchr(end, text[ID_LEN]);
}

static void id_copy(char ret[GIT_HEAD_SIZE], const char *id)
{
    memcpy(ret, id, ID_LEN);
    ret[ID_LEN] = '\0';
}

/* Lines are an id, a blank and a name. */
static int packed_find(int tree_fd, const char *name, char ret[GIT_HEAD_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PACKED_MAX);
    int r = text_read(tree_fd, ".git/packed-refs", &text);

    if (r == -ENOENT)
        return 0; /* no commit yet */
    if (r < 0)
        return r;
    for (const char *line = text.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *of = line + ID_LEN + 1;

        if (is_id(line, " ") && strncmp(of, name, strlen(name)) == 0 &&
            strchr("\n", of[strlen(name)])) {
            id_copy(ret, line);
            return 0;
        }
    }
    return 0;
}

static int name_resolve(int tree_fd, const char *name, char ret[GIT_HEAD_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CHUNK);
    char path[PATH_MAX];
    int r;

    if (strncmp(name, "refs/", 5) != 0 ||
        snprintf(path, sizeof(path), ".git/%s", name) >= (int)sizeof(path))
        return -EINVAL;
    r = text_read(tree_fd, path, &text);
    if (r == -ENOENT || r == -ENOTDIR)
        return packed_find(tree_fd, name, ret);
    if (r == 0 && !is_id(text.data, "\n"))
        r = -EINVAL;
    if (r == 0)
        id_copy(ret, text.data);
    return r;
}

int git_head_read(int tree_fd, char ret[GIT_HEAD_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CHUNK);
    int r = text_read(tree_fd, ".git/HEAD", &text);

    *ret = '\0';
    if (r < 0)
        return r == -ENOTDIR ? -ENOENT : r;
    if (is_id(text.data, "\n")) {
        id_copy(ret, text.data);
        return 0;
    }
    if (strncmp(text.data, symbolic, strlen(symbolic)) != 0)
        return -EINVAL;
    text.data[strcspn(text.data, "\n")] = '\0';
    return name_resolve(tree_fd, text.data + strlen(symbolic), ret);
}
