// SPDX-License-Identifier: Apache-2.0
/* The zfs backend on a real pool: trees, snapshots, forks, and every order of their removal. */
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "kernel/store/zfs_world.h"

/* Writes until an error or the limit. Returns the MiB written, and the reason for the end. */
static int fill(int dir_fd, const char *name, int mib, int *ret_errno)
{
    static char chunk[MIB];
    cleanup_close int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    int written = 0;

    *ret_errno = fd < 0 ? errno : 0;
    for (size_t i = 0; i < sizeof(chunk); i++)
        chunk[i] = (char)(i * 7 + i / 251); /* does not compress to a hole */
    while (*ret_errno == 0 && written < mib) {
        ssize_t n = write(fd, chunk, sizeof(chunk));

        if (n >= 0)
            written += n == (ssize_t)sizeof(chunk); /* the next one returns the reason */
        else if (errno == EAGAIN)
            pause_ms(POLL_MS); /* zfs-fuse, near a quota, when it expects space soon */
        else
            *ret_errno = errno;
    }
    return written;
}

static void a_volume_is_the_template_with_shifted_owners(void)
{
    struct volume *volume = make_volume("one", 0);
    int fd = open_live(volume);
    struct statvfs mounted;
    struct stat st, other;

    check_text(fd, "file", "of the template");
    check_text(fd, "soft", "of the template");
    CHECK(fstatat(fd, ".", &st, 0) == 0 && st.st_uid == SHARED_UID && st.st_gid == SHARED_UID);
    CHECK(fstatat(fd, "file", &st, 0) == 0 && st.st_uid == SHARED_UID && st.st_nlink == 2);
    CHECK(fstatat(fd, "hard", &other, 0) == 0 && other.st_ino == st.st_ino);
    CHECK(fstatat(fd, "soft", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == SHARED_UID + 7 &&
          st.st_gid == SHARED_UID + 8);
    CHECK(fstatat(fd, "dir/setuid", &st, 0) == 0 && st.st_uid == SHARED_UID + 1000 &&
          st.st_gid == SHARED_UID + 1001 && (st.st_mode & 07777) == 04755);
    CHECK(fstatvfs(fd, &mounted) == 0);
    CHECK((mounted.f_flag & (ST_NODEV | ST_NOSUID)) == (ST_NODEV | ST_NOSUID));
    (void)close(fd);
    check_list(volume, "| 1");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void volumes_do_not_see_each_other(void)
{
    struct volume *one = make_volume("one", 0), *two = make_volume("two", 0);

    write_live(one, "file", "changed");
    check_live(two, "file", "of the template");
    destroy_volume(one);
    check_live(two, "file", "of the template");
    destroy_volume(two);
    CHECK_EMPTY();
}

static void a_name_is_taken_once(void)
{
    struct volume *one = make_volume("one", 0), *again = volume_of("one", TEMPLATE, 0);
    struct err err = { 0 };

    CHECK(store_zfs.create(again, &err) < 0 && err.kind == ERR_EXISTS, "(%s)", err.msg);
    take_snapshot(one, "a");
    CHECK(store_zfs.snapshot(one, "a", &err) < 0 && err.cause == CAUSE_SNAPSHOT_EXISTS);
    roll_back(one, "a");
    /* It belongs to another tree by now. */
    CHECK(store_zfs.snapshot(one, "a", &err) < 0 && err.cause == CAUSE_SNAPSHOT_EXISTS);
    CHECK(store_zfs.branch(one, 9, one, "b", &err) < 0 && err.cause == CAUSE_SNAPSHOT_NOT_FOUND);
    CHECK(store_zfs.drop(one, "b", 0) == -ENOENT);
    CHECK(store_zfs.drop(one, NULL, 9) == -ENOENT);
    volume_forget(again);
    destroy_volume(one);
    CHECK_EMPTY();
}

static void a_quota_holds_tree_and_snapshots_together(void)
{
    struct volume *volume = make_volume("one", 32 * MIB);
    int fd = open_live(volume), error, written;

    written = fill(fd, "big", 20, &error);
    CHECK(error == 0 && written == 20);
    take_snapshot(volume, "a");
    CHECK(unlinkat(fd, "big", 0) == 0);
    written = fill(fd, "more", 30, &error);
    CHECK(error == EDQUOT && written < 20, "(%d MiB, %s)", written, strerror(error));
    (void)close(fd);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void check_quota(const char *id, const char *wanted)
{
    cleanup_free char *name = xasprintf("%s/holt/volumes/%s", world.pool, id);
    cleanup_free char *quota = OUTPUT_OF("zfs", "get", "-Hp", "-o", "value", "quota", name);

    CHECK_TEXT(quota, wanted);
}

static void a_quota_can_change(void)
{
    struct volume *volume = make_volume("one", 32 * MIB);
    int fd = open_live(volume), error, written;
    struct err err = { 0 };

    written = fill(fd, "big", 64, &error);
    CHECK(error == EDQUOT && written < 32, "(%d MiB, %s)", written, strerror(error));
    CHECK_OK(volume_set_quota(volume, (uint64_t)64 * MIB, &err), err);
    check_quota("one", "67108864\n");
    written = fill(fd, "more", 20, &error);
    CHECK(error == 0 && written == 20, "(%d MiB, %s)", written, strerror(error));
    CHECK(volume_set_quota(volume, (uint64_t)8 * MIB, &err) < 0 && err.kind == ERR_INVALID, "%s",
          err.msg);
    check_quota("one", "67108864\n");
    CHECK_OK(volume_set_quota(volume, 0, &err), err);
    check_quota("one", "0\n");
    (void)close(fd);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_full_volume_can_be_rolled_back_and_written_again(void)
{
    struct volume *volume = make_volume("one", 32 * MIB);
    int fd = open_live(volume), error, written;

    put_text(fd, "kept", "yes");
    take_snapshot(volume, "early");
    (void)fill(fd, "big", 8, &error);
    take_snapshot(volume, "late");
    (void)fill(fd, "bigger", 64, &error);
    CHECK(error == EDQUOT, "(%s)", strerror(error));
    (void)close(fd);
    roll_back(volume, "early");
    check_quota("one", "33554432\n");
    fd = open_live(volume);
    check_text(fd, "kept", "yes");
    CHECK(!has_file(fd, "big"));
    written = fill(fd, "new", 16, &error);
    CHECK(error == 0 && written == 16, "(%d MiB, %s)", written, strerror(error));
    (void)close(fd);
    check_list(volume, "early late | 2");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_quota_that_snapshots_exceed_comes_back_when_they_go(void)
{
    struct volume *volume = make_volume("one", 32 * MIB);
    int fd = open_live(volume), error;

    take_snapshot(volume, "early");
    (void)fill(fd, "big", 64, &error);
    (void)close(fd);
    take_snapshot(volume, "full");
    roll_back(volume, "early");
    fd = open_live(volume);
    (void)fill(fd, "new", 64, &error);
    CHECK(error == EDQUOT, "(%s)", strerror(error));
    (void)close(fd);
    drop_snapshot(volume, "full");
    check_quota("one", "33554432\n");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_rollback_keeps_newer_snapshots(void)
{
    struct volume *volume = make_volume("one", 0);

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    write_live(volume, "state", "2");
    take_snapshot(volume, "b");
    write_live(volume, "state", "3");
    roll_back(volume, "a");
    check_live(volume, "state", "1");
    write_live(volume, "state", "4");
    take_snapshot(volume, "c");
    check_list(volume, "a b c | 2");
    roll_back(volume, "b");
    check_live(volume, "state", "2");
    roll_back(volume, "c");
    check_live(volume, "state", "4");
    check_list(volume, "a b c | 4");
    drop_snapshot(volume, "a");
    drop_snapshot(volume, "b");
    check_live(volume, "state", "4");
    drop_snapshot(volume, "c");
    check_live(volume, "state", "4");
    check_list(volume, "| 4");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_dropped_snapshots_name_is_free_at_once(void)
{
    struct volume *volume = make_volume("one", 0), *clone;

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    clone = fork_volume(volume, "a", "two");
    drop_snapshot(volume, "a");
    check_list(volume, "| 1");
    CHECK(store_zfs.drop(volume, "a", 0) == -ENOENT);
    write_live(volume, "state", "2");
    take_snapshot(volume, "a");
    check_live(clone, "state", "1");
    destroy_volume(clone);
    check_list(volume, "a | 1");
    CHECK(datasets() == 2 + 3); /* the volume, its tree and the one snapshot */
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void what_was_dropped_goes_with_its_last_clone(void)
{
    struct volume *volume = make_volume("one", 0), *two, *three;

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    two = fork_volume(volume, "a", "two");
    three = fork_volume(volume, "a", "three");
    roll_back(volume, "a");
    drop_snapshot(volume, "a");
    destroy_volume(two);
    check_live(three, "state", "1");
    destroy_volume(three);
    check_live(volume, "state", "1");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_hidden_tree_does_not_outlive_what_hung_on_it(void)
{
    struct volume *volume = make_volume("one", 0), *other;

    take_snapshot(volume, "start");
    write_live(volume, "state", "1");
    other = fork_volume(volume, NULL, "two");
    roll_back(volume, "start");
    drop_snapshot(volume, "start");
    destroy_volume(other);
    /* The volume, its tree, and the origin of the tree: one tree with one snapshot. */
    CHECK(datasets() <= 2 + 4);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_fork_of_a_running_tree_leaves_no_snapshot_to_see(void)
{
    struct volume *volume = make_volume("one", 0), *fork;

    write_live(volume, "state", "1");
    fork = fork_volume(volume, NULL, "two");
    write_live(volume, "state", "2");
    check_live(fork, "state", "1");
    check_list(volume, "| 1");
    check_list(fork, "| 1");
    destroy_volume(fork);
    CHECK(datasets() == 2 + 2);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_fork_outlives_its_parent(void)
{
    struct volume *volume = make_volume("one", 0), *fork;

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    fork = fork_volume(volume, "a", "two");
    destroy_volume(volume);
    check_live(fork, "state", "1");
    /* The name is free although the data of its first volume is not. */
    volume = make_volume("one", 0);
    check_live(volume, "state", NULL);
    take_snapshot(fork, "b");
    roll_back(fork, "b");
    check_live(fork, "state", "1");
    destroy_volume(volume);
    destroy_volume(fork);
    CHECK_EMPTY();
}

/* Data that the parent wrote after the fork is freed when the parent is destroyed. */
static void a_buried_parent_keeps_only_what_its_forks_need(void)
{
    struct volume *volume = make_volume("one", 0), *fork;
    struct store_space before, after;
    struct err err = { 0 };
    int error, fd;

    fork = fork_volume(volume, NULL, "two");
    CHECK_OK(store_zfs.space(&store, &before, &err), err);
    fd = open_live(volume);
    CHECK(fill(fd, "big", 64, &error) == 64);
    (void)close(fd);
    destroy_volume(volume);
    CHECK_OK(store_zfs.space(&store, &after, &err), err);
    CHECK(after.used < before.used + 16 * (uint64_t)MIB, "(%" PRIu64 ", then %" PRIu64 ")",
          before.used, after.used);
    destroy_volume(fork);
    CHECK_EMPTY();
}

static void rolling_back_for_ever_piles_up_nothing(void)
{
    struct volume *volume = make_volume("one", 0), *fork = NULL;
    char text[16];

    for (int i = 0; i < 5; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        write_live(volume, "state", text);
        take_snapshot(volume, text);
        if (i == 2)
            fork = fork_volume(volume, text, "two");
        write_live(volume, "state", "discarded");
        roll_back(volume, text);
        check_live(volume, "state", text);
        drop_snapshot(volume, text);
    }
    destroy_volume(fork);
    CHECK(datasets() == 2 + 2); /* the volume and its tree */
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_file_closed_a_moment_ago_harms_nobody(void)
{
    for (int i = 0; i < 10; i++) {
        struct volume *volume = make_volume("one", 0);
        int fd = open_live(volume), held_fds[64];

        for (size_t j = 0; j < ARRAY_SIZE(held_fds); j++)
            held_fds[j] = openat(fd, "file", O_RDWR | O_CLOEXEC);
        (void)close(fd);
        for (size_t j = 0; j < ARRAY_SIZE(held_fds); j++)
            (void)close(held_fds[j]);
        destroy_volume(volume);
    }
    CHECK_EMPTY();
}

/* Whatever happens to its origin, a tree in use stays mounted. */
static void a_fork_in_use_is_left_alone(void)
{
    struct volume *volume = make_volume("one", 0), *fork;
    int fd, held_fd;
    struct stat before, after;

    take_snapshot(volume, "a");
    fork = fork_volume(volume, "a", "two");
    fd = open_live(fork);
    held_fd = openat(fd, "file", O_RDONLY | O_CLOEXEC);
    CHECK(held_fd >= 0 && fstat(fd, &before) == 0);
    (void)close(fd);
    drop_snapshot(volume, "a");
    take_snapshot(volume, "a");
    roll_back(volume, "a");
    destroy_volume(volume);
    fd = open_live(fork);
    CHECK(fstat(fd, &after) == 0 && after.st_dev == before.st_dev);
    (void)close(fd);
    (void)close(held_fd);
    destroy_volume(fork);
    CHECK_EMPTY();
}

/* A name that is reused repeatedly, with a fork of each that stays. */
static void a_name_has_any_number_of_lives(void)
{
    struct volume *volume = make_volume("one", 0), *forks[4];
    char text[16];

    for (int i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        write_live(volume, "state", text);
        take_snapshot(volume, "golden");
        (void)snprintf(text, sizeof(text), "f%d", i);
        forks[i] = fork_volume(volume, "golden", text);
        if (i < 3)
            drop_snapshot(volume, "golden");
    }
    destroy_volume(forks[0]); /* a gap in the numbers */
    check_list(volume, "golden | 1");
    check_live(forks[1], "state", "1");
    write_live(volume, "state", "later");
    roll_back(volume, "golden");
    check_live(volume, "state", "3");
    drop_snapshot(volume, "golden");
    check_list(volume, "| 2");
    destroy_volume(volume);
    for (int i = 1; i < 4; i++)
        destroy_volume(forks[i]);
    CHECK_EMPTY();
}

/* grandparent, parent and child, rolled back at times, destroyed in one of six orders. */
static void family_in_order(const int order[static 3])
{
    struct volume *family[3];

    family[0] = make_volume("one", 0);
    write_live(family[0], "state", "1");
    take_snapshot(family[0], "a");
    family[1] = fork_volume(family[0], "a", "two");
    write_live(family[1], "state", "2");
    take_snapshot(family[1], "b");
    roll_back(family[1], "b");
    family[2] = fork_volume(family[1], NULL, "three");
    roll_back(family[0], "a");
    drop_snapshot(family[0], "a");
    for (int i = 0; i < 3; i++) {
        for (int j = i; j < 3; j++)
            check_live(family[order[j]], "state", order[j] == 0 ? "1" : "2");
        destroy_volume(family[order[i]]);
    }
    CHECK_EMPTY();
}

static void families_go_in_any_order(void)
{
    static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
        family_in_order(orders[i]);
}

static void a_snapshot_can_be_looked_at_but_not_written(void)
{
    struct volume *volume = make_volume("one", 0);
    char *temporary = NULL;
    int fd;

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    write_live(volume, "state", "2");
    fd = store_zfs.open_tree(volume, "a", &temporary);
    CHECK(fd >= 0 && temporary, "(%s)", strerror(-fd));
    check_text(fd, "state", "1");
    CHECK(openat(fd, "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0 && errno == EROFS);
    /* The view stays unchanged while the snapshot is removed. */
    roll_back(volume, "a");
    drop_snapshot(volume, "a");
    check_text(fd, "state", "1");
    (void)close(fd);
    store_zfs.release(volume, temporary);
    CHECK(store_zfs.open_tree(volume, "a", &temporary) == -ENOENT);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void a_volume_can_go_while_it_is_looked_at(void)
{
    struct volume *volume = make_volume("one", 0), *next = volume_of("one", TEMPLATE, 0);
    char *temporary = NULL;
    struct err err = { 0 };
    int fd;

    take_snapshot(volume, "a");
    fd = store_zfs.open_tree(volume, "a", &temporary);
    CHECK(fd >= 0);
    CHECK(store_zfs.destroy(volume) == 0);
    check_text(fd, "file", "of the template");
    CHECK(store_zfs.create(next, &err) < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    (void)close(fd);
    store_zfs.release(volume, temporary);
    CHECK_EMPTY();
    volume_forget(volume);
    CHECK_OK(store_zfs.create(next, &err), err);
    destroy_volume(next);
    CHECK_EMPTY();
}

static void a_tree_in_use_stays_and_a_volume_in_use_goes_later(void)
{
    struct volume *volume = make_volume("one", 0);
    int fd = open_live(volume), held_fd = openat(fd, "file", O_RDONLY | O_CLOEXEC);
    struct err err = { 0 };

    (void)close(fd);
    take_snapshot(volume, "a");
    CHECK_OK(store_zfs.branch(volume, 2, volume, "a", &err), err);
    volume->generation = 2;
    CHECK(store_zfs.drop(volume, NULL, 1) == -EBUSY);
    CHECK(store_zfs.destroy(volume) == 0);
    CHECK(datasets() > 2);
    (void)close(held_fd);
    /* The next destroy removes it as well. */
    volume_forget(volume);
    destroy_volume(make_volume("two", 0));
    CHECK_EMPTY();
}

static void a_mapped_page_is_in_the_snapshot(void)
{
    struct volume *volume = make_volume("one", 0);
    int fd = open_live(volume), file_fd;
    char *page;

    write_live(volume, "mapped", "before");
    file_fd = openat(fd, "mapped", O_RDWR | O_CLOEXEC);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
    CHECK(page != MAP_FAILED, "(%s)", strerror(errno));
    memcpy(page, "behind", 6);
    take_snapshot(volume, "a");
    CHECK(munmap(page, 4096) == 0);
    (void)close(file_fd);
    (void)close(fd);
    write_live(volume, "mapped", "later");
    roll_back(volume, "a");
    check_live(volume, "mapped", "behind");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void hostile_names_reach_no_command(void)
{
    static const char *const hostile[] = { "",    ".",      "..",   "-r",  "_old-1",
                                           "a/b", "../one", "a@b",  "a b", "a\nb",
                                           "a%b", "a;b",    "/one", "a:b", "\xc3\xa4" };
    struct volume *one = make_volume("one", 0), *bad = volume_of("x", TEMPLATE, 0);
    struct err err = { 0 };
    uint64_t bytes;
    char *temporary;

    for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
        free(bad->id);
        bad->id = xstrdup(hostile[i]);
        CHECK(store_zfs.create(bad, &err) < 0 && err.kind == ERR_INVALID, "('%s')", hostile[i]);
        CHECK(store_zfs.branch(bad, 1, one, NULL, &err) < 0 && err.kind == ERR_INVALID);
        CHECK(store_zfs.branch(one, 2, bad, NULL, &err) < 0 && err.kind == ERR_INVALID);
        CHECK(store_zfs.branch(one, 2, one, hostile[i], &err) < 0 && err.kind == ERR_INVALID);
        CHECK(store_zfs.snapshot(one, hostile[i], &err) < 0 && err.kind == ERR_INVALID);
        CHECK(store_zfs.drop(one, hostile[i], 0) == -EINVAL);
        CHECK(store_zfs.drop(bad, NULL, 1) == -EINVAL);
        CHECK(store_zfs.open_tree(one, hostile[i], &temporary) == -EINVAL);
        CHECK(store_zfs.usage(bad, &bytes) == -EINVAL);
        CHECK(store_zfs.list(bad, listing_add, NULL) == -EINVAL);
        CHECK(store_zfs.destroy(bad) == -EINVAL);
    }
    volume_forget(bad);
    check_list(one, "| 1");
    destroy_volume(one);
    CHECK_EMPTY();
}

static void long_names_are_refused_in_words(void)
{
    struct volume *volume = make_volume("one", 0);
    char name[SNAPSHOT_NAME_MAX + 1] = "";
    struct err err = { 0 };

    memset(name, 'x', SNAPSHOT_NAME_MAX);
    CHECK(store_zfs.snapshot(volume, name, &err) < 0 && err.kind == ERR_INVALID, "(%s)", err.msg);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void usage_counts_what_was_written(void)
{
    struct volume *volume = make_volume("one", 0);
    uint64_t before, after;
    int fd = open_live(volume), error;

    CHECK(store_zfs.usage(volume, &before) == 0);
    CHECK(fill(fd, "big", 8, &error) == 8);
    CHECK(fsync(fd) == 0 || errno == EBADF);
    take_snapshot(volume, "a"); /* makes the usage exact */
    CHECK(store_zfs.usage(volume, &after) == 0);
    CHECK(after >= before + 8 * (uint64_t)MIB, "(%" PRIu64 ", then %" PRIu64 ")", before, after);
    (void)close(fd);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void storage_that_cannot_be_is_refused(void)
{
    cleanup_free char *pool = xasprintf("zfs:%s", world.pool);
    static const char *const bad[] = { "zfs:",       "zfs:/",     "zfs:a//b", "zfs:-r/x",
                                       "zfs:a/../b", "zfs:a/b@c", "zfs:a b/c" };
    struct err err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(try_open(bad[i], &err) < 0 && err.kind == ERR_INVALID, "(%s)", bad[i]);
    CHECK(try_open(pool, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(try_open("zfs:no-such-pool/x", &err) < 0 && err.kind == ERR_NOT_FOUND, "(%s)", err.msg);
}

static void all(void)
{
    must_be_root();
    world_start();
    RUN_ON_ZFS(storage_that_cannot_be_is_refused);
    store_up();
    RUN_ON_ZFS(a_volume_is_the_template_with_shifted_owners);
    RUN_ON_ZFS(volumes_do_not_see_each_other);
    RUN_ON_ZFS(a_name_is_taken_once);
    RUN_ON_ZFS(a_quota_holds_tree_and_snapshots_together);
    RUN_ON_ZFS(a_quota_can_change);
    RUN_ON_ZFS(a_full_volume_can_be_rolled_back_and_written_again);
    RUN_ON_ZFS(a_quota_that_snapshots_exceed_comes_back_when_they_go);
    RUN_ON_ZFS(a_rollback_keeps_newer_snapshots);
    RUN_ON_ZFS(a_dropped_snapshots_name_is_free_at_once);
    RUN_ON_ZFS(what_was_dropped_goes_with_its_last_clone);
    RUN_ON_ZFS(a_hidden_tree_does_not_outlive_what_hung_on_it);
    RUN_ON_ZFS(a_fork_of_a_running_tree_leaves_no_snapshot_to_see);
    RUN_ON_ZFS(a_fork_outlives_its_parent);
    RUN_ON_ZFS(a_buried_parent_keeps_only_what_its_forks_need);
    RUN_ON_ZFS(rolling_back_for_ever_piles_up_nothing);
    RUN_ON_ZFS(a_file_closed_a_moment_ago_harms_nobody);
    RUN_ON_ZFS(a_fork_in_use_is_left_alone);
    RUN_ON_ZFS(a_name_has_any_number_of_lives);
    RUN_ON_ZFS(families_go_in_any_order);
    RUN_ON_ZFS(a_snapshot_can_be_looked_at_but_not_written);
    RUN_ON_ZFS(a_volume_can_go_while_it_is_looked_at);
    RUN_ON_ZFS(a_tree_in_use_stays_and_a_volume_in_use_goes_later);
    RUN_ON_ZFS(a_mapped_page_is_in_the_snapshot);
    RUN_ON_ZFS(hostile_names_reach_no_command);
    RUN_ON_ZFS(long_names_are_refused_in_words);
    RUN_ON_ZFS(usage_counts_what_was_written);
    store_down();
    world_stop();
}

int main(void)
{
    RUN(all);
    return 0;
}
