/* Fixture: a store on each kind of filesystem, for tests that must pass on all of them.
 *
 * Each filesystem is in a file, mounted in a private mount namespace, so the end of the test in
 * any way also ends the mounts and the loop devices. */
#pragma once

#include <fcntl.h>
#include <linux/btrfs.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "kernel/caps.h"
#include "kernel/harness.h"
#include "store/store.h"
#include "store/store_internal.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

#define CHECK_OK(call, err) CHECK((call) == 0, "(%s)", (err)->msg)
#define CHECK_KIND(call, err, wanted)                                                              \
    CHECK((call) < 0 && (err)->kind == (wanted), "(kind %d: %s)", (int)(err)->kind, (err)->msg)

enum { FIRST_UID = 1000000, UIDS = 65536 };

struct filesystem {
    const char *name;
    const char *mkfs;     /* program with its directory */
    const char *argument; /* its argument */
    const char *storage;
    off_t bytes;
    bool has_quota;
};

static const struct filesystem filesystems[] = {
    { "btrfs image", "/usr/sbin/mkfs.ext4", "-q", "btrfs", 400LL << 20, true },
    { "btrfs", "/usr/sbin/mkfs.btrfs", "--quiet", "auto", 400LL << 20, true },
    { "dir on ext4", "/usr/sbin/mkfs.ext4", "-q", "dir", 400LL << 20, false },
    { "dir on xfs", "/usr/sbin/mkfs.xfs", "-q", "dir", 400LL << 20, false },
};

static struct {
    const struct filesystem *filesystem;
    char dir[64];   /* mount point of the filesystem */
    char state[96]; /* state directory below it */
    struct store *store;
    int userns_fd;
} world = { .userns_fd = -EBADF };

static inline bool run_program(const char *const args[])
{
    posix_spawn_file_actions_t actions;
    char *env[] = { NULL };
    int r, status = -1;
    pid_t pid;

    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    for (int fd = 0; fd <= 2; fd++)
        CHECK(posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0) == 0);
    r = posix_spawn(&pid, args[0], &actions, NULL, (char *const *)(uintptr_t)args, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return false;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status == 0;
}

/* The user namespace that the files of every test are mapped to. */
static inline int new_userns(void)
{
    char path[64], map[64];
    int fd, ready[2];
    pid_t pid;

    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(unshare(CLONE_NEWUSER) == 0);
        CHECK(write(ready[1], "x", 1) == 1);
        (void)pause();
        _exit(0);
    }
    CHECK(read(ready[0], map, 1) == 1);
    (void)snprintf(map, sizeof(map), "0 %d %d\n", FIRST_UID, UIDS);
    for (int i = 0; i < 2; i++) {
        cleanup_close int map_fd = -EBADF;

        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, i ? "gid_map" : "uid_map");
        map_fd = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(map_fd >= 0 && write(map_fd, map, strlen(map)) == (ssize_t)strlen(map));
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return fd;
}

/* Releases the mounts of other tests: a copy of a mount keeps it busy. */
static inline void forget_mounts_of_others(void)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[1024], path[512];

    CHECK(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%*s %*s %*s %*s %511s", path) == 1 && strncmp(path, "/tmp/", 5) == 0)
            (void)umount2(path, MNT_DETACH);
    (void)fclose(file);
}

/* Called once per program. */
static inline void world_begin(void)
{
    must_be_root();
    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    forget_mounts_of_others();
    (void)umask(022);
    world.userns_fd = new_userns();
}

static inline void store_start(void)
{
    struct err err = { 0 };
    const struct store_options options = {
        .state_dir = world.state,
        .template_bytes_max = UINT64_MAX,
        .template_files_max = UINT64_MAX,
        .storage = world.filesystem->storage,
    };

    CHECK_OK(store_open(&options, &world.store, &err), &err);
}

static inline void store_stop(void)
{
    store_close(TAKE_PTR(world.store));
}

static inline void store_again(void)
{
    store_stop();
    store_start();
}

