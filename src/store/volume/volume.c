// SPDX-License-Identifier: Apache-2.0
#include "store/volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"
#include "store/volume/scratch.h"
#include "store/volume/usage.h"
#include "store/volume/volume_internal.h"

enum { DESTROY_SOME = 1000 }; /* entries: some milliseconds */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Returns whether a name is valid for a file of the store. */
static bool is_file_name(const char *name)
{
    size_t len = 1;

    if (!is_letter_or_digit(*name))
        return false;
    for (; name[len]; len++)
        if (len >= SNAPSHOT_NAME_MAX ||
            (!is_letter_or_digit(name[len]) && !strchr("_.-", name[len])))
            return false;
    return true;
}

static int id_check(const char *id, struct err *err)
{
    if (is_file_name(id))
        return 0;
    return err_set(err, ERR_INVALID, "'%.64s' is not a volume name", id);
}

bool volume_snapshot_is_name(const char *name)
{
    return is_file_name(name);
}

static int snapshot_check(const char *name, struct err *err)
{
    if (is_file_name(name))
        return 0;
    return err_set(err, ERR_INVALID,
                   "'%.64s' is not a snapshot name (letters, digits, '.', '_', '-', at most %d)",
                   name, SNAPSHOT_NAME_MAX);
}

static int scratch_error(const struct volume *volume, struct err *err)
{
    return err_refuse(err, CAUSE_SNAPSHOTS_NOT_AVAILABLE,
                      "volume '%s' is temporary and has no snapshots", volume->id);
}

static const struct store_ops *ops_of(const struct volume *volume)
{
    return volume->store->ops;
}

bool volume_is_whole(const struct volume *volume)
{
    return !volume->is_scratch && ops_of(volume)->is_whole;
}

static struct volume *volume_new(struct store *store, const char *id, uint32_t generation)
{
    struct volume *volume = xcalloc(1, sizeof(*volume));

    volume->store = store;
    volume->id = xstrdup(id);
    volume->generation = volume->last_generation = generation;
    volume->dir_fd = -EBADF;
    return volume;
}

void volume_close(struct volume *volume)
{
    if (!volume)
        return;
    (void)fd_close(volume->dir_fd);
    template_close(volume->template);
    free(volume->id);
    free(volume);
}

DEFINE_CLEANUP(volume_close, struct volume *);

int volume_destroy(struct volume *volume)
{
    int r;

    if (!volume)
        return 0;
    volume->dir_fd = fd_close(volume->dir_fd);
    r = volume->is_scratch ? scratch_remove(volume->store, volume->id)
                           : ops_of(volume)->destroy(volume);
    volume_close(volume);
    return r;
}

DEFINE_CLEANUP(volume_destroy, struct volume *);

int volume_destroy_some(struct volume **volume)
{
    struct volume *scratch = *volume;

    if (scratch && scratch->is_scratch) {
        scratch->dir_fd = fd_close(scratch->dir_fd);
        if (tree_remove_some_at(scratch->store->scratch_fd, scratch->id, DESTROY_SOME) == -EAGAIN)
            return -EAGAIN;
    }
    return volume_destroy(TAKE_PTR(*volume));
}

int volume_create_scratch(struct store *store, const char *id, struct template *template,
                          struct volume **ret, struct err *err)
{
    cleanup_with(volume_destroy_slot) struct volume *volume = NULL;
    int r = id_check(id, err);

    if (r < 0)
        return r;
    r = scratch_make(store, id);
    if (r < 0)
        return err_sys(err, r, "make volume '%s'", id);
    volume = volume_new(store, id, 1);
    volume->is_scratch = true;
    volume->dir_fd = r;
    volume->template = template;
    *ret = TAKE_PTR(volume);
    return 0;
}

int volume_limit_scratch(struct volume *volume, uint64_t quota_bytes, struct err *err)
{
    int r;

    if (!volume->store->is_scratch_limited)
        return err_set(err, ERR_UNSUPPORTED,
                       "the storage of throw-away sandboxes does not support quotas");
    r = scratch_limit(volume->dir_fd, quota_bytes);
    return r < 0 ? err_sys(err, r, "set the quota of volume '%s'", volume->id) : 0;
}

/* A search through the trees of a volume: criteria and results. */
struct tree_search {
    const char *snapshot;
    uint32_t generation;
    size_t trees;
    uint32_t last; /* highest generation */
    bool is_found;
};

