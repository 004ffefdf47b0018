/* The expected result of a diff, computed from every file of two trees. */
#pragma once

#include <dirent.h>

#include "kernel/store/diff_world.h"

enum { ITEMS_MAX = 4000, TEXT_MAX = 64, PATH_BYTES = 128 };

struct item {
    char path[PATH_BYTES];
    mode_t mode;
    uid_t uid;
    gid_t gid;
    dev_t rdev;
    uint64_t size;
    char text[TEXT_MAX + 1]; /* contents, or target of a link */
};

struct state {
    struct item items[ITEMS_MAX];
    size_t count;
};

static void scan(struct state *state, int dir_fd, const char *path);

static void scan_one(struct state *state, int dir_fd, const char *path, const char *name)
{
    struct item *item = &state->items[state->count++];
    cleanup_close int fd = -EBADF;
    struct stat st;

    CHECK(state->count <= ITEMS_MAX && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
    (void)memset(item, 0, sizeof(*item));
    CHECK(snprintf(item->path, sizeof(item->path), "%s/%s", path, name) < PATH_BYTES);
    item->mode = st.st_mode;
    item->uid = st.st_uid;
    item->gid = st.st_gid;
    item->rdev = st.st_rdev;
    if (S_ISLNK(st.st_mode))
        CHECK(readlinkat(dir_fd, name, item->text, TEXT_MAX) >= 0);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        item->size = strlen(item->text);
        return;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    if (S_ISDIR(st.st_mode)) {
        scan(state, fd, item->path);
        return;
    }
    item->size = (uint64_t)st.st_size;
    CHECK(st.st_size <= TEXT_MAX && read(fd, item->text, TEXT_MAX) == st.st_size);
}

static void scan(struct state *state, int dir_fd, const char *path)
{
    DIR *dir = fdopendir(dup(dir_fd));
    struct dirent *entry;

    CHECK(dir);
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            scan_one(state, dir_fd, path, entry->d_name);
    }
    (void)closedir(dir);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->path, ((const struct item *)b)->path);
}

static inline void state_take(struct state *state, const char *root)
{
    cleanup_close int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    state->count = 0;
    scan(state, fd, "");
    qsort(state->items, state->count, sizeof(struct item), by_path);
}

static inline const struct item *state_find(const struct state *state, const char *path)
{
    struct item wanted;

    (void)snprintf(wanted.path, sizeof(wanted.path), "%s", path);
    return bsearch(&wanted, state->items, state->count, sizeof(struct item), by_path);
}

static bool is_named(const struct state *state, const struct item *item)
{
    size_t len;

    if (!item || !S_ISDIR(item->mode))
        return item != NULL;
    len = strlen(item->path);
    for (size_t i = 0; i < state->count; i++) {
        const char *path = state->items[i].path;

        if (strncmp(path, item->path, len) == 0 && path[len] == '/')
            return false;
    }
    return true;
}

static bool is_equal(const struct item *a, const struct item *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->rdev == b->rdev &&
           (S_ISDIR(a->mode) ||
            (a->size == b->size && memcmp(a->text, b->text, sizeof(a->text)) == 0));
}

/* 'A', 'M', 'D' or 0. */
static char oracle(const struct state *old, const struct state *new, const char *path)
{
    const struct item *was = state_find(old, path), *is = state_find(new, path);
    bool had = is_named(old, was), has = is_named(new, is);

    if (was && is && is_equal(was, is))
        return 0;
    if (was && is && S_ISDIR(was->mode) && S_ISDIR(is->mode))
        return 'M';
    if (had && has)
        return 'M';
    return had ? 'D' : has ? 'A' : (char)0;
}

/* The reports of diff_run. */
struct claim {
    char kind; /* a rename is two: 'A' and 'D' */
    bool is_rename;
    char path[PATH_BYTES];
};

struct claims {
    const struct state *old, *new;
    struct claim list[2 * ITEMS_MAX];
    size_t count;
    char last[PATH_BYTES];
};

static size_t oracle_renames, oracle_changes; /* total so far */

