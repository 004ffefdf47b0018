/* Fixture: a real pool in a file, a store on it that calls the backend's table directly, and a
 * template. */
#pragma once

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "kernel/harness.h"
#include "store/backend/backend.h"
#include "store/command.h"
#include "store/store_internal.h"
#include "store/template/mount_points.h"
#include "store/volume/volume.h"

enum {
    SCRIPT_MS = 300 * 1000,
    TEXT_MAX = 1 << 20,
    SHARED_UID = 524288,
    MIB = 1 << 20,
};

#define TEMPLATE "base"

static struct {
    char dir[64];
    char state[96];
    char pool[32];
    char storage[64];
} world;

static struct store store;

/* Runs a program that must succeed. Returns its stdout, which the caller frees. */
static char *output_of(const char *const args[])
{
    struct buf output = BUF_INIT(TEXT_MAX);
    struct command_result result;
    int r = command_run(args, SCRIPT_MS, &output, &result);

    CHECK(r == 0, "(%s %s: %s)", args[0], args[1], strerror(-r));
    CHECK(result.status == 0, "(%s %s: %s)", args[0], args[1], result.stderr_text);
    return output.data ? output.data : xstrdup("");
}

#define OUTPUT_OF(...) output_of((const char *const[]){ __VA_ARGS__, NULL })
#define DO(...) free(OUTPUT_OF(__VA_ARGS__))

#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        int r_ = (call);                                                                           \
        CHECK(r_ == 0, "(%s: %s)", strerror(-r_), (err).msg);                                      \
    } while (0)

/* Lists everything in the dataset except templates, which stay between tests. */
static char *inventory(void)
{
    cleanup_free char *volumes = xasprintf("%s/holt/volumes", world.pool);
    cleanup_free char *graves = xasprintf("%s/holt/graveyard", world.pool);

    return OUTPUT_OF("zfs", "list", "-H", "-r", "-t", "all", "-o", "name", volumes, graves);
}

static size_t datasets(void)
{
    cleanup_free char *names = inventory();
    size_t count = 0;

    for (const char *at = names; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

#define CHECK_EMPTY()                                                                              \
    do {                                                                                           \
        cleanup_free char *names_ = inventory();                                                   \
        CHECK(datasets() == 2, "(left:\n%s)", names_);                                             \
    } while (0)

static size_t mounts_below(const char *dir)
{
    cleanup_free char *table = OUTPUT_OF("cat", "/proc/self/mountinfo");
    size_t count = 0;

    for (const char *at = table; (at = strstr(at, dir)); at++)
        count++;
    return count;
}

/* Like RUN_CLEAN, but only our mounts count: a mount namespace also loses mounts that others
 * remove. */
static inline void run_on_zfs(test_fn *test)
{
    struct host_counts before = host_count(), after;

    test();
    after = host_count();
    CHECK(after.fds == before.fds, "(%zu descriptors, then %zu)", before.fds, after.fds);
    CHECK(after.children == before.children, "(%zu children, then %zu)", before.children,
          after.children);
    CHECK(mounts_below(world.dir) == 0);
}

#define RUN_ON_ZFS(test) test_run(#test, test, run_on_zfs)

static int try_open(const char *storage, struct err *err)
{
    const struct store_options options = { .state_dir = world.state, .storage = storage };

    return store_zfs.open(&store, &options, err);
}

static void store_up(void)
{
    struct err err = { 0 };

    CHECK_OK(try_open(world.storage, &err), err);
    CHECK(store.shared_uid == SHARED_UID);
}

static void store_down(void)
{
    store_zfs.close(&store);
}

static void put_text(int dir_fd, const char *name, const char *text)
{
    cleanup_close int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0, "(%s: %s)", name, strerror(errno));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "(%s)", strerror(errno));
}

static void check_text(int dir_fd, const char *name, const char *wanted)
{
    cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    char text[64] = "";

    CHECK(fd >= 0, "(%s: %s)", name, strerror(errno));
    CHECK(read(fd, text, sizeof(text) - 1) >= 0);
    CHECK_TEXT(text, wanted);
}

