// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/differences.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "store/diff/diff.h"
#include "store/volume/volume.h"

struct listing {
    struct differences *list;
    struct err *err;
};

static int path_add(const struct listing *listing, const char *path)
{
    if (buf_add(&listing->list->bytes, path + 1, strlen(path)) < 0)
        return err_set(listing->err, ERR_EXHAUSTED, "more than %d MiB of changed paths",
                       DIFFERENCES_BYTES_MAX >> 20);
    listing->list->count++;
    return 0;
}

static int entry_add(const struct diff_entry *entry, void *context)
{
    int r = path_add(context, entry->path);

    return r == 0 && entry->old_path ? path_add(context, entry->old_path) : r;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Renames put paths out of order. */
static void list_sort(struct differences *list)
{
    const char *path = list->bytes.data;

    list->paths = xcalloc(list->count, sizeof(*list->paths));
    for (size_t i = 0; i < list->count; i++) {
        list->paths[i] = path;
        path += strlen(path) + 1;
    }
    if (list->count > 0)
        qsort(list->paths, list->count, sizeof(*list->paths), by_bytes);
}

int differences_list(struct differences *list, int a_fd, int b_fd, const char *path,
                     struct err *err)
{
    struct volume_view a = { .trees[0] = { .target = "/", .fds = { a_fd }, .count = 1 },
                             .tree_count = 1 };
    struct volume_view b = { .trees[0] = { .target = "/", .fds = { b_fd }, .count = 1 },
                             .tree_count = 1 };
    const struct diff_options options = { .path = path };
    struct listing listing = { .list = list, .err = err };
    int r = diff_run(&a, &b, &options, entry_add, &listing, err);

    if (r == 0)
        list_sort(list);
    return r;
}

void differences_done(struct differences *list)
{
    free(list->paths);
    list->paths = NULL;
    buf_done(&list->bytes);
}
