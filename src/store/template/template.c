// SPDX-License-Identifier: Apache-2.0
/* templates/NAME:
 *
 *   rootfs/       the whole root
 *   layers/TREE/  layer of a committed template over a tree of its base, by the rules of overlayfs
 *   meta.json     {"created_at": seconds, "size_bytes": n, "files": n, "fingerprint": "...",
 *                "base": "NAME", "digest": "sha256:HEX"}
 *   settings.json see store/template/settings.h; may be missing
 *
 * A template with layers/ has a base; if it also has a rootfs/, that replaces the base's. */
#include "store/template/template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/store_internal.h"
#include "store/template/mount_points.h"
#include "store/template/settings.h"

/* An image is one more base than it has layers. */
enum { META_BYTES_MAX = 4096, BASES_MAX = 2 * TEMPLATE_LAYERS_MAX };

struct template_use {
    struct template_use *next;
    size_t count;
    struct template *open; /* for the next open; NULL: it must be read first */
    char name[TEMPLATE_NAME_MAX + 1];
};

struct template_list {
    struct template_info *items;
    size_t count;
    size_t capacity;
};

static void list_done(struct template_list *list)
{
    free(list->items);
}

bool template_is_store_name(const char *name)
{
    const size_t prefix = strlen(TEMPLATE_MADE_PREFIX);

    return is_name(strncmp(name, TEMPLATE_MADE_PREFIX, prefix) == 0 ? name + prefix : name);
}

