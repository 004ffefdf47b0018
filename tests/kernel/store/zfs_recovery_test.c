// SPDX-License-Identifier: Apache-2.0
/* The zfs backend after accidents: leftovers of an earlier run, a killed daemon; and the datasets
 * of templates. */
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "kernel/store/zfs_world.h"

enum { ROUNDS = 30 };

static char *dataset(const char *below)
{
    return xasprintf("%s/holt/%s", world.pool, below);
}

static void zfs_do(const char *verb, const char *option, const char *below)
{
    cleanup_free char *name = dataset(below);

    if (option)
        DO("zfs", verb, option, name);
    else
        DO("zfs", verb, name);
}

static bool exists(const char *below)
{
    cleanup_free char *name = dataset(below);
    struct command_result result;

    CHECK(command_run((const char *const[]){ "zfs", "list", name, NULL }, SCRIPT_MS, NULL,
                      &result) == 0);
    return result.status == 0;
}

static void reopen(void)
{
    store_down();
    store_up();
}

static void volumes_outlive_the_daemon(void)
{
    struct volume *volume = make_volume("one", 0);

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    reopen();
    check_live(volume, "state", "1");
    check_list(volume, "a | 1");
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void left_overs_are_swept(void)
{
    struct volume *volume = make_volume("one", 32 * MIB), *fork;
    cleanup_free char *view = dataset("volumes/one/_view-1"), *old = dataset("volumes/one/_old-1");
    cleanup_free char *forked = dataset("volumes/one/live-1@_fork-1");
    cleanup_free char *template = dataset("templates/" TEMPLATE "-0123456789abcdef");
    cleanup_free char *path = xasprintf("mountpoint=%s/zfs/one/_view-1", world.state);

    take_snapshot(volume, "a");
    fork = fork_volume(volume, "a", "two");
    zfs_do("snapshot", NULL, "volumes/one/live-1@_fork-1");
    DO("zfs", "clone", "-o", path, forked, view);
    DO("zfs", "clone", "-o", "canmount=off", "-o", "mountpoint=none", forked, old);
    DO("zfs", "create", "-o", "canmount=off", template);
    zfs_do("set", "holt:quota=33554432", "volumes/one");
    zfs_do("set", "quota=none", "volumes/one");
    zfs_do("set", "holt:gone=on", "volumes/two");
    reopen();
    CHECK(!exists("volumes/one/_view-1") && !exists("volumes/one/_old-1"));
    CHECK(!exists("volumes/one/live-1@_fork-1") && !exists("volumes/two"));
    CHECK(!exists("templates/" TEMPLATE "-0123456789abcdef"));
    {
        cleanup_free char *place = dataset("volumes/one");
        cleanup_free char *quota = OUTPUT_OF("zfs", "get", "-Hp", "-o", "value", "quota", place);

        CHECK_TEXT(quota, "33554432\n");
    }
    check_list(volume, "a | 1");
    volume_forget(fork);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static void names_of_volumes_are_not_taken_for_our_own(void)
{
    struct volume *volumes[] = { make_volume("old-1", 0), make_volume("view-1", 0),
                                 make_volume("live-1", 0) };

    reopen();
    for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
        check_list(volumes[i], "| 1");
        check_live(volumes[i], "file", "of the template");
        destroy_volume(volumes[i]);
    }
    CHECK_EMPTY();
}

static size_t template_datasets(const char *name)
{
    cleanup_free char *templates = dataset("templates");
    cleanup_free char *names = OUTPUT_OF("zfs", "list", "-H", "-r", "-o", "name", templates);
    cleanup_free char *part = xasprintf("/%s-", name);
    size_t count = 0;

    for (const char *at = names; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* As by hand: Holt itself removes no template that is open. */
static void remove_template(const char *name)
{
    CHECK(tree_remove_at(store.templates_fd, name) == 0);
    template_forget_open(&store, name);
}

static void a_replaced_template_is_another(void)
{
    struct volume *old, *new;
    struct err err = { 0 };

    make_template("other");
    old = volume_of("one", "other", 0);
    CHECK_OK(store_zfs.create(old, &err), err);
    remove_template("other");
    make_template("other");
    {
        cleanup_close int fd =
            openat(store.templates_fd, "other/rootfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        put_text(fd, "file", "of the new one");
    }
    new = volume_of("two", "other", 0);
    CHECK_OK(store_zfs.create(new, &err), err);
    check_live(old, "file", "of the template");
    check_live(new, "file", "of the new one");
    CHECK(template_datasets("other") == 2);
    reopen(); /* the old one is in use */
    CHECK(template_datasets("other") == 2);
    destroy_volume(old);
    reopen();
    CHECK(template_datasets("other") == 1);
    destroy_volume(new);
    remove_template("other");
    reopen();
    CHECK(template_datasets("other") == 0);
    CHECK_EMPTY();
}

/* A layer over it: one file added, one removed, one opaque directory. */
static void make_layer(int fd)
{
    cleanup_close int dir_fd = -EBADF;

    put_text(fd, "added", "by the layer");
    CHECK(mknodat(fd, "hard", S_IFCHR, makedev(0, 0)) == 0);
    CHECK(mkdirat(fd, "dir", 0755) == 0);
    dir_fd = openat(fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fsetxattr(dir_fd, "trusted.overlay.opaque", "y", 1, 0) == 0, "(%s)", strerror(errno));
    put_text(dir_fd, "new", "too");
}

static void a_template_of_layers_is_flattened(void)
{
    struct volume *volume;
    struct err err = { 0 };
    int fd;

    make_template("stacked");
    CHECK(mkdirat(store.templates_fd, "stacked/layer", 0755) == 0);
    volume = volume_of("one", "stacked", 0);
    fd = openat(store.templates_fd, "stacked/layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_layer(fd);
    volume->template->trees[0].layers[0] = fd;
    volume->template->trees[0].layer_count = 1;
    CHECK_OK(store_zfs.create(volume, &err), err);
    (void)close(fd);
    volume->template->trees[0].layer_count = 0;
    check_live(volume, "file", "of the template");
    check_live(volume, "added", "by the layer");
    check_live(volume, "hard", NULL);
    check_live(volume, "dir/new", "too");
    check_live(volume, "dir/setuid", NULL);
    destroy_volume(volume);
    remove_template("stacked");
    reopen();
    CHECK(template_datasets("stacked") == 0);
}

static void a_dataset_has_one_owner(void)
{
    struct err err = { 0 };
    const struct store_options options = { .state_dir = "/another", .storage = world.storage };
    struct store other = { .dir_fd = -EBADF };

    CHECK(store_zfs.open(&other, &options, &err) < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    CHECK(strstr(err.msg, world.state), "(%s)", err.msg);
}

static void a_killed_daemon_costs_only_its_mounts(void)
{
    struct volume *volume = make_volume("one", 0), *fork;
    struct err err = { 0 };
    char *temporary;
    uint64_t bytes;

    write_live(volume, "state", "1");
    take_snapshot(volume, "a");
    fork = fork_volume(volume, NULL, "two");
    DO("bash", "tests/system/zfs.sh", "crash", world.dir);
    CHECK(store_zfs.snapshot(volume, "b", &err) < 0 && err.kind == ERR_UNSUPPORTED, "(%s)",
          err.msg);
    CHECK(store_zfs.open_tree(volume, NULL, &temporary) < 0);
    CHECK(store_zfs.usage(volume, &bytes) < 0);
    CHECK(store_zfs.destroy(volume) < 0);
    DO("bash", "tests/system/zfs.sh", "restart", world.dir);
    check_live(volume, "state", "1");
    check_list(volume, "a | 1");
    write_live(volume, "state", "2");
    roll_back(volume, "a");
    check_live(volume, "state", "1");
    reopen();
    /* Not accessed since its mount died. */
    destroy_volume(fork);
    destroy_volume(volume);
    CHECK_EMPTY();
}

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int u64_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void report(const char *what, uint64_t *us)
{
    qsort(us, ROUNDS, sizeof(*us), u64_compare);
    (void)printf("time: %-34s p50 %6.1f ms, max %6.1f ms\n", what, (double)us[ROUNDS / 2] / 1000,
                 (double)us[ROUNDS - 1] / 1000);
}

#define TIMED(slot, call)                                                                          \
    do {                                                                                           \
        uint64_t start_ = now_us();                                                                \
        call;                                                                                      \
        (slot)[i] = now_us() - start_;                                                             \
    } while (0)

static void operations_take_their_time(void)
{
    static uint64_t create[ROUNDS], snapshot[ROUNDS], fork[ROUNDS], view[ROUNDS], release[ROUNDS],
        roll[ROUNDS], drop[ROUNDS], usage[ROUNDS], destroy[ROUNDS], destroy_fork[ROUNDS];
    struct volume *volume, *forked;
    uint64_t bytes;

    for (int i = 0; i < ROUNDS; i++) {
        char *temporary = NULL;
        int fd = -1;

        TIMED(create, volume = make_volume("one", 0));
        write_live(volume, "state", "1");
        TIMED(snapshot, take_snapshot(volume, "a"));
        TIMED(fork, forked = fork_volume(volume, NULL, "two"));
        TIMED(view, fd = store_zfs.open_tree(volume, "a", &temporary));
        CHECK(fd >= 0);
        (void)close(fd);
        TIMED(release, store_zfs.release(volume, temporary));
        TIMED(roll, roll_back(volume, "a"));
        TIMED(drop, drop_snapshot(volume, "a"));
        TIMED(usage, CHECK(store_zfs.usage(volume, &bytes) == 0));
        TIMED(destroy_fork, destroy_volume(forked));
        TIMED(destroy, destroy_volume(volume));
    }
    report("create (clone, mount)", create);
    report("snapshot", snapshot);
    report("fork (snapshot, clone, mount)", fork);
    report("open a snapshot (clone, mount)", view);
    report("release it", release);
    report("roll back (clone, mount, drop)", roll);
    report("drop a snapshot with a clone", drop);
    report("usage", usage);
    report("destroy a fork", destroy_fork);
    report("destroy", destroy);
    CHECK_EMPTY();
}

static void all(void)
{
    must_be_root();
    world_start();
    store_up();
    RUN_ON_ZFS(volumes_outlive_the_daemon);
    RUN_ON_ZFS(left_overs_are_swept);
    RUN_ON_ZFS(names_of_volumes_are_not_taken_for_our_own);
    RUN_ON_ZFS(a_replaced_template_is_another);
    RUN_ON_ZFS(a_template_of_layers_is_flattened);
    RUN_ON_ZFS(a_dataset_has_one_owner);
    RUN_ON_ZFS(operations_take_their_time);
    RUN_ON_ZFS(a_killed_daemon_costs_only_its_mounts);
    store_down();
    world_stop();
}

int main(void)
{
    RUN(all);
    return 0;
}