static bool has_file(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Creates templates/NAME/rootfs with a file of each kind. */
static void make_template(const char *name)
{
    cleanup_free char *path = xasprintf("%s/rootfs", name);
    cleanup_close int fd = -EBADF;

    CHECK(mkdirat(store.templates_fd, name, 0755) == 0);
    CHECK(mkdirat(store.templates_fd, path, 0755) == 0);
    fd = openat(store.templates_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    put_text(fd, "file", "of the template");
    CHECK(linkat(fd, "file", fd, "hard", 0) == 0);
    CHECK(symlinkat("file", fd, "soft") == 0);
    CHECK(mkdirat(fd, "dir", 0750) == 0);
    put_text(fd, "dir/setuid", "x");
    CHECK(fchownat(fd, "dir/setuid", 1000, 1001, 0) == 0);
    CHECK(fchmodat(fd, "dir/setuid", 04755, 0) == 0);
    CHECK(fchownat(fd, "soft", 7, 8, AT_SYMLINK_NOFOLLOW) == 0);
}

static struct volume *volume_of(const char *id, const char *template_name, uint64_t quota_bytes)
{
    struct volume *volume = xcalloc(1, sizeof(*volume));
    struct err err = { 0 };

    *volume = (struct volume){
        .store = &store,
        .id = xstrdup(id),
        .generation = 1,
        .quota_bytes = quota_bytes,
        .dir_fd = -EBADF,
    };
    CHECK_OK(template_open(&store, template_name, &volume->template, &err), err);
    return volume;
}

static void volume_forget(struct volume *volume)
{
    template_close(volume->template);
    free(volume->id);
    free(volume);
}

static struct volume *make_volume(const char *id, uint64_t quota_bytes)
{
    struct volume *volume = volume_of(id, TEMPLATE, quota_bytes);
    struct err err = { 0 };

    CHECK_OK(store_zfs.create(volume, &err), err);
    return volume;
}

static struct volume *fork_volume(struct volume *from, const char *snapshot, const char *id)
{
    struct volume *volume = volume_of(id, TEMPLATE, 0);
    struct err err = { 0 };

    CHECK_OK(store_zfs.branch(volume, 1, from, snapshot, &err), err);
    return volume;
}

static void take_snapshot(struct volume *volume, const char *name)
{
    struct err err = { 0 };

    CHECK_OK(store_zfs.snapshot(volume, name, &err), err);
}

/* As volume.c does it: creates a new live tree, then drops the old one. */
static void roll_back(struct volume *volume, const char *snapshot)
{
    uint32_t old = volume->generation;
    struct err err = { 0 };
    int r;

    CHECK_OK(store_zfs.branch(volume, old + 1, volume, snapshot, &err), err);
    volume->generation = old + 1;
    r = store_zfs.drop(volume, NULL, old);
    CHECK(r == 0, "(%s)", strerror(-r));
}

static void drop_snapshot(struct volume *volume, const char *name)
{
    int r = store_zfs.drop(volume, name, 0);

    CHECK(r == 0, "(%s: %s)", name, strerror(-r));
}

/* Destroys the volume and frees the struct. */
static void destroy_volume(struct volume *volume)
{
    int r = store_zfs.destroy(volume);

    CHECK(r == 0, "(%s: %s)", volume->id, strerror(-r));
    volume_forget(volume);
}

static int open_live(struct volume *volume)
{
    char *temporary = NULL;
    int fd = store_zfs.open_tree(volume, NULL, &temporary);

    CHECK(fd >= 0, "(%s)", strerror(-fd));
    CHECK(!temporary);
    return fd;
}

static void write_live(struct volume *volume, const char *name, const char *text)
{
    cleanup_close int fd = open_live(volume);

    put_text(fd, name, text);
}

static void check_live(struct volume *volume, const char *name, const char *text)
{
    cleanup_close int fd = open_live(volume);

    if (text)
        check_text(fd, name, text);
    else
        CHECK(!has_file(fd, name), "(%s is there)", name);
}

/* The result of list: sorted snapshots, then "|", then generations: "a b | 2". */
struct listing {
    char *names[64];
    size_t count;
    char generations[256];
};

static void listing_add(void *context, const char *snapshot, uint32_t generation)
{
    struct listing *listing = context;
    size_t used = strlen(listing->generations);

    if (!snapshot) {
        (void)snprintf(listing->generations + used, sizeof(listing->generations) - used,
                       " %" PRIu32, generation);
        return;
    }
    CHECK(listing->count < ARRAY_SIZE(listing->names));
    listing->names[listing->count++] = xstrdup(snapshot);
}

static int names_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_list(struct volume *volume, const char *wanted)
{
    struct listing listing = { .count = 0 };
    char text[512] = "";
    int r = store_zfs.list(volume, listing_add, &listing);

    CHECK(r == 0, "(%s)", strerror(-r));
    qsort(listing.names, listing.count, sizeof(char *), names_compare);
    for (size_t i = 0; i < listing.count; i++) {
        size_t used = strlen(text);

        (void)snprintf(text + used, sizeof(text) - used, "%s ", listing.names[i]);
        free(listing.names[i]);
    }
    r = (int)strlen(text);
    (void)snprintf(text + r, sizeof(text) - (size_t)r, "|%s", listing.generations);
    CHECK_TEXT(text, wanted);
}

static void world_open_state(void)
{
    struct err err = { 0 };

    store = (struct store){
        .dir_fd = open(world.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .image_fd = -EBADF,
        .volumes_fd = -EBADF,
        .ops = &store_zfs,
        .lock = LOCK_INIT(LOCK_STORE),
    };
    CHECK(store.dir_fd >= 0 && mkdirat(store.dir_fd, "templates", 0700) == 0);
    store.templates_fd = openat(store.dir_fd, "templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(store.templates_fd >= 0);
    CHECK_OK(mount_points_open(store.dir_fd, &store.points_fd, &err), err);
    make_template(TEMPLATE);
}

static void world_stop(void)
{
    (void)fd_close(store.points_fd);
    (void)fd_close(store.templates_fd);
    (void)fd_close(store.dir_fd);
    DO("bash", "tests/system/zfs.sh", "stop", world.dir, world.pool);
    CHECK(tree_remove_at(AT_FDCWD, world.dir) == 0);
}

/* A failed test ends the program early. */
static void world_abandon(void)
{
    const char *const args[] = {
        "bash", "tests/system/zfs.sh", "stop", world.dir, world.pool, NULL
    };
    struct command_result result;

    if (access(world.dir, F_OK) < 0)
        return;
    (void)command_run(args, SCRIPT_MS, NULL, &result);
    (void)tree_remove_at(AT_FDCWD, world.dir);
}

static void world_start(void)
{
    /* No mount can outlive the test there, and the machine's own zfs is not touched. */
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) == 0);
    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-zfs.XXXXXX");
    CHECK(mkdtemp(world.dir));
    (void)snprintf(world.state, sizeof(world.state), "%s/state", world.dir);
    (void)snprintf(world.pool, sizeof(world.pool), "holt%d", (int)getpid());
    (void)snprintf(world.storage, sizeof(world.storage), "zfs:%s/holt", world.pool);
    CHECK(mkdir(world.state, 0700) == 0);
    (void)atexit(world_abandon);
    DO("bash", "tests/system/zfs.sh", "start", world.dir, world.pool);
    world_open_state();
}