static void tree_search_add(void *context, const char *snapshot, uint32_t generation)
{
    struct tree_search *search = context;

    search->trees++;
    if (snapshot ? search->snapshot && strcmp(snapshot, search->snapshot) == 0
                 : generation == search->generation)
        search->is_found = true;
    if (generation > search->last)
        search->last = generation;
}

static int tree_search_run(struct volume *volume, struct tree_search *search, struct err *err)
{
    int r = ops_of(volume)->list(volume, tree_search_add, search);

    return r < 0 && r != -ENOENT ? err_sys(err, r, "list the trees of volume '%s'", volume->id) : 0;
}

/* Fails for a quota that the storage does not support and for a name that exists. */
static int create_check(struct volume *volume, struct err *err)
{
    struct tree_search search = { 0 };
    int r;

    if (volume->quota_bytes > 0 && !volume->store->has_quota)
        return err_set(err, ERR_UNSUPPORTED,
                       "the storage of volumes (%.120s) does not support quotas",
                       volume->store->storage);
    r = tree_search_run(volume, &search, err);
    if (r == 0 && search.trees > 0)
        r = err_set(err, ERR_EXISTS, "volume '%s' already exists", volume->id);
    return r;
}

static int layers_check(const struct store *store, const struct template *template, struct err *err)
{
    if (!store->ops->is_whole || template->trees[0].layer_count == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "template '%s' has layers, which storage '%s' does not support", template->name,
                   store->ops->name);
}

/* Removes the remains of a failed create or fork, unless the volume existed before. */
static int create_undo(struct volume *volume, int r, const struct err *err)
{
    if (err->kind != ERR_EXISTS)
        (void)ops_of(volume)->destroy(volume);
    return r;
}

int volume_create(struct store *store, const char *id, struct template *template,
                  uint64_t quota_bytes, struct volume **ret, struct err *err)
{
    cleanup_with(volume_close_slot) struct volume *volume = NULL;
    int r = id_check(id, err);

    if (r == 0)
        r = layers_check(store, template, err);
    if (r < 0)
        return r;
    volume = volume_new(store, id, 1);
    volume->quota_bytes = quota_bytes;
    r = create_check(volume, err);
    if (r < 0)
        return r;
    volume->template = template;
    r = ops_of(volume)->create(volume, err);
    if (r < 0) {
        volume->template = NULL; /* still owned by the caller */
        return create_undo(volume, r, err);
    }
    *ret = TAKE_PTR(volume);
    return 0;
}

int volume_open(struct store *store, const char *id, struct template *template, uint32_t generation,
                struct volume **ret, struct err *err)
{
    cleanup_with(volume_close_slot) struct volume *volume = NULL;
    struct tree_search search = { .generation = generation };
    int r = id_check(id, err);

    if (r == 0)
        r = layers_check(store, template, err);
    if (r < 0)
        return r;
    volume = volume_new(store, id, generation);
    r = tree_search_run(volume, &search, err);
    if (r < 0)
        return r;
    if (search.trees == 0)
        return err_set(err, ERR_NOT_FOUND, "no volume '%s'", id);
    if (!search.is_found || generation == 0)
        return err_set(err, ERR_NOT_FOUND, "volume '%s' has no tree %" PRIu32, id, generation);
    if (search.last > volume->last_generation)
        volume->last_generation = search.last;
    volume->template = template;
    *ret = TAKE_PTR(volume);
    return 0;
}

static void summary_add(void *context, const char *snapshot, uint32_t generation)
{
    struct volume_summary *summary = context;

    summary->snapshots += snapshot != NULL;
    if (snapshot && summary->wanted && strcmp(snapshot, summary->wanted) == 0)
        summary->has_wanted = true;
    if (!snapshot && generation == summary->generation)
        summary->has_generation = true;
    if (generation > summary->last_generation)
        summary->last_generation = generation;
}

int volume_summarize(struct store *store, const char *id, struct volume_summary *summary,
                     struct err *err)
{
    cleanup_with(volume_close_slot) struct volume *volume = NULL;
    int r = id_check(id, err);

    if (r < 0)
        return r;
    *summary =
        (struct volume_summary){ .generation = summary->generation, .wanted = summary->wanted };
    volume = volume_new(store, id, 1);
    r = ops_of(volume)->list(volume, summary_add, summary);
    if (r == -ENOENT || (r == 0 && summary->last_generation == 0 && summary->snapshots == 0))
        return err_set(err, ERR_NOT_FOUND, "no volume '%s'", id);
    return r < 0 ? err_sys(err, r, "list the trees of volume '%s'", id) : 0;
}

