// SPDX-License-Identifier: Apache-2.0
/* Quotas of volumes, and what remains of them after the volume is removed. */
#include <inttypes.h>
#include <linux/btrfs_tree.h>

#include "base/io.h"
#include "kernel/btrfs.h"
#include "kernel/store/world.h"

enum { MIB = 1 << 20, QUOTA_MIB = 48, CLEANER_MS = 50, TRIES = 3 };

/* Appends random bytes to a file. Returns the MiB written before the quota was reached, or mib. */
static int fill_at(int fd, const char *path, int mib)
{
    cleanup_close int file = openat(fd, path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    cleanup_close int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    static char chunk[MIB];
    int done = 0;

    CHECK(file >= 0 || errno == EDQUOT, "(%s)", strerror(errno));
    CHECK(read_full(random, chunk, sizeof(chunk)) == sizeof(chunk));
    while (file >= 0 && done < mib) {
        ssize_t n = write(file, chunk, sizeof(chunk));

        if (n == sizeof(chunk) && fdatasync(file) == 0) {
            done++;
            continue;
        }
        CHECK(n >= 0 || errno == EDQUOT, "(%s)", strerror(errno));
        if (n < 0)
            break;
    }
    return done;
}

static int fill(struct volume *volume, const char *path, int mib)
{
    int fd = enter(volume), done = fill_at(fd, path, mib);

    leave(fd);
    return done;
}

static uint64_t usage_of(struct volume *volume)
{
    struct err err = { 0 };
    uint64_t bytes = 0;

    CHECK_OK(volume_usage(volume, &bytes, &err), &err);
    return bytes;
}

/* Removed files are charged until the next commit. */
static uint64_t usage_at_commit(struct volume *volume)
{
    write_out();
    return usage_of(volume);
}

/* Makes a file with a MiB in the page cache. Returns the number of the transaction that it is made
 * in: another one after a commit. */
static uint64_t make_in_transaction(int fd, const char *path)
{
    struct btrfs_ioctl_fs_info_args info = { .flags = BTRFS_FS_INFO_FLAG_GENERATION };
    cleanup_close int file = openat(fd, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    static const char chunk[MIB];

    CHECK(file >= 0 && write(file, chunk, sizeof(chunk)) == sizeof(chunk));
    CHECK(ioctl(world.store->volumes_fd, BTRFS_IOC_FS_INFO, &info) == 0);
    return info.generation;
}

/* Everybody on the filesystem waits for a commit, so reading the usage must not cause one. */
static void usage_is_current_without_a_commit(void)
{
    struct volume *volume;
    bool is_same = false;
    int fd;

    if (!world.filesystem->has_quota)
        return;
    volume = new_volume_on("base", "v", QUOTA_MIB * MIB);
    fd = enter(volume);                           /* leave() commits */
    for (int i = 0; i < TRIES && !is_same; i++) { /* the kernel commits every 30 s by itself */
        uint64_t generation = make_in_transaction(fd, "before"), usage = usage_of(volume);

        CHECK(usage >= MIB && usage <= 2 * TRIES * MIB, "(%" PRIu64 ")", usage);
        is_same = make_in_transaction(fd, "after") == generation;
        CHECK(unlinkat(fd, "before", 0) == 0 && unlinkat(fd, "after", 0) == 0);
    }
    CHECK(is_same);
    leave(fd);
    destroy(volume);
}

/* Counts quota groups: of volumes, and of removed subvolumes. */
static size_t count_groups(unsigned level)
{
    struct btrfs_ioctl_search_args args = { .key = {
                                                .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
                                                .min_type = BTRFS_QGROUP_INFO_KEY,
                                                .max_type = BTRFS_QGROUP_INFO_KEY,
                                                .max_transid = UINT64_MAX,
                                                .min_offset = (uint64_t)level << 48,
                                                .max_offset = ((uint64_t)(level + 1) << 48) - 1,
                                                .nr_items = 64,
                                            } };

    write_out();
    CHECK(ioctl(world.store->volumes_fd, BTRFS_IOC_TREE_SEARCH, &args) == 0);
    return args.key.nr_items;
}

/* With a quota on another filesystem than our own image, there are only directories. */
static void a_scratch_volume_has_a_quota(void)
{
    bool is_limited = strcmp(world.filesystem->name, "btrfs image") == 0;
    struct volume *volume;
    struct err err = { 0 };
    char path[48];
    int mib;

    CHECK_OK(volume_create_scratch(world.store, "v", base_open("base"), &volume, &err), &err);
    if (!is_limited) {
        if (volume_limit_scratch(volume, (uint64_t)QUOTA_MIB * MIB, &err) < 0)
            CHECK(err.kind == ERR_UNSUPPORTED);
        destroy(volume);
        return;
    }
    CHECK_OK(volume_limit_scratch(volume, (uint64_t)QUOTA_MIB * MIB, &err), &err);
    mib = fill(volume, "file", 2 * QUOTA_MIB);
    CHECK(mib > QUOTA_MIB / 2 && mib <= QUOTA_MIB, "(%d MiB)", mib);
    destroy(volume);
    /* The next volume of this name starts empty, and the abandoned one is removed at the next
     * start. */
    CHECK_OK(volume_create_scratch(world.store, "v", base_open("base"), &volume, &err), &err);
    CHECK(fill(volume, "file", 2 * QUOTA_MIB) == 2 * QUOTA_MIB);
    volume_close(volume);
    store_again();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", world.store->scratch_fd);
    CHECK(count_entries(path) == 0);
}

/* A filesystem of others is not changed until a quota is requested; our own image is ready. */
static void quota_is_on_where_it_was_asked_for(void)
{
    bool is_ours = strcmp(world.filesystem->name, "btrfs image") == 0;
    enum btrfs_quota state;

    if (!world.filesystem->has_quota)
        return;
    destroy(new_volume("v"));
    CHECK(btrfs_quota_state(world.store->volumes_fd, &state) == 0);
    CHECK(state == (is_ours ? BTRFS_QUOTA_SIMPLE : BTRFS_QUOTA_OFF));
    destroy(new_volume_on("base", "v", QUOTA_MIB * MIB));
    CHECK(btrfs_quota_state(world.store->volumes_fd, &state) == 0 && state == BTRFS_QUOTA_SIMPLE);
}

static bool is_without_quota(void)
{
    struct template *template;
    struct volume *volume;
    struct err err = { 0 };

    CHECK(store_has_quota(world.store) == world.filesystem->has_quota);
    if (world.filesystem->has_quota)
        return false;
    template = base_open("base");
    CHECK_KIND(volume_create(world.store, "v", template, 1 << 30, &volume, &err), &err,
               ERR_UNSUPPORTED);
    template_close(template);
    CHECK(count_volumes(false) == 0);
    return true;
}

static void a_quota_is_the_end_of_writing(void)
{
    struct volume *volume, *other;
    int fd, done;

    if (is_without_quota())
        return;
    volume = new_volume_on("base", "v", QUOTA_MIB * MIB);
    other = new_volume("other");
    fd = enter(volume);
    done = fill_at(fd, "big", 100);
    CHECK(done > QUOTA_MIB - 8 && done <= QUOTA_MIB, "(%d MiB)", done);
    CHECK(unlinkat(fd, "big", 0) == 0, "(%s)", strerror(errno));
    leave(fd);
    CHECK(fill(other, "big", QUOTA_MIB + 8) == QUOTA_MIB + 8);
    EVENTUALLY(usage_at_commit(volume) < MIB);
    CHECK(fill(volume, "big", 20) == 20);
    destroy(volume);
    destroy(other);
}

static void a_full_volume_works_in_all_other_ways(void)
{
    struct volume *volume;
    int fd;

    if (is_without_quota())
        return;
    volume = new_volume_on("base", "v", QUOTA_MIB * MIB);
    put(volume, "file", "x");
    keep(volume, "empty");
    (void)fill(volume, "big", 100);
    while (fill(volume, "more", 1) > 0)
        continue;
    keep(volume, "full");
    go_back(volume, "full");
    CHECK(volume_reads(volume, "file", "x"));
    volume_close(volume);
    store_again();
    volume = old_volume("v", 2);
    CHECK(volume_tidy(volume) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(volume_reads(volume, "file", "x"));
    CHECK(fill(volume, "even-more", 4) < 4);
    CHECK_OK(volume_remove_snapshot(volume, "full", &(struct err){ 0 }), &(struct err){ 0 });
    fd = enter(volume);
    CHECK(unlinkat(fd, "big", 0) == 0, "(%s)", strerror(errno));
    leave(fd);
    EVENTUALLY(usage_at_commit(volume) < 8 * MIB);
    CHECK(fill(volume, "again", 20) == 20);
    destroy(volume);
}

static void snapshots_count_and_rollbacks_do_not_reset(void)
{
    struct volume *volume;
    char name[16];
    int done;

    if (is_without_quota())
        return;
    volume = new_volume_on("base", "v", QUOTA_MIB * MIB);
    keep(volume, "s0");
    for (int i = 1; i <= 5; i++) {
        CHECK(fill(volume, "file", 5) == 5);
        (void)snprintf(name, sizeof(name), "s%d", i);
        keep(volume, name);
        go_back(volume, "s0");
    }
    CHECK(!volume_has(volume, "file") && usage_of(volume) >= 25 * MIB);
    done = fill(volume, "big", 100);
    CHECK(done >= QUOTA_MIB - 25 - 8 && done <= QUOTA_MIB - 25, "(%d MiB)", done);
    CHECK(usage_of(volume) <= QUOTA_MIB * MIB);
    destroy(volume);
}

static void a_fork_has_a_quota_of_its_own(void)
{
    struct volume *source, *fork;
    struct err err = { 0 };
    int done;

    if (is_without_quota())
        return;
    source = new_volume_on("base", "source", QUOTA_MIB * MIB);
    CHECK(fill(source, "file", 20) == 20);
    keep(source, "s");
    CHECK_OK(volume_fork(source, "s", "fork", 16 * MIB, &fork, &err), &err);
    done = fill(fork, "big", 100);
    CHECK(done >= 8 && done <= 16, "(%d MiB)", done);
    CHECK(usage_of(fork) <= 16 * MIB && usage_of(source) < 22 * MIB);
    CHECK(fill(source, "more", 20) == 20);
    destroy(source);
    CHECK(volume_has(fork, "file"));
    keep(fork, "s");
    go_back(fork, "s");
    CHECK(volume_has(fork, "file") && fill(fork, "another", 4) < 4);
    destroy(fork);
}

/* Creates and destroys one more volume, which retries the groups of earlier ones. */
static size_t groups_left(void)
{
    destroy(new_volume("passing"));
    return count_groups(1);
}

static void quota_groups_do_not_pile_up(void)
{
    struct volume *volume, *fork;
    struct err err = { 0 };

    if (is_without_quota())
        return;
    volume = new_volume_on("base", "v", QUOTA_MIB * MIB);
    for (int i = 0; i < 40; i++) {
        CHECK(fill(volume, "file", 1) == 1);
        keep(volume, "s");
        go_back(volume, "s");
        CHECK_OK(volume_remove_snapshot(volume, "s", &err), &err);
        /* Remove the old tree first, while the new one still holds its data. */
        write_out();
        pause_ms(CLEANER_MS);
        take(volume, "file");
    }
    EVENTUALLY((keep(volume, "s"), volume_remove_snapshot(volume, "s", &err)) == 0 &&
               count_groups(0) < 24);
    CHECK(fill(volume, "file", 2) == 2);
    CHECK_OK(volume_fork(volume, NULL, "fork", 0, &fork, &err), &err);
    destroy(volume);
    destroy(fork);
    EVENTUALLY(groups_left() <= 1 && count_volumes(true) <= 1);
    EVENTUALLY((store_again(), count_groups(1)) == 0);
    EVENTUALLY(count_groups(0) == 1); /* that of the filesystem itself */
    CHECK(count_volumes(true) == 0);
}

static void a_quota_can_change(void)
{
    struct volume *volume;
    struct err err = { 0 };
    int mib;

    if (is_without_quota()) {
        volume = new_volume("v");
        CHECK_KIND(volume_set_quota(volume, QUOTA_MIB * MIB, &err), &err, ERR_UNSUPPORTED);
        destroy(volume);
        return;
    }
    volume = new_volume_on("base", "v", 16 * MIB);
    mib = fill(volume, "file", 64);
    CHECK(mib < 16, "(%d MiB)", mib);
    CHECK_OK(volume_set_quota(volume, 40 * MIB, &err), &err);
    mib = fill(volume, "more", 64);
    CHECK(mib > 8 && mib < 40, "(%d MiB)", mib);
    CHECK_KIND(volume_set_quota(volume, 16 * MIB, &err), &err, ERR_INVALID);
    CHECK_OK(volume_set_quota(volume, 0, &err), &err);
    CHECK(fill(volume, "without", 8) == 8);
    CHECK_OK(volume_set_quota(volume, 64 * MIB, &err), &err);
    leave(enter(volume)); /* a mount sets the limit again */
    mib = fill(volume, "again", 64);
    CHECK(mib > 0 && mib < 32, "(%d MiB)", mib);
    destroy(volume);
}

static const struct claim claims[] = {
    CLAIM(a_scratch_volume_has_a_quota),
    CLAIM(quota_is_on_where_it_was_asked_for),
    CLAIM(a_quota_is_the_end_of_writing),
    CLAIM(a_full_volume_works_in_all_other_ways),
    CLAIM(usage_is_current_without_a_commit),
    CLAIM(snapshots_count_and_rollbacks_do_not_reset),
    CLAIM(a_fork_has_a_quota_of_its_own),
    CLAIM(quota_groups_do_not_pile_up),
    CLAIM(a_quota_can_change),
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