static inline void write_file(int dir_fd, const char *path, const char *text)
{
    cleanup_close int fd = openat(dir_fd, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0, "(%s: %s)", path, strerror(errno));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "(%s)", strerror(errno));
}

static inline bool has(int dir_fd, const char *path)
{
    struct stat st;

    return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Returns whether a file has this text; false if it does not exist. */
static inline bool reads(int dir_fd, const char *path, const char *wanted)
{
    cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    char text[256] = "";

    return fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, wanted) == 0;
}

/* Creates a template "base": /a and /b with their own names in them, /dir/{one,two},
 * /dir/sub/deep. */
static inline void make_base(void)
{
    struct template_info info;
    struct err err = { 0 };
    char path[PATH_MAX];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/base", world.dir);
    CHECK(mkdir(path, 0755) == 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && mkdirat(fd, "dir", 0755) == 0 && mkdirat(fd, "dir/sub", 0755) == 0);
    write_file(fd, "a", "a");
    write_file(fd, "b", "b");
    write_file(fd, "dir/one", "one");
    write_file(fd, "dir/two", "two");
    write_file(fd, "dir/sub/deep", "deep");
    (void)close(fd);
    CHECK_OK(template_import(world.store, &(struct template_source){ .name = "base", .path = path },
                             &info, &err),
             &err);
}

/* Returns whether the filesystem is available. */
static inline bool filesystem_open(const struct filesystem *filesystem)
{
    char file[80];
    const char *mkfs[] = { filesystem->mkfs, filesystem->argument, file, NULL };
    const char *attach[] = { "/bin/mount", "-o", "loop", file, world.dir, NULL };
    int fd;

    world.filesystem = filesystem;
    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-store-test-XXXXXX");
    CHECK(mkdtemp(world.dir));
    (void)snprintf(world.state, sizeof(world.state), "%s/state", world.dir);
    (void)snprintf(file, sizeof(file), "%s.img", world.dir);
    fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, filesystem->bytes) == 0);
    (void)close(fd);
    if (!run_program(mkfs) || !run_program(attach)) {
        CHECK(unlink(file) == 0 && rmdir(world.dir) == 0);
        return false;
    }
    CHECK(unlink(file) == 0); /* the loop device keeps it open */
    store_start();
    make_base();
    return true;
}

static inline void filesystem_close(void)
{
    store_stop();
    CHECK(umount2(world.dir, 0) == 0, "(%s)", strerror(errno));
    CHECK(rmdir(world.dir) == 0);
}

/* Runs the tests of a list on every filesystem. */
struct claim {
    const char *name;
    void (*test)(void);
};

#define CLAIM(test_)                                                                               \
    {                                                                                              \
        .name = #test_, .test = (test_)                                                            \
    }

static inline void run_claim(const struct claim *claim)
{
    char name[256];

    (void)snprintf(name, sizeof(name), "%s: %s", world.filesystem->name, claim->name);
    test_run(name, claim->test, run_clean);
}

static inline void run_claims(const struct claim *claims, size_t count)
{
    for (size_t i = 0; i < ARRAY_SIZE(filesystems); i++) {
        if (!filesystem_open(&filesystems[i])) {
            test_skip("%s: cannot be made or mounted here", filesystems[i].name);
            continue;
        }
        for (size_t j = 0; j < count; j++)
            run_claim(&claims[j]);
        filesystem_close();
    }
}

/* Writes everything out; on btrfs this also starts the cleanup of removed subvolumes. */
static inline void write_out(void)
{
    if (ioctl(world.store->volumes_fd, BTRFS_IOC_SYNC) < 0)
        CHECK(syncfs(world.store->volumes_fd) == 0);
}