static void claim_add(struct claims *claims, char kind, const char *path, bool is_rename)
{
    struct claim *claim = &claims->list[claims->count++];

    CHECK(claims->count <= ARRAY_SIZE(claims->list));
    claim->kind = kind;
    claim->is_rename = is_rename;
    (void)snprintf(claim->path, sizeof(claim->path), "%s", path);
}

static char letter(mode_t mode)
{
    return S_ISREG(mode)    ? 'f'
           : S_ISDIR(mode)  ? 'd'
           : S_ISLNK(mode)  ? 'l'
           : S_ISFIFO(mode) ? 'p'
                            : '?';
}

static uint64_t size_of(const struct item *item)
{
    return item && !S_ISDIR(item->mode) ? item->size : 0;
}

static int claim_check(const struct diff_entry *entry, void *context)
{
    struct claims *claims = context;
    const struct item *was =
        state_find(claims->old, entry->old_path ? entry->old_path : entry->path);
    const struct item *is = state_find(claims->new, entry->path);

    CHECK(strcmp(claims->last, entry->path) < 0, "(%s after %s)", entry->path, claims->last);
    (void)snprintf(claims->last, sizeof(claims->last), "%s", entry->path);
    oracle_changes++;
    CHECK(entry->old_size ==
              (entry->kind == DIFF_ADDED && was && S_ISDIR(was->mode) ? 0 : size_of(was)),
          "(%s)", entry->path);
    CHECK(entry->size == (entry->kind == DIFF_DELETED ? 0 : size_of(is)), "(%s)", entry->path);
    CHECK(entry->type == letter(entry->kind == DIFF_DELETED ? was->mode : is->mode));
    if (entry->kind != DIFF_RENAMED) {
        claim_add(claims, (char)entry->kind, entry->path, false);
        return 0;
    }
    oracle_renames++;
    CHECK(was && is && is_equal(was, is) && is->size > 0 && !S_ISDIR(is->mode), "(%s)",
          entry->path);
    claim_add(claims, 'A', entry->path, true);
    claim_add(claims, 'D', entry->old_path, true);
    return 0;
}

/* Checks that no pair remains that should have been a rename. */
static void claims_check_renames(const struct claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct claim *added = &claims->list[i];
        const struct item *is = state_find(claims->new, added->path);

        if (added->kind != 'A' || added->is_rename || is->size == 0 ||
            (!S_ISREG(is->mode) && !S_ISLNK(is->mode)))
            continue;
        for (size_t k = 0; k < claims->count; k++) {
            const struct claim *deleted = &claims->list[k];

            if (deleted->kind == 'D' && !deleted->is_rename)
                CHECK(!is_equal(is, state_find(claims->old, deleted->path)),
                      "(%s could be %s renamed)", added->path, deleted->path);
        }
    }
}

static size_t state_expect(const struct claims *claims, const struct state *paths,
                           const struct state *but)
{
    size_t count = 0;

    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i].path;
        char wanted = oracle(claims->old, claims->new, path);
        bool is_there = false;

        if (!wanted || (but && state_find(but, path)))
            continue;
        count++;
        for (size_t k = 0; k < claims->count; k++)
            is_there |= claims->list[k].kind == wanted && strcmp(claims->list[k].path, path) == 0;
        CHECK(is_there, "(%c %s is missing)", wanted, path);
    }
    return count;
}

/* Compares the reports of diff_run about layers with the states that they showed. */
static inline void oracle_check(const char *old_layers, const struct state *old,
                                const char *new_layers, const struct state *new,
                                const struct diff_options *options)
{
    static struct claims claims;
    cleanup_with(view_close) struct volume_view old_view = view_open("/", old_layers, NULL);
    cleanup_with(view_close) struct volume_view new_view = view_open("/", new_layers, NULL);
    struct err err = { 0 };
    size_t wanted;

    (void)memset(&claims, 0, sizeof(claims));
    claims.old = old;
    claims.new = new;
    CHECK(diff_run(&old_view, &new_view, options, claim_check, &claims, &err) == 0, "(%s)",
          err.msg);
    wanted = state_expect(&claims, old, NULL) + state_expect(&claims, new, old);
    CHECK(claims.count == wanted, "(%zu, wanted %zu)", claims.count, wanted);
    claims_check_renames(&claims);
}
