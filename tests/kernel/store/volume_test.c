// SPDX-License-Identifier: Apache-2.0
/* Behaviour of volumes on every kind of storage. */
#include "kernel/store/world.h"

static void what_is_written_is_there_and_the_template_is_untouched(void)
{
    struct volume *volume = new_volume("v");
    struct template *template = base_open("base");

    put(volume, "new", "1");
    put(volume, "a", "changed");
    take(volume, "b");
    CHECK(volume_reads(volume, "new", "1") && volume_reads(volume, "a", "changed"));
    CHECK(!volume_has(volume, "b") && volume_reads(volume, "dir/sub/deep", "deep"));
    CHECK(reads(template->trees[0].fd, "a", "a") && has(template->trees[0].fd, "b"));
    template_close(template);
    destroy(volume);
    CHECK(count_volumes(false) == 0);
}

static void a_rollback_brings_back_what_was(void)
{
    struct volume *volume = new_volume("v");

    put(volume, "file", "one");
    keep(volume, "s1");
    put(volume, "file", "two");
    put(volume, "later", "x");
    take(volume, "a");
    keep(volume, "s2");
    go_back(volume, "s1");
    CHECK(volume_reads(volume, "file", "one") && !volume_has(volume, "later"));
    CHECK(volume_reads(volume, "a", "a"));
    put(volume, "file", "three");
    go_back(volume, "s2");
    CHECK(volume_reads(volume, "file", "two") && volume_has(volume, "later"));
    CHECK(!volume_has(volume, "a"));
    go_back(volume, "s1");
    CHECK(volume_reads(volume, "file", "one"));
    destroy(volume);
}

static void volumes_on_one_template_do_not_see_each_other(void)
{
    struct volume *one = new_volume("one"), *two = new_volume("two");

    put(one, "a", "one");
    put(two, "a", "two");
    take(two, "b");
    put(one, "only-one", "x");
    CHECK(volume_reads(one, "a", "one") && volume_has(one, "b"));
    CHECK(volume_reads(two, "a", "two") && !volume_has(two, "only-one"));
    destroy(one);
    CHECK(volume_reads(two, "a", "two"));
    destroy(two);
}

static void snapshots_have_names(void)
{
    struct volume *volume = new_volume("v");
    struct err err = { 0 };

    check_snapshots(volume, "");
    keep(volume, "b");
    keep(volume, "a");
    keep(volume, "C.1_x-y");
    check_snapshots(volume, "C.1_x-y a b");
    CHECK(volume_has_snapshot(volume, "a") && !volume_has_snapshot(volume, "c"));
    CHECK_KIND(volume_snapshot(volume, "a", &err), &err, ERR_EXISTS);
    CHECK(err.cause == CAUSE_SNAPSHOT_EXISTS);
    CHECK_OK(volume_remove_snapshot(volume, "a", &err), &err);
    CHECK_KIND(volume_remove_snapshot(volume, "a", &err), &err, ERR_NOT_FOUND);
    CHECK(err.cause == CAUSE_SNAPSHOT_NOT_FOUND);
    CHECK_KIND(volume_branch(volume, "a", &(uint32_t){ 0 }, &err), &err, ERR_NOT_FOUND);
    check_snapshots(volume, "C.1_x-y b");
    destroy(volume);
}

static void names_cannot_be_paths(void)
{
    static const char *const bad[] = { "",        ".",   "..",  "../x", "a/b",      "/a",
                                       ".hidden", "a b", "a\n", "-x",   "\xc3\xa4", "_x" };
    struct volume *volume = new_volume("v"), *other;
    struct template *template = base_open("base");
    struct err err = { 0 };
    char name[258];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_KIND(volume_snapshot(volume, bad[i], &err), &err, ERR_INVALID);
        CHECK_KIND(volume_remove_snapshot(volume, bad[i], &err), &err, ERR_INVALID);
        CHECK_KIND(volume_branch(volume, bad[i], &(uint32_t){ 0 }, &err), &err, ERR_INVALID);
        CHECK_KIND(volume_create(world.store, bad[i], template, 0, &other, &err), &err,
                   ERR_INVALID);
        CHECK_KIND(volume_fork(volume, NULL, bad[i], 0, &other, &err), &err, ERR_INVALID);
        CHECK_KIND(volume_create_scratch(world.store, bad[i], template, &other, &err), &err,
                   ERR_INVALID);
        CHECK(!volume_has_snapshot(volume, bad[i]));
    }
    memset(name, 'n', 256);
    name[256] = '\0';
    CHECK_KIND(volume_snapshot(volume, name, &err), &err, ERR_INVALID);
    name[255] = '\0';
    put(volume, "file", "kept");
    keep(volume, name);
    put(volume, "file", "lost");
    go_back(volume, name);
    CHECK(volume_reads(volume, "file", "kept"));
    CHECK_OK(volume_remove_snapshot(volume, name, &err), &err);
    template_close(template);
    destroy(volume);
}

