// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/object_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_replace.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"

enum {
    OBJECTS_MAX = 10000,
    FILE_BYTES_MAX = 16 * 1024 * 1024,
};

static const char *const names[SHELF_KINDS] = {
    [SHELF_SNAPSHOTS] = "e2b-snapshots.json",
    [SHELF_SECRETS] = "e2b-secrets.json",
    [SHELF_VOLUMES] = "e2b-volumes.json",
    [SHELF_TEMPLATES] = "e2b-templates.json",
};

struct e2b_shelf {
    int state_fd;
    struct lock lock; /* over all below, also while a file is written */
    json_t *lists[SHELF_KINDS];
};

static int file_read(int state_fd, const char *name, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    cleanup_json json_t *file = NULL;
    const json_t *list = NULL;
    int r = file_read_at(state_fd, name, &content);

    if (r == -ENOENT) {
        *ret = json_array();
        return 0;
    }
    if (r < 0)
        return err_sys(err, r, "read %s in the state directory", name);
    r = json_parse_object(content.data, content.len, &file, err);
    if (r == 0)
        r = json_get_array(file, "objects", &list, err);
    if (r < 0)
        return err_wrap(err, "%s in the state directory", name);
    *ret = list ? json_deep_copy(list) : json_array();
    return 0;
}

static int file_write(int state_fd, const char *name, json_t *list, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    cleanup_json json_t *file = json_pack("{s:O}", "objects", list);
    int r = file ? json_write(file, &content) : -ENOMEM;

    if (r == 0)
        r = file_replace_at(state_fd, name, content.data, content.len);
    return r < 0 ? err_sys(err, r, "write %s in the state directory", name) : 0;
}

static void close_slot(struct e2b_shelf **shelf)
{
    e2b_shelf_close(*shelf);
}

int e2b_shelf_open(const char *state_dir, struct e2b_shelf **ret, struct err *err)
{
    cleanup_with(close_slot) struct e2b_shelf *shelf = xcalloc(1, sizeof(*shelf));
    int r = 0;

    lock_init(&shelf->lock, LOCK_E2B_OBJECTS);
    shelf->state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shelf->state_fd < 0)
        return err_sys(err, -errno, "open %s", state_dir);
    for (size_t i = 0; r == 0 && i < SHELF_KINDS; i++)
        r = file_read(shelf->state_fd, names[i], &shelf->lists[i], err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(shelf);
    return 0;
}

void e2b_shelf_close(struct e2b_shelf *shelf)
{
    if (!shelf)
        return;
    for (size_t i = 0; i < SHELF_KINDS; i++)
        json_decref(shelf->lists[i]);
    (void)fd_close(shelf->state_fd);
    lock_destroy(&shelf->lock);
    free(shelf);
}

json_t *e2b_shelf_list(struct e2b_shelf *shelf, enum e2b_shelf_kind kind)
{
    json_t *copy;

    lock_take(&shelf->lock);
    copy = json_deep_copy(shelf->lists[kind]);
    lock_release(&shelf->lock);
    return copy;
}

/* Where it is, or the size of the list. */
static size_t index_of(const json_t *list, const char *field, const char *value)
{
    size_t i;

    for (i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(list, i), field));

        if (text && strcmp(text, value) == 0)
            break;
    }
    return i;
}

json_t *e2b_shelf_pick(const json_t *list, const char *field, const char *value)
{
    return json_array_get(list, index_of(list, field, value));
}

json_t *e2b_shelf_find(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, const char *field,
                       const char *value)
{
    json_t *copy;

    lock_take(&shelf->lock);
    copy = json_deep_copy(e2b_shelf_pick(shelf->lists[kind], field, value));
    lock_release(&shelf->lock);
    return copy;
}

/* Locked. Takes the new list, which counts once it is on disk. */
static int list_set(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, json_t *list,
                    struct err *err)
{
    bool is_full = json_array_size(list) > OBJECTS_MAX &&
                   json_array_size(list) > json_array_size(shelf->lists[kind]);
    int r = is_full ? err_set(err, ERR_EXHAUSTED, "there are %d of these, which is the most",
                              OBJECTS_MAX)
                    : file_write(shelf->state_fd, names[kind], list, err);

    if (r < 0) {
        json_decref(list);
        return r;
    }
    json_decref(shelf->lists[kind]);
    shelf->lists[kind] = list;
    return 0;
}

/* Locked. */
static int put(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, const json_t *object,
               const char *unique, struct err *err)
{
    const json_t *old = shelf->lists[kind];
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *word = unique ? json_string_value(json_object_get(object, unique)) : NULL;
    size_t at = index_of(old, "id", id), same = word ? index_of(old, unique, word) : at;
    json_t *list;

    if (same < json_array_size(old) && same != at)
        return err_set(err, ERR_EXISTS, "'%.100s' is there already", word);
    list = json_copy(shelf->lists[kind]);
    if (at < json_array_size(old))
        (void)json_array_set_new(list, at, json_deep_copy(object));
    else
        (void)json_array_append_new(list, json_deep_copy(object));
    return list_set(shelf, kind, list, err);
}

int e2b_shelf_put(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, const json_t *object,
                  const char *unique, struct err *err)
{
    int r;

    lock_take(&shelf->lock);
    r = put(shelf, kind, object, unique, err);
    lock_release(&shelf->lock);
    return r;
}

int e2b_shelf_change(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, e2b_shelf_fn change,
                     void *context, struct err *err)
{
    cleanup_json json_t *list = NULL;
    int r;

    lock_take(&shelf->lock);
    list = json_deep_copy(shelf->lists[kind]);
    r = change(list, context, err);
    if (r == 0)
        r = list_set(shelf, kind, TAKE_PTR(list), err);
    lock_release(&shelf->lock);
    return r;
}

int e2b_shelf_remove(struct e2b_shelf *shelf, enum e2b_shelf_kind kind, const char *id,
                     struct err *err)
{
    json_t *list;
    size_t at;
    int r;

    lock_take(&shelf->lock);
    at = index_of(shelf->lists[kind], "id", id);
    if (at == json_array_size(shelf->lists[kind])) {
        r = err_set(err, ERR_NOT_FOUND, "there is no '%.100s'", id);
    } else {
        list = json_copy(shelf->lists[kind]);
        (void)json_array_remove(list, at);
        r = list_set(shelf, kind, list, err);
    }
    lock_release(&shelf->lock);
    return r;
}