bool template_exists(const struct store *store, const char *name)
{
    struct stat st;

    return template_is_store_name(name) &&
           fstatat(store->templates_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int name_check(const char *name, struct err *err)
{
    if (template_is_store_name(name))
        return 0;
    return err_set(err, ERR_INVALID,
                   "'%.64s' is not a template name (a-z, 0-9, '.', '_', '-', at most %d)", name,
                   TEMPLATE_NAME_MAX);
}

int template_name_check(const struct store *store, const char *name, struct err *err)
{
    struct stat st;
    int r = name_check(name, err);

    if (r == 0 && fstatat(store->templates_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        r = err_set(err, ERR_EXISTS, "template '%s' already exists", name);
    return r;
}

static int template_not_found(const char *name, struct err *err)
{
    return err_refuse(err, CAUSE_TEMPLATE_NOT_FOUND, "no template '%s'", name);
}

/* Returns the slot that points to the use of name, or to NULL at the end. The caller holds the
 * lock. */
static struct template_use **use_find(struct store *store, const char *name)
{
    struct template_use **slot = &store->uses;

    while (*slot && strcmp((*slot)->name, name) != 0)
        slot = &(*slot)->next;
    return slot;
}

void template_hold(struct store *store, const char *name)
{
    struct template_use **slot;

    lock_take(&store->lock);
    slot = use_find(store, name);
    if (!*slot) {
        *slot = xcalloc(1, sizeof(**slot));
        (void)snprintf((*slot)->name, sizeof((*slot)->name), "%s", name);
    }
    (*slot)->count++;
    lock_release(&store->lock);
}

void template_hold_drop(struct store *store, const char *name)
{
    struct template_use **slot, *use;

    lock_take(&store->lock);
    slot = use_find(store, name);
    use = *slot;
    if (use && --use->count == 0) {
        *slot = use->next;
        free(use);
    }
    lock_release(&store->lock);
}

int template_meta_read(int template_fd, struct template_meta *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(META_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    struct template_meta meta = { 0 };
    const char *fingerprint = "", *base = "", *digest = "";
    uint64_t created_at = 0;
    int r = file_read_at(template_fd, "meta.json", &text);

    if (r < 0)
        return err_sys(err, r, "read meta.json");
    if (json_parse_object(text.data, text.len, &object, err) < 0 ||
        json_get_u64(object, "size_bytes", &meta.size_bytes, err) < 0 ||
        json_get_u64(object, "files", &meta.files, err) < 0 ||
        json_get_u64(object, "created_at", &created_at, err) < 0 ||
        json_get_text(object, "fingerprint", &fingerprint, err) < 0 ||
        json_get_text(object, "base", &base, err) < 0 ||
        json_get_text(object, "digest", &digest, err) < 0)
        return err_wrap(err, "meta.json");
    meta.created_at = (int64_t)created_at;
    (void)snprintf(meta.fingerprint, sizeof(meta.fingerprint), "%s", fingerprint);
    (void)snprintf(meta.base, sizeof(meta.base), "%s", base);
    (void)snprintf(meta.digest, sizeof(meta.digest), "%s", digest);
    *ret = meta;
    return 0;
}

int template_meta_write(int template_fd, const struct template_meta *meta, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(META_BYTES_MAX);
    cleanup_json json_t *object =
        json_pack("{s:I, s:I, s:I, s:s, s:s, s:s}", "created_at", (json_int_t)meta->created_at,
                  "size_bytes", (json_int_t)meta->size_bytes, "files", (json_int_t)meta->files,
                  "fingerprint", meta->fingerprint, "base", meta->base, "digest", meta->digest);
    int r = object ? json_write(object, &text) : -ENOMEM;

    if (r >= 0)
        r = file_create_at(template_fd, "meta.json", 0600, text.data);
    return r < 0 ? err_sys(err, r, "write meta.json") : 0;
}

static int open_dir(int dir_fd, const char *name)
{
    return open_no_links(dir_fd, name, O_PATH | O_DIRECTORY, 0);
}

static void tree_close(struct template_tree *tree)
{
    for (size_t i = 0; i < tree->layer_count; i++)
        (void)fd_close(tree->layers[i]);
    (void)fd_close(tree->fd);
}

/* Makes fd the root and closes the previous one. Takes ownership of fd. */
static void root_set(struct template *template, int fd)
{
    if (template->tree_count > 0)
        tree_close(&template->trees[0]);
    else
        template->tree_count = 1;
    template->trees[0] = (struct template_tree){ .target = "/", .name = "root", .fd = fd };
}

/* Adds the layers of one template on top. */
static int layers_add(struct template *template, int layers_fd, const char *name, struct err *err)
{
    for (size_t i = 0; i < template->tree_count; i++) {
        struct template_tree *tree = &template->trees[i];
        int fd = open_dir(layers_fd, tree->name);

        if (fd == -ENOENT)
            continue;
        if (fd < 0)
            return err_sys(err, fd, "open a layer of template '%s'", name);
        if (tree->layer_count == TEMPLATE_LAYERS_MAX) {
            (void)close(fd);
            return err_set(err, ERR_INTERNAL, "template '%s' has too many layers", name);
        }
        memmove(tree->layers + 1, tree->layers, tree->layer_count * sizeof(tree->layers[0]));
        tree->layers[0] = fd;
        tree->layer_count++;
    }
    return 0;
}

static int template_fill(struct template *template, const char *name, size_t depth,
                         struct err *err);

/* Fills in the trees of the base of a template with layers. */
static int base_fill(struct template *template, int dir_fd, const char *name, size_t depth,
                     struct err *err)
{
    struct template_meta meta = { .base = "" };
    int r = template_meta_read(dir_fd, &meta, err);

    if (r < 0)
        return err_wrap(err, "template '%s'", name);
    if (depth > BASES_MAX)
        return err_set(err, ERR_INTERNAL, "template '%s' has too many bases", name);
    return meta.base[0] ? template_fill(template, meta.base, depth + 1, err) : 0;
}

static int template_fill(struct template *template, const char *name, size_t depth, struct err *err)
{
    cleanup_close int dir_fd = open_dir(template->store->templates_fd, name);
    cleanup_close int layers_fd = -EBADF;
    int root_fd, r = 0;

    if (dir_fd == -ENOENT)
        return template_not_found(name, err);
    if (dir_fd < 0)
        return err_sys(err, dir_fd, "open template '%s'", name);
    layers_fd = open_dir(dir_fd, "layers");
    if (layers_fd >= 0)
        r = base_fill(template, dir_fd, name, depth, err);
    if (r < 0)
        return r;
    root_fd = open_dir(dir_fd, "rootfs");
    if (root_fd >= 0)
        root_set(template, root_fd);
    else if (layers_fd < 0 || root_fd != -ENOENT)
        return err_sys(err, root_fd, "open the root of template '%s'", name);
    if (strcmp(name, TEMPLATE_HOST) == 0)
        r = template_host_open(template, err);
    return r < 0 || layers_fd < 0 ? r : layers_add(template, layers_fd, name, err);
}

static int settings_apply(struct template *template, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = template_settings_read(template->store, template->name, &settings, err);

    template->allows_setuid = settings.allows_setuid;
    return r;
}

/* Returns the open template of this name with another reference, or NULL. */
static struct template *template_share(struct store *store, const char *name)
{
    struct template *template;
    lock_scope(&store->lock);

    template = (*use_find(store, name))->open;
    if (template)
        template->refs++;
    return template;
}

/* Makes a template the one that is shared from now on. */
static void template_publish(struct template *template)
{
    lock_scope(&template->store->lock);

    (*use_find(template->store, template->name))->open = template;
}

void template_forget_open(struct store *store, const char *name)
{
    struct template_use *use;
    lock_scope(&store->lock);

    use = *use_find(store, name);
    if (use)
        use->open = NULL;
}

/* Returns whether this was the last reference. */
static bool template_unref(struct template *template)
{
    struct template_use *use;
    lock_scope(&template->store->lock);

    if (--template->refs > 0)
        return false;
    use = *use_find(template->store, template->name);
    if (use && use->open == template)
        use->open = NULL;
    return true;
}

int template_open(struct store *store, const char *name, struct template **ret, struct err *err)
{
    cleanup_with(template_close_slot) struct template *template = NULL;
    int r = name_check(name, err);

    if (r < 0)
        return r;
    /* Counted before the lookup, so that a concurrent removal sees it in use. */
    template_hold(store, name);
    *ret = template_share(store, name);
    if (*ret)
        return 0;
    template = xcalloc(1, sizeof(*template));
    template->store = store;
    template->refs = 1;
    (void)snprintf(template->name, sizeof(template->name), "%s", name);
    r = template_fill(template, name, 0, err);
    if (r == 0)
        r = settings_apply(template, err);
    if (r < 0)
        return r;
    template->lacks_points = mount_points_are_missing(&template->trees[0]);
    template_publish(template);
    *ret = TAKE_PTR(template);
    return 0;
}

void template_close(struct template *template)
{
    struct store *store = template ? template->store : NULL;
    char name[TEMPLATE_NAME_MAX + 1];

    if (!template)
        return;
    memcpy(name, template->name, sizeof(name));
    if (template_unref(template)) {
        for (size_t i = 0; i < template->tree_count; i++)
            tree_close(&template->trees[i]);
        free(template);
    }
    template_hold_drop(store, name);
}

static int info_read(struct store *store, const char *name, struct template_info *ret,
                     struct err *err)
{
    cleanup_close int fd = open_no_links(store->templates_fd, name, O_PATH | O_DIRECTORY, 0);
    struct template_meta meta;
    int r;

    if (fd < 0)
        return err_sys(err, fd, "open template '%s'", name);
    r = template_meta_read(fd, &meta, err);
    if (r < 0)
        return err_wrap(err, "template '%s'", name);
    *ret = (struct template_info){
        .is_host = strcmp(name, TEMPLATE_HOST) == 0,
        .size_bytes = meta.size_bytes,
        .files = meta.files,
        .created_at = meta.created_at,
    };
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", TEMPLATE_NAME_MAX, name);
    memcpy(ret->digest, meta.digest, sizeof(ret->digest));
    memcpy(ret->base, meta.base, sizeof(ret->base));
    return 0;
}

int template_get_info(struct store *store, const char *name, struct template_info *ret,
                      struct err *err)
{
    int r = name_check(name, err);

    return r == 0 ? info_read(store, name, ret, err) : r;
}

static int list_add(struct template_list *list, const struct template_info *info)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        struct template_info *items = reallocarray(list->items, capacity, sizeof(*items));

        if (!items)
            return -ENOMEM;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *info;
    return 0;
}

static int info_compare(const void *a, const void *b)
{
    return strcmp(((const struct template_info *)a)->name, ((const struct template_info *)b)->name);
}

int template_list(struct store *store, struct template_info **ret, size_t *ret_count,
                  struct err *err)
{
    cleanup_with(list_done) struct template_list list = { 0 };
    int fd = openat(store->templates_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct template_info info;
    int r;

    if (!dir) {
        r = err_sys(err, -errno, "list templates");
        (void)fd_close(fd);
        return r;
    }
    while ((entry = readdir(dir))) {
        if (!template_is_store_name(entry->d_name))
            continue;
        r = info_read(store, entry->d_name, &info, err);
        if (r == -ENOENT) /* removed concurrently */
            continue;
        if (r < 0)
            return r;
        r = list_add(&list, &info);
        if (r < 0)
            return err_sys(err, r, "list templates");
    }
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), info_compare);
    *ret_count = list.count;
    *ret = TAKE_PTR(list.items);
    return 0;
}

bool template_is_used(struct store *store, const char *name)
{
    lock_scope(&store->lock);

    return *use_find(store, name);
}

/* A search for templates that are based on the one to remove. */
struct base_search {
    struct store *store;
    const char *name;
    struct err *err;
};

static int base_check_one(void *context, const char *name)
{
    const struct base_search *search = context;
    cleanup_close int fd =
        template_is_store_name(name) ? open_dir(search->store->templates_fd, name) : -ENOENT;
    struct template_meta meta;
    struct err ignored;

    /* Without readable metadata there is no base to protect. */
    if (fd < 0 || template_meta_read(fd, &meta, &ignored) < 0 ||
        strcmp(meta.base, search->name) != 0)
        return 0;
    return err_set(search->err, ERR_BUSY,
                   "template '%s' is based on '%s' and must be removed first", name, search->name);
}

static int base_check(struct store *store, const char *name, struct err *err)
{
    struct base_search search = { .store = store, .name = name, .err = err };
    int r = 0;

    err->kind = ERR_NONE;
    r = store_each_name(store->templates_fd, base_check_one, &search);
    return r < 0 && err->kind == ERR_NONE ? err_sys(err, r, "list templates") : r;
}

/* Renames an unused template over the empty directory temp, which hides it. */
static int template_hide(struct store *store, const char *name, const char *temp, struct err *err)
{
    int r = 0;

    lock_take(&store->lock);
    /* What is held now may become a base; what was held is a base that base_check sees. */
    if (*use_find(store, name))
        r = err_refuse(err, CAUSE_TEMPLATE_IN_USE, "template '%s' is in use", name);
    else
        r = base_check(store, name, err);
    if (r == 0 && renameat(store->templates_fd, name, store->templates_fd, temp) < 0)
        r = errno == ENOENT ? template_not_found(name, err)
                            : err_sys(err, -errno, "remove template '%s'", name);
    lock_release(&store->lock);
    return r;
}

int template_remove(struct store *store, const char *name, struct err *err)
{
    char temp[STORE_TEMP_NAME_MAX];
    int removed, r = name_check(name, err);

    if (r < 0)
        return r;
    if (strcmp(name, TEMPLATE_HOST) == 0)
        return err_set(err, ERR_DENIED, "the template '%s' cannot be removed", TEMPLATE_HOST);
    r = base_check(store, name, err);
    if (r == 0)
        r = store_temp_dir(store->templates_fd, "removed", temp, err);
    if (r < 0)
        return r;
    r = template_hide(store, name, temp, err);
    removed = tree_remove_at(store->templates_fd, temp);
    if (r >= 0 && removed < 0)
        r = err_sys(err, removed, "remove the files of template '%s'", name);
    return r;
}

/* --- layers of images ------------------------------------------------------------------------- */

static bool is_layer(const struct template_info *info)
{
    return strncmp(info->name, TEMPLATE_LAYER_PREFIX, strlen(TEMPLATE_LAYER_PREFIX)) == 0;
}

static bool is_base(const struct template_info *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].base, name) == 0)
            return true;
    return false;
}

/* Returns how many layers were removed: those below them may be next. */
static size_t layers_collect_once(struct store *store)
{
    cleanup_free struct template_info *list = NULL;
    size_t count = 0, removed = 0;
    struct err ignored;

    if (template_list(store, &list, &count, &ignored) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (is_layer(&list[i]) && !is_base(list, count, list[i].name))
            removed += template_remove(store, list[i].name, &ignored) == 0;
    return removed;
}

void template_layers_collect(struct store *store)
{
    while (layers_collect_once(store) > 0)
        ;
}