/* Lists the names in volumes/: complete volumes, and those being removed. */
static inline size_t count_volumes(bool is_of_temporary)
{
    char path[64];
    size_t count = 0;
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", world.store->volumes_fd);
    dir = opendir(path);
    CHECK(dir);
    while ((entry = readdir(dir)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 (entry->d_name[0] == '.') == is_of_temporary;
    (void)closedir(dir);
    return count;
}

/* --- volumes --------------------------------------------------------------------------------- */

static inline struct template *base_open(const char *name)
{
    struct err err = { 0 };
    struct template *template;

    CHECK_OK(template_open(world.store, name, &template, &err), &err);
    return template;
}

static inline struct volume *new_volume_on(const char *template, const char *id, uint64_t quota)
{
    struct err err = { 0 };
    struct volume *volume;

    CHECK_OK(volume_create(world.store, id, base_open(template), quota, &volume, &err), &err);
    return volume;
}

static inline struct volume *new_volume(const char *id)
{
    return new_volume_on("base", id, 0);
}

static inline struct volume *old_volume(const char *id, uint32_t generation)
{
    struct err err = { 0 };
    struct volume *volume;

    CHECK_OK(volume_open(world.store, id, base_open("base"), generation, &volume, &err), &err);
    return volume;
}

/* Until sandbox_leave, files are created and read with the ids of the sandbox's root. */
static inline void sandbox_enter(void)
{
    (void)setfsgid(FIRST_UID);
    (void)setfsuid(FIRST_UID);
    CHECK(caps_raise(~0ULL) == 0);
}

static inline void sandbox_leave(void)
{
    (void)setfsuid(0);
    (void)setfsgid(0);
}

/* Opens the root of the live tree as the sandbox sees it, until it is closed. */
static inline int enter(struct volume *volume)
{
    struct volume_mounts mounts;
    struct err err = { 0 };
    int fd;

    CHECK_OK(volume_mount(volume, world.userns_fd, FIRST_UID, &mounts, &err), &err);
    CHECK(mounts.count >= 1 && strcmp(mounts.targets[0], "/") == 0);
    fd = fcntl(mounts.fds[0], F_DUPFD_CLOEXEC, 3);
    volume_mounts_done(&mounts);
    sandbox_enter();
    return fd;
}

static inline void leave(int fd)
{
    sandbox_leave();
    CHECK(close(fd) == 0);
}

static inline void put(struct volume *volume, const char *path, const char *text)
{
    int fd = enter(volume);

    write_file(fd, path, text);
    leave(fd);
}

static inline void take(struct volume *volume, const char *path)
{
    int fd = enter(volume);

    CHECK(unlinkat(fd, path, 0) == 0, "(%s: %s)", path, strerror(errno));
    leave(fd);
}

static inline bool volume_reads(struct volume *volume, const char *path, const char *wanted)
{
    int fd = enter(volume);
    bool result = reads(fd, path, wanted);

    leave(fd);
    return result;
}

static inline bool volume_has(struct volume *volume, const char *path)
{
    int fd = enter(volume);
    bool result = has(fd, path);

    leave(fd);
    return result;
}

static inline void keep(struct volume *volume, const char *name)
{
    struct err err = { 0 };

    CHECK_OK(volume_snapshot(volume, name, &err), &err);
}

/* Does what a rollback does. */
static inline void go_back(struct volume *volume, const char *snapshot)
{
    uint32_t old = volume_generation(volume), generation;
    struct err err = { 0 };
    int r;

    CHECK_OK(volume_branch(volume, snapshot, &generation, &err), &err);
    CHECK(generation > old);
    volume_switch(volume, generation);
    r = volume_drop(volume, old);
    CHECK(r == 0, "(%s)", strerror(-r));
}

/* Returns the names of the snapshots, separated by spaces. */
static inline void check_snapshots(struct volume *volume, const char *wanted)
{
    char **names, text[512] = "";
    struct err err = { 0 };
    size_t count, used = 0;

    CHECK_OK(volume_list_snapshots(volume, &names, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", names[i]);
        free(names[i]);
    }
    free(names);
    CHECK_TEXT(text, wanted);
}

static inline void destroy(struct volume *volume)
{
    int r = volume_destroy(volume);

    CHECK(r == 0, "(%s)", strerror(-r));
}