static void names_are_taken_once(void)
{
    struct volume *volume = new_volume("v"), *other;
    struct template *template = base_open("base");
    struct err err = { 0 };

    put(volume, "file", "x");
    CHECK_KIND(volume_create(world.store, "v", template, 0, &other, &err), &err, ERR_EXISTS);
    CHECK_KIND(volume_fork(volume, NULL, "v", 0, &other, &err), &err, ERR_EXISTS);
    CHECK(volume_reads(volume, "file", "x"));
    CHECK_KIND(volume_open(world.store, "w", template, 1, &other, &err), &err, ERR_NOT_FOUND);
    CHECK_KIND(volume_open(world.store, "v", template, 2, &other, &err), &err, ERR_NOT_FOUND);
    CHECK_KIND(volume_open(world.store, "v", template, 0, &other, &err), &err, ERR_NOT_FOUND);
    template_close(template);
    destroy(volume);
}

static void generations_only_grow_and_tidy_leaves_the_live_one(void)
{
    struct volume *volume = new_volume("v");
    uint32_t one, two, three;
    struct err err = { 0 };

    put(volume, "file", "old");
    keep(volume, "s");
    CHECK(volume_generation(volume) == 1 && volume_drop(volume, 1) == -EBUSY);
    CHECK_OK(volume_branch(volume, "s", &one, &err), &err);
    CHECK_OK(volume_branch(volume, "s", &two, &err), &err);
    CHECK(one == 2 && two == 3 && volume_drop(volume, two) == 0);
    CHECK(volume_drop(volume, two) == -ENOENT);
    CHECK_OK(volume_branch(volume, "s", &three, &err), &err);
    CHECK(three == 4);
    volume_switch(volume, three);
    put(volume, "file", "new");
    volume_close(volume);
    volume = old_volume("v", three);
    CHECK(volume_tidy(volume) == 0);
    CHECK(volume_drop(volume, 1) == -ENOENT && volume_drop(volume, one) == -ENOENT);
    CHECK(volume_reads(volume, "file", "new") && volume_has_snapshot(volume, "s"));
    destroy(volume);
}

static void a_fork_and_its_source_are_two(void)
{
    struct volume *source = new_volume("source"), *now, *then;
    struct err err = { 0 };

    put(source, "file", "then");
    keep(source, "s");
    put(source, "file", "now");
    CHECK_OK(volume_fork(source, NULL, "now", 0, &now, &err), &err);
    CHECK_OK(volume_fork(source, "s", "then", 0, &then, &err), &err);
    CHECK_KIND(volume_fork(source, "t", "other", 0, &now, &err), &err, ERR_NOT_FOUND);
    check_snapshots(now, "");
    put(source, "file", "source");
    put(now, "only", "x");
    take(then, "file");
    CHECK(volume_reads(source, "file", "source") && !volume_has(source, "only"));
    CHECK(volume_reads(now, "file", "now") && !volume_has(then, "file"));
    go_back(source, "s");
    CHECK(volume_reads(source, "file", "then") && volume_reads(now, "file", "now"));
    destroy(source);
    CHECK(volume_reads(now, "file", "now"));
    keep(now, "s");
    destroy(now);
    put(then, "file", "again");
    destroy(then);
    CHECK(count_volumes(false) == 0);
}

static void a_view_shows_each_state_as_layers(void)
{
    struct volume *volume = new_volume("v");
    struct volume_view view;
    struct err err = { 0 };

    put(volume, "new", "then");
    keep(volume, "s");
    put(volume, "new", "now");
    CHECK_OK(volume_view(volume, NULL, &view, &err), &err);
    CHECK(view.tree_count == 1 && view.trees[0].count == 2 && view.owner_shift == 0);
    CHECK_TEXT(view.trees[0].target, "/");
    CHECK(reads(view.trees[0].fds[0], "new", "now") && reads(view.trees[0].fds[1], "a", "a"));
    volume_view_done(volume, &view);
    CHECK_OK(volume_view(volume, "s", &view, &err), &err);
    CHECK(view.trees[0].count == 2 && reads(view.trees[0].fds[0], "new", "then"));
    volume_view_done(volume, &view);
    CHECK_OK(volume_view(volume, "", &view, &err), &err);
    CHECK(view.trees[0].count == 1 && reads(view.trees[0].fds[0], "a", "a"));
    volume_view_done(volume, &view);
    CHECK_KIND(volume_view(volume, "t", &view, &err), &err, ERR_NOT_FOUND);
    CHECK_KIND(volume_view(volume, "../x", &view, &err), &err, ERR_NOT_FOUND);
    destroy(volume);
}

