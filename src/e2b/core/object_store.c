// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/object_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "e2b/core/object_owner.h"

enum {
    OBJECTS_MAX = 10000,
    FILE_BYTES_MAX = 16 * 1024 * 1024,
};

static const char *const names[OBJECTS_KINDS] = {
    [OBJECTS_SNAPSHOTS] = "e2b-snapshots.json",
    [OBJECTS_SECRETS] = "e2b-secrets.json",
    [OBJECTS_TEMPLATES] = "e2b-templates.json",
};

struct e2b_objects {
    int state_fd;
    struct lock lock; /* over all below, also while a file is written */
    json_t *lists[OBJECTS_KINDS];
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

    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED, "%s in the state directory would exceed %d MiB", name,
                       FILE_BYTES_MAX >> 20);
    if (r == 0)
        r = file_replace_at(state_fd, name, content.data, content.len);
    return r < 0 ? err_sys(err, r, "write %s in the state directory", name) : 0;
}

DEFINE_CLEANUP(e2b_objects_close, struct e2b_objects *);

int e2b_objects_open(const char *state_dir, struct e2b_objects **ret, struct err *err)
{
    cleanup_with(e2b_objects_close_slot) struct e2b_objects *objects = xcalloc(1, sizeof(*objects));
    int r = 0;

    lock_init(&objects->lock, LOCK_E2B_OBJECTS);
    objects->state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (objects->state_fd < 0)
        return err_sys(err, -errno, "open %s", state_dir);
    for (size_t i = 0; r == 0 && i < OBJECTS_KINDS; i++)
        r = file_read(objects->state_fd, names[i], &objects->lists[i], err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(objects);
    return 0;
}

void e2b_objects_close(struct e2b_objects *objects)
{
    if (!objects)
        return;
    for (size_t i = 0; i < OBJECTS_KINDS; i++)
        json_decref(objects->lists[i]);
    (void)fd_close(objects->state_fd);
    lock_destroy(&objects->lock);
    free(objects);
}

json_t *e2b_objects_list(struct e2b_objects *objects, enum e2b_objects_kind kind)
{
    json_t *copy;

    lock_take(&objects->lock);
    copy = json_deep_copy(objects->lists[kind]);
    lock_release(&objects->lock);
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

json_t *e2b_objects_pick(const json_t *list, const char *field, const char *value)
{
    return json_array_get(list, index_of(list, field, value));
}

json_t *e2b_objects_find(struct e2b_objects *objects, enum e2b_objects_kind kind, const char *field,
                         const char *value)
{
    json_t *copy;

    lock_take(&objects->lock);
    copy = json_deep_copy(e2b_objects_pick(objects->lists[kind], field, value));
    lock_release(&objects->lock);
    return copy;
}

/* Returns a number for each owner: how many bytes of the file its objects take. */
static json_t *bytes_by_owner(const json_t *list)
{
    json_t *uses = json_object();
    const json_t *each;
    size_t index;

    json_array_foreach(list, index, each) {
        const char *owner = e2b_object_owner(each);
        json_int_t bytes = json_integer_value(json_object_get(uses, owner));

        bytes += (json_int_t)json_dumpb(each, NULL, 0, JSON_COMPACT) + 1;
        (void)json_object_set_new(uses, owner, json_integer(bytes));
    }
    return uses;
}

static size_t count_of(const json_t *list, const char *owner)
{
    const json_t *each;
    size_t index, count = 0;

    json_array_foreach(list, index, each)
        count += strcmp(e2b_object_owner(each), owner) == 0;
    return count;
}

/* Fails if the new list gives an owner more than its share, and more than it has in the old one. */
static int shares_check(const json_t *old, const json_t *list, struct err *err)
{
    cleanup_json json_t *before = bytes_by_owner(old), *after = bytes_by_owner(list);
    const char *owner;
    json_t *bytes;

    json_object_foreach(after, owner, bytes) {
        const size_t most = owner_share(owner, OBJECTS_MAX);
        const json_int_t most_bytes = (json_int_t)owner_share(owner, FILE_BYTES_MAX);

        if (json_integer_value(bytes) <= json_integer_value(json_object_get(before, owner)))
            continue;
        if (json_integer_value(bytes) > most_bytes)
            return err_set(err, ERR_EXHAUSTED,
                           "the objects of this kind of owner '%s' would exceed %d MiB", owner,
                           (int)(most_bytes >> 20));
        if (count_of(list, owner) > most)
            return err_set(err, ERR_EXHAUSTED,
                           "owner '%s' has %zu objects of this kind, which is the most of one "
                           "owner",
                           owner, most);
    }
    return 0;
}

/* Locked. Takes the new list, which counts once it is on disk. */
static int list_set(struct e2b_objects *objects, enum e2b_objects_kind kind, json_t *list,
                    struct err *err)
{
    const json_t *old = objects->lists[kind];
    bool is_full =
        json_array_size(list) > OBJECTS_MAX && json_array_size(list) > json_array_size(old);
    int r = is_full ? err_set(err, ERR_EXHAUSTED, "there are %d of these, which is the most",
                              OBJECTS_MAX)
                    : shares_check(old, list, err);

    if (r == 0)
        r = file_write(objects->state_fd, names[kind], list, err);
    if (r < 0) {
        json_decref(list);
        return r;
    }
    json_decref(objects->lists[kind]);
    objects->lists[kind] = list;
    return 0;
}

/* Locked. Whether another object of the same owner has this word. */
static bool is_taken(const json_t *list, const json_t *object, const char *field, const char *word)
{
    const char *id = json_string_value(json_object_get(object, "id"));
    const json_t *each;
    size_t index;

    json_array_foreach(list, index, each) {
        const char *text = json_string_value(json_object_get(each, field));

        if (text && strcmp(text, word) == 0 &&
            strcmp(e2b_object_owner(each), e2b_object_owner(object)) == 0 &&
            strcmp(json_string_value(json_object_get(each, "id")), id) != 0)
            return true;
    }
    return false;
}

/* Locked. */
static int put(struct e2b_objects *objects, enum e2b_objects_kind kind, const json_t *object,
               const char *unique, struct err *err)
{
    const json_t *old = objects->lists[kind];
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *word = unique ? json_string_value(json_object_get(object, unique)) : NULL;
    size_t at = index_of(old, "id", id);
    json_t *list;

    if (word && is_taken(old, object, unique, word))
        return err_set(err, ERR_EXISTS, "'%.100s' is there already", word);
    list = json_copy(objects->lists[kind]);
    if (at < json_array_size(old))
        (void)json_array_set_new(list, at, json_deep_copy(object));
    else
        (void)json_array_append_new(list, json_deep_copy(object));
    return list_set(objects, kind, list, err);
}

int e2b_objects_put(struct e2b_objects *objects, enum e2b_objects_kind kind, const json_t *object,
                    const char *unique, struct err *err)
{
    int r;

    lock_take(&objects->lock);
    r = put(objects, kind, object, unique, err);
    lock_release(&objects->lock);
    return r;
}

int e2b_objects_change(struct e2b_objects *objects, enum e2b_objects_kind kind,
                       e2b_objects_fn change, void *context, struct err *err)
{
    cleanup_json json_t *list = NULL;
    int r;

    lock_take(&objects->lock);
    list = json_deep_copy(objects->lists[kind]);
    r = change(list, context, err);
    if (r == 0)
        r = list_set(objects, kind, TAKE_PTR(list), err);
    lock_release(&objects->lock);
    return r;
}

int e2b_objects_remove(struct e2b_objects *objects, enum e2b_objects_kind kind, const char *id,
                       struct err *err)
{
    json_t *list;
    size_t at;
    int r;

    lock_take(&objects->lock);
    at = index_of(objects->lists[kind], "id", id);
    if (at == json_array_size(objects->lists[kind])) {
        r = err_set(err, ERR_NOT_FOUND, "there is no '%.100s'", id);
    } else {
        list = json_copy(objects->lists[kind]);
        (void)json_array_remove(list, at);
        r = list_set(objects, kind, list, err);
    }
    lock_release(&objects->lock);
    return r;
}