int volume_each(struct store *store, int (*each)(void *context, const char *id), void *context,
                struct err *err)
{
    int r = store->ops->each(store, each, context);

    return r < 0 ? err_sys(err, r, "list the volumes") : 0;
}

static int snapshot_find(struct volume *volume, const char *name, struct tree_search *search,
                         struct err *err)
{
    int r = snapshot_check(name, err);

    if (r < 0)
        return r;
    if (volume->is_scratch)
        return scratch_error(volume, err);
    search->snapshot = name;
    return tree_search_run(volume, search, err);
}

/* Like snapshot_find, but fails if the snapshot does not exist. */
static int snapshot_require(struct volume *volume, const char *name, struct tree_search *search,
                            struct err *err)
{
    int r = snapshot_find(volume, name, search, err);

    if (r == 0 && !search->is_found)
        r = err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot '%.64s'", name);
    return r;
}

int volume_fork(struct volume *from, const char *snapshot, const char *id, uint64_t quota_bytes,
                struct volume **ret, struct err *err)
{
    cleanup_with(volume_close_slot) struct volume *volume = NULL;
    struct tree_search search = { 0 };
    int r = id_check(id, err);

    if (r == 0 && snapshot)
        r = snapshot_require(from, snapshot, &search, err);
    else if (r == 0 && from->is_scratch)
        r = scratch_error(from, err);
    if (r < 0)
        return r;
    volume = volume_new(from->store, id, 1);
    volume->quota_bytes = quota_bytes;
    r = create_check(volume, err);
    if (r == 0)
        r = template_open(from->store, from->template->name, &volume->template, err);
    if (r < 0)
        return r;
    volume->codebase = from->codebase;
    r = ops_of(volume)->branch(volume, 1, from, snapshot, err);
    if (r < 0)
        return create_undo(volume, r, err);
    *ret = TAKE_PTR(volume);
    return 0;
}

int volume_snapshot(struct volume *volume, const char *name, struct err *err)
{
    struct tree_search search = { 0 };
    int r = snapshot_find(volume, name, &search, err);

    if (r < 0)
        return r;
    if (search.is_found)
        return err_refuse(err, CAUSE_SNAPSHOT_EXISTS, "snapshot '%.64s' already exists", name);
    return ops_of(volume)->snapshot(volume, name, err);
}

bool volume_has_snapshot(struct volume *volume, const char *name)
{
    struct tree_search search = { 0 };
    struct err ignored;

    return snapshot_find(volume, name, &search, &ignored) == 0 && search.is_found;
}

int volume_branch(struct volume *volume, const char *snapshot, uint32_t *ret_generation,
                  struct err *err)
{
    struct tree_search search = { 0 };
    uint32_t generation;
    int r = snapshot_require(volume, snapshot, &search, err);

    if (r < 0)
        return r;
    generation = search.last > volume->last_generation ? search.last : volume->last_generation;
    if (generation == UINT32_MAX)
        return err_set(err, ERR_EXHAUSTED, "volume '%s' was rolled back too often", volume->id);
    r = ops_of(volume)->branch(volume, generation + 1, volume, snapshot, err);
    if (r < 0)
        return r;
    *ret_generation = volume->last_generation = generation + 1;
    return 0;
}

/* Atomic because volume_usage and volume_view may read it concurrently. */
void volume_switch(struct volume *volume, uint32_t generation)
{
    __atomic_store_n(&volume->generation, generation, __ATOMIC_RELEASE);
}

uint32_t volume_generation(const struct volume *volume)
{
    return __atomic_load_n(&volume->generation, __ATOMIC_ACQUIRE);
}

int volume_drop(struct volume *volume, uint32_t generation)
{
    if (volume->is_scratch || generation == volume_generation(volume))
        return -EBUSY;
    return ops_of(volume)->drop(volume, NULL, generation);
}

/* A list of generations or of names. */
struct listing {
    uint32_t live; /* the live generation, which is omitted */
    uint32_t *generations;
    size_t generation_count;
    char **names;
    size_t name_count;
};

/* Makes room for one more element; the capacity is a power of two. */
static void *array_grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    array = reallocarray(array, count ? count * 2 : 1, size);
    if (!array)
        abort();
    return array;
}