static void a_scratch_volume_is_gone_at_the_next_start(void)
{
    struct volume *volume;
    struct err err = { 0 };
    uint64_t bytes;

    CHECK_OK(volume_create_scratch(world.store, "v", base_open("base"), &volume, &err), &err);
    put(volume, "file", "x");
    CHECK_KIND(volume_snapshot(volume, "s", &err), &err, ERR_UNSUPPORTED);
    CHECK_KIND(volume_fork(volume, NULL, "w", 0, &volume, &err), &err, ERR_UNSUPPORTED);
    CHECK_OK(volume_usage(volume, &bytes, &err), &err);
    volume_close(volume);
    store_again();
    CHECK_OK(volume_create_scratch(world.store, "v", base_open("base"), &volume, &err), &err);
    CHECK(!volume_has(volume, "file"));
    destroy(volume);
}

static void fill(struct volume *volume, const char *path, size_t bytes)
{
    int fd = enter(volume);
    cleanup_close int file = openat(fd, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    cleanup_close int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    static char chunk[1 << 20];

    CHECK(file >= 0 && random >= 0 && read(random, chunk, sizeof(chunk)) == sizeof(chunk));
    for (size_t done = 0; done < bytes; done += sizeof(chunk))
        CHECK(write(file, chunk, sizeof(chunk)) == sizeof(chunk));
    leave(fd);
}

static uint64_t usage_of(struct volume *volume)
{
    struct err err = { 0 };
    uint64_t bytes = 0;

    CHECK_OK(volume_usage(volume, &bytes, &err), &err);
    return bytes;
}

static void usage_is_what_a_volume_holds(void)
{
    const uint64_t mib = 1 << 20;
    struct volume *volume = new_volume("v");
    uint64_t empty = usage_of(volume), full, changed;
    struct err err = { 0 };

    CHECK(empty < mib);
    fill(volume, "file", 8 * mib);
    full = usage_of(volume);
    CHECK(full >= 8 * mib && full < 9 * mib, "(%llu)", (unsigned long long)full);
    keep(volume, "s");
    fill(volume, "file", 8 * mib);
    changed = usage_of(volume);
    CHECK(changed >= 16 * mib && changed < 18 * mib, "(%llu)", (unsigned long long)changed);
    CHECK_OK(volume_remove_snapshot(volume, "s", &err), &err);
    EVENTUALLY(usage_of(volume) < 9 * mib);
    take(volume, "file");
    EVENTUALLY(usage_of(volume) < mib);
    destroy(volume);
}

static void the_store_knows_its_space(void)
{
    const uint64_t mib = 1 << 20;
    struct volume *volume = new_volume("v");
    struct store_space before, after;
    struct err err = { 0 };

    CHECK_OK(store_space(world.store, &before, &err), &err);
    fill(volume, "file", 16 * mib);
    write_out();
    CHECK_OK(store_space(world.store, &after, &err), &err);
    CHECK(after.used >= before.used + 15 * mib);
    CHECK(after.available + 15 * mib <= before.available + mib);
    CHECK(before.available <= 400 * mib);
    destroy(volume);
}

static const struct claim claims[] = {
    CLAIM(the_store_knows_its_space), /* first: later tests free space asynchronously */
    CLAIM(what_is_written_is_there_and_the_template_is_untouched),
    CLAIM(a_rollback_brings_back_what_was),
    CLAIM(volumes_on_one_template_do_not_see_each_other),
    CLAIM(snapshots_have_names),
    CLAIM(names_cannot_be_paths),
    CLAIM(names_are_taken_once),
    CLAIM(generations_only_grow_and_tidy_leaves_the_live_one),
    CLAIM(a_fork_and_its_source_are_two),
    CLAIM(a_view_shows_each_state_as_layers),
    CLAIM(a_scratch_volume_is_gone_at_the_next_start),
    CLAIM(usage_is_what_a_volume_holds),
};

static void all(void)
{
    world_begin();
    run_claims(claims, ARRAY_SIZE(claims));
    (void)close(world.userns_fd);
}

int main(void)
{
    RUN(all);
    return 0;
}