static void listing_add(void *context, const char *snapshot, uint32_t generation)
{
    struct listing *listing = context;

    if (snapshot) {
        listing->names = array_grow(listing->names, listing->name_count, sizeof(*listing->names));
        listing->names[listing->name_count++] = xstrdup(snapshot);
    } else if (generation != listing->live) {
        listing->generations = array_grow(listing->generations, listing->generation_count,
                                          sizeof(*listing->generations));
        listing->generations[listing->generation_count++] = generation;
    }
}

static void listing_done(struct listing *listing)
{
    for (size_t i = 0; i < listing->name_count; i++)
        free(listing->names[i]);
    free(listing->names);
    free(listing->generations);
}

int volume_tidy(struct volume *volume)
{
    cleanup_with(listing_done) struct listing listing = { .live = volume_generation(volume) };
    int r, first = 0;

    if (volume->is_scratch)
        return 0;
    r = ops_of(volume)->list(volume, listing_add, &listing);
    if (r < 0)
        return r;
    for (size_t i = 0; i < listing.generation_count; i++) {
        r = ops_of(volume)->drop(volume, NULL, listing.generations[i]);
        if (r < 0 && r != -ENOENT && first == 0)
            first = r;
    }
    return first;
}

int volume_remove_snapshot(struct volume *volume, const char *name, struct err *err)
{
    struct tree_search search = { 0 };
    int r = snapshot_require(volume, name, &search, err);

    if (r < 0)
        return r;
    r = ops_of(volume)->drop(volume, name, 0);
    return r < 0 ? err_sys(err, r, "remove snapshot '%.64s' of volume '%s'", name, volume->id) : 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int volume_list_snapshots(struct volume *volume, char ***ret_names, size_t *ret_count,
                          struct err *err)
{
    cleanup_with(listing_done) struct listing listing = { 0 };
    int r = volume->is_scratch ? 0 : ops_of(volume)->list(volume, listing_add, &listing);

    if (r < 0)
        return err_sys(err, r, "list the snapshots of volume '%s'", volume->id);
    if (listing.name_count > 0)
        qsort(listing.names, listing.name_count, sizeof(*listing.names), name_compare);
    *ret_count = listing.name_count;
    *ret_names = TAKE_PTR(listing.names);
    listing.name_count = 0;
    return 0;
}

static int scratch_usage(const struct volume *volume, uint64_t *ret_bytes)
{
    cleanup_with(usage_done) struct usage usage = { 0 };
    int r = usage_add(&usage, volume->dir_fd);

    *ret_bytes = usage.bytes;
    return r;
}

uint64_t volume_usage_settled(struct volume *volume)
{
    const struct store_ops *ops = ops_of(volume);
    uint64_t bytes = 0;
    int r = ops->usage_settled ? ops->usage_settled(volume, &bytes) : ops->usage(volume, &bytes);

    return r < 0 ? 0 : bytes;
}

int volume_usage(struct volume *volume, uint64_t *ret_bytes, struct err *err)
{
    uint64_t bytes;
    int r =
        volume->is_scratch ? scratch_usage(volume, &bytes) : ops_of(volume)->usage(volume, &bytes);

    if (r < 0)
        return err_sys(err, r, "measure volume '%s'", volume->id);
    *ret_bytes = bytes;
    return 0;
}

int volume_set_quota(struct volume *volume, uint64_t quota_bytes, struct err *err)
{
    uint64_t used = 0;
    int r;

    if (!ops_of(volume)->limit || !volume->store->has_quota)
        return err_set(err, ERR_UNSUPPORTED, "the '%s' storage backend does not support quotas",
                       ops_of(volume)->name);
    r = quota_bytes > 0 ? volume_usage(volume, &used, err) : 0;
    if (r < 0)
        return r;
    if (quota_bytes > 0 && quota_bytes < used)
        return err_set(err, ERR_INVALID,
                       "a quota of %" PRIu64 " bytes is too small: %" PRIu64 " are in use",
                       quota_bytes, used);
    r = ops_of(volume)->limit(volume, quota_bytes, err);
    if (r == 0)
        volume->quota_bytes = quota_bytes;
    return r;
}

int volume_purge(struct store *store, const char *id)
{
    struct err ignored;
    int r = id_check(id, &ignored) < 0 ? -EINVAL : volume_destroy(volume_new(store, id, 1));

    return r == -ENOENT ? 0 : r;
}
