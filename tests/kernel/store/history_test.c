// SPDX-License-Identifier: Apache-2.0
/* What snapshots preserve, and volumes after a crash, a hostile sandbox or a full disk. */
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "kernel/store/world.h"

static struct stat stat_of(int fd, const char *path)
{
    struct stat st;

    CHECK(fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0, "(%s: %s)", path, strerror(errno));
    return st;
}

/* Everything that an upper can contain, written through the overlay. */
static void write_everything(int fd)
{
    const struct timespec times[] = { { .tv_sec = 1000 }, { .tv_sec = 2000, .tv_nsec = 3 } };
    cleanup_close int file = -EBADF;

    CHECK(unlinkat(fd, "b", 0) == 0); /* a whiteout */
    CHECK(unlinkat(fd, "dir/sub/deep", 0) == 0 && unlinkat(fd, "dir/sub", AT_REMOVEDIR) == 0);
    CHECK(mkdirat(fd, "dir/sub", 0700) == 0); /* opaque */
    write_file(fd, "dir/sub/other", "other");
    write_file(fd, "linked", "linked");
    CHECK(linkat(fd, "linked", fd, "dir/link", 0) == 0 && linkat(fd, "linked", fd, "z", 0) == 0);
    CHECK(symlinkat("../../../etc/passwd", fd, "symlink") == 0);
    CHECK(mknodat(fd, "fifo", S_IFIFO | 0640, 0) == 0);
    CHECK(mknodat(fd, "socket", S_IFSOCK | 0600, 0) == 0);
    file = openat(fd, "special", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    CHECK(file >= 0 && pwrite(file, "end", 3, 10 << 20) == 3);
    CHECK(fchown(file, FIRST_UID + 1000, FIRST_UID + 1001) == 0 && fchmod(file, 06751) == 0);
    CHECK(fsetxattr(file, "user.note", "kept\0too", 8, 0) == 0);
    CHECK(futimens(file, times) == 0);
    CHECK(utimensat(fd, "symlink", times, AT_SYMLINK_NOFOLLOW) == 0);
    CHECK(fchmodat(fd, "dir", 01777, 0) == 0 && utimensat(fd, "dir", times, 0) == 0);
}

static void check_everything(int fd)
{
    struct stat st = stat_of(fd, "special");
    char text[32] = "";

    CHECK(!has(fd, "b") && !has(fd, "dir/sub/deep") && reads(fd, "dir/sub/other", "other"));
    CHECK(reads(fd, "dir/one", "one") && reads(fd, "a", "a"));
    CHECK(stat_of(fd, "dir/sub").st_mode == (S_IFDIR | 0700));
    CHECK(stat_of(fd, "linked").st_nlink == 3 && reads(fd, "dir/link", "linked"));
    CHECK(stat_of(fd, "linked").st_ino == stat_of(fd, "dir/link").st_ino);
    CHECK(stat_of(fd, "linked").st_ino == stat_of(fd, "z").st_ino);
    CHECK(readlinkat(fd, "symlink", text, sizeof(text)) == 19);
    CHECK_TEXT(text, "../../../etc/passwd");
    CHECK(stat_of(fd, "symlink").st_mtim.tv_sec == 2000);
    CHECK(stat_of(fd, "fifo").st_mode == (S_IFIFO | 0640));
    CHECK(stat_of(fd, "socket").st_mode == (S_IFSOCK | 0600));
    CHECK(st.st_mode == (S_IFREG | 06751) && st.st_size == (10 << 20) + 3);
    CHECK(st.st_blocks < 1024, "(%lld blocks)", (long long)st.st_blocks);
    CHECK(st.st_uid == FIRST_UID + 1000 && st.st_gid == FIRST_UID + 1001);
    CHECK(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 3 && st.st_atim.tv_sec == 1000);
    CHECK(stat_of(fd, "dir").st_mode == (S_IFDIR | 01777));
    CHECK(stat_of(fd, "dir").st_mtim.tv_sec == 2000);
}

static void check_metadata(int fd)
{
    cleanup_close int file = openat(fd, "special", O_RDONLY | O_NOATIME | O_CLOEXEC);
    char value[16];

    CHECK(file >= 0 && fgetxattr(file, "user.note", value, sizeof(value)) == 8);
    CHECK(memcmp(value, "kept\0too", 8) == 0);
}

static void everything_survives_snapshot_and_branch(void)
{
    struct volume *volume = new_volume("v"), *fork;
    struct err err = { 0 };
    int fd = enter(volume);

    write_everything(fd);
    leave(fd);
    keep(volume, "s");
    fd = enter(volume);
    write_file(fd, "b", "again");
    write_file(fd, "linked", "changed");
    CHECK(unlinkat(fd, "special", 0) == 0 && unlinkat(fd, "z", 0) == 0);
    leave(fd);
    go_back(volume, "s");
    fd = enter(volume);
    check_everything(fd);
    check_metadata(fd);
    leave(fd);
    CHECK_OK(volume_fork(volume, "s", "fork", 0, &fork, &err), &err);
    fd = enter(fork);
    check_everything(fd);
    leave(fd);
    destroy(fork);
    destroy(volume);
}

static void nobody_writes_to_a_snapshot(void)
{
    struct volume *volume = new_volume("v");
    struct volume_view view;
    struct err err = { 0 };

    put(volume, "file", "x");
    keep(volume, "s");
    CHECK_OK(volume_view(volume, "s", &view, &err), &err);
    if (world.filesystem->has_quota) { /* btrfs; in a plain directory it is only unreachable */
        CHECK(openat(view.trees[0].fds[0], "more", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0);
        CHECK(errno == EROFS);
    }
    put(volume, "file", "changed");
    take(volume, "file");
    CHECK(reads(view.trees[0].fds[0], "file", "x"));
    volume_view_done(volume, &view);
    destroy(volume);
}

/* Names with all byte values, and paths longer than PATH_MAX. */
static void write_hostile(int fd)
{
    cleanup_close int deep = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    char name[256];

    memset(name, 'x', 255);
    name[255] = '\0';
    write_file(fd, name, "255");
    for (int c = 1; c < 256; c++) {
        (void)snprintf(name, sizeof(name), "n%c", c);
        if (c != '/')
            write_file(fd, name, "n");
    }
    CHECK(symlinkat("/", fd, "live-1") == 0 && symlinkat("..", fd, "snapshots") == 0);
    CHECK(symlinkat(world.dir, fd, "s") == 0 && mkdirat(fd, ".copy-1", 0) == 0);
    memset(name, 'd', 100);
    name[100] = '\0';
    for (int i = 0; i < 300; i++) {
        int next;

        CHECK(mkdirat(deep, name, 0700) == 0);
        next = openat(deep, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(deep);
        deep = next;
    }
    write_file(deep, "bottom", "bottom");
    CHECK(symlinkat(world.dir, deep, "out") == 0);
}

static void check_hostile(int fd)
{
    cleanup_close int deep = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    char name[256];

    memset(name, 'x', 255);
    name[255] = '\0';
    CHECK(reads(fd, name, "255") && reads(fd, "n\n", "n") && reads(fd, "n\xff", "n"));
    memset(name, 'd', 100);
    name[100] = '\0';
    for (int i = 0; i < 300; i++) {
        int next = openat(deep, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        CHECK(next >= 0);
        (void)close(deep);
        deep = next;
    }
    CHECK(reads(deep, "bottom", "bottom"));
}

static void hostile_names_lead_nowhere(void)
{
    struct volume *volume = new_volume("v");
    char path[PATH_MAX];
    struct err err = { 0 };
    uint64_t bytes;
    int fd = enter(volume);

    (void)snprintf(path, sizeof(path), "%s/outside", world.dir);
    write_file(AT_FDCWD, path, "untouched");
    write_hostile(fd);
    leave(fd);
    keep(volume, "s");
    go_back(volume, "s");
    fd = enter(volume);
    check_hostile(fd);
    leave(fd);
    CHECK_OK(volume_usage(volume, &bytes, &err), &err);
    check_snapshots(volume, "s");
    destroy(volume);
    CHECK(reads(AT_FDCWD, path, "untouched") && unlink(path) == 0);
    CHECK(count_volumes(false) == 0);
}

/* A symbolic link in place of a snapshot, as only root could create it. */
static void a_link_is_no_snapshot(void)
{
    struct volume *volume = new_volume("v");
    struct volume_view view;
    struct err err = { 0 };

    put(volume, "file", "x");
    CHECK(symlinkat(world.dir, world.store->volumes_fd, "v/snapshots/link") == 0);
    CHECK(volume_view(volume, "link", &view, &err) < 0);
    CHECK(volume_branch(volume, "link", &(uint32_t){ 0 }, &err) < 0);
    CHECK_KIND(volume_snapshot(volume, "link", &err), &err, ERR_EXISTS);
    destroy(volume);
    CHECK(has(AT_FDCWD, world.state));
}

/* --- crashes --------------------------------------------------------------------------------- */

/* Lets a child use its own store until it is killed or done. */
static void crash(void (*work)(void), long after_ms)
{
    pid_t pid;

    store_stop();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        store_start();
        work();
        _exit(0); /* without closing or unmounting anything */
    }
    if (after_ms >= 0) {
        pause_ms(after_ms);
        (void)kill(pid, SIGKILL);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
    store_start();
}

static void work_in_a_volume(void)
{
    struct volume *volume = new_volume("v");
    int fd;

    put(volume, "file", "kept");
    keep(volume, "s");
    fd = enter(volume);
    write_file(fd, "after", "x");
    CHECK(unlinkat(fd, "a", 0) == 0);
    CHECK(volume_branch(volume, "s", &(uint32_t){ 0 }, &(struct err){ 0 }) == 0);
}

static void a_volume_is_whole_after_a_crash(void)
{
    struct volume *volume;
    int work_fd;

    crash(work_in_a_volume, -1);
    volume = old_volume("v", 1);
    /* Leftovers of a volatile overlay, or of an interrupted copy-up, in the work directory. */
    work_fd = openat(world.store->volumes_fd, "v/live-1/root.work", O_PATH | O_CLOEXEC);
    CHECK(work_fd >= 0 && (mkdirat(work_fd, "work", 0700) == 0 || errno == EEXIST));
    CHECK(mkdirat(work_fd, "work/incompat", 0700) == 0);
    CHECK(mkdirat(work_fd, "work/incompat/volatile", 0700) == 0);
    write_file(work_fd, "work/#1", "half a file");
    (void)close(work_fd);
    CHECK(volume_tidy(volume) == 0 && volume_drop(volume, 2) == -ENOENT);
    CHECK(volume_reads(volume, "file", "kept") && volume_reads(volume, "after", "x"));
    CHECK(!volume_has(volume, "a"));
    put(volume, "after", "y");
    go_back(volume, "s");
    CHECK(volume_reads(volume, "file", "kept") && !volume_has(volume, "after"));
    CHECK(volume_has(volume, "a"));
    destroy(volume);
}

enum { MANY_FILES = 400 };

static void write_many(struct volume *volume)
{
    char name[16];
    int fd = enter(volume);

    for (int i = 0; i < MANY_FILES; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        write_file(fd, name, name);
    }
    leave(fd);
}

static void snapshot_without_end(void)
{
    struct volume *volume = old_volume("v", 1), *fork;
    struct err err;
    char name[16];

    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        if (volume_snapshot(volume, name, &err) < 0)
            continue; /* existed before */
        (void)snprintf(name, sizeof(name), "w%d", i);
        if (volume_fork(volume, NULL, name, 0, &fork, &err) == 0 && i % 2 == 0)
            (void)volume_destroy(fork);
    }
}

/* Every existing snapshot has all of its files. */
static void check_whole(struct volume *volume)
{
    struct volume_view view;
    struct err err = { 0 };
    char **names;
    size_t count, files;

    CHECK_OK(volume_list_snapshots(volume, &names, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        char path[64], last[16];

        CHECK_OK(volume_view(volume, names[i], &view, &err), &err);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", view.trees[0].fds[0]);
        (void)snprintf(last, sizeof(last), "f%d", MANY_FILES - 1);
        files = count_entries(path);
        CHECK(files == MANY_FILES, "(%s: %zu files)", names[i], files);
        CHECK(reads(view.trees[0].fds[0], last, last));
        volume_view_done(volume, &view);
        free(names[i]);
    }
    free(names);
}

static void destroy_forks(void)
{
    struct volume *volume;
    struct err err = { 0 };
    char name[16];

    for (int i = 0; i < 200; i++) {
        struct template *template = base_open("base");

        (void)snprintf(name, sizeof(name), "w%d", i);
        if (volume_open(world.store, name, template, 1, &volume, &err) == 0)
            destroy(volume);
        else
            template_close(template);
    }
}

static void a_snapshot_is_whole_or_not_there(void)
{
    struct volume *volume = new_volume("v");

    write_many(volume);
    volume_close(volume);
    for (long ms = 20; ms < 120; ms += 17) {
        crash(snapshot_without_end, ms);
        volume = old_volume("v", 1);
        CHECK(world.filesystem->has_quota || count_volumes(true) == 0);
        check_whole(volume);
        volume_close(volume);
    }
    destroy(old_volume("v", 1));
    destroy_forks();
    CHECK(count_volumes(false) == 0);
}

/* --- numbers --------------------------------------------------------------------------------- */

static void a_thousand_snapshots_are_no_trouble(void)
{
    struct volume *volume = new_volume("v");
    struct err err = { 0 };
    char name[16], **names;
    uint64_t bytes;
    size_t count;

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "s%04d", i);
        if (i % 100 == 0)
            put(volume, "file", name);
        keep(volume, name);
    }
    CHECK_OK(volume_list_snapshots(volume, &names, &count, &err), &err);
    CHECK(count == 1000 && strcmp(names[999], "s0999") == 0);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    CHECK_OK(volume_usage(volume, &bytes, &err), &err);
    CHECK(bytes < 100 << 20);
    go_back(volume, "s0345");
    CHECK(volume_reads(volume, "file", "s0300"));
    destroy(volume);
    CHECK(count_volumes(false) == 0);
}

/* Writes until the storage is full. Returns the errno. */
static int fill_up(int fd, const char *path)
{
    cleanup_close int file = openat(fd, path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    static char chunk[8 << 20];

    while (file >= 0) {
        if (write(file, chunk, sizeof(chunk)) < 0 || fdatasync(file) < 0)
            break;
    }
    return errno;
}

static uint64_t available(void)
{
    struct store_space space;
    struct err err = { 0 };

    write_out();
    CHECK_OK(store_space(world.store, &space, &err), &err);
    return space.available;
}

static void a_full_disk_is_survived(void)
{
    struct volume *volume = new_volume("v"), *other = new_volume("other");
    struct volume_mounts mounts;
    struct err err = { 0 };
    int fd, r;

    put(other, "file", "other");
    put(volume, "file", "x");
    keep(volume, "s");
    fd = enter(volume);
    for (int i = 0; i < 2; i++) {
        r = fill_up(fd, "big");
        CHECK(r == ENOSPC, "(%s)", strerror(r));
        CHECK(reads(fd, "file", "x") && reads(fd, "a", "a"));
        CHECK(unlinkat(fd, "big", 0) == 0, "(%s)", strerror(errno));
    }
    r = fill_up(fd, "big");
    leave(fd);
    CHECK(volume_has_snapshot(volume, "s") && r == ENOSPC);
    /* Operations that need space may fail, but must report it and do no harm. */
    CHECK(volume_snapshot(other, "t", &err) == 0 || err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
    if (volume_mount(other, world.userns_fd, FIRST_UID, &mounts, &err) == 0)
        volume_mounts_done(&mounts);
    else
        CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
    destroy(volume);
    EVENTUALLY(available() > 100 << 20); /* btrfs frees space asynchronously */
    CHECK(volume_reads(other, "file", "other"));
    keep(other, "u");
    put(other, "file", "more");
    go_back(other, "u");
    CHECK(volume_reads(other, "file", "other"));
    destroy(other);
}

/* Names a file that takes one inode. */
static const char *inode_name(unsigned number)
{
    static char name[160];

    (void)snprintf(name, sizeof(name), "%s/inode-%u", world.dir, number);
    return name;
}

/* With few inodes left, overlayfs cannot make its own directory, and mounts read-only. Whatever
 * their number, a mount fails or can be written. */
static void no_tree_is_mounted_read_only_when_inodes_are_short(void)
{
    unsigned used = 0, failed = 0, mounted = 0;

    if (strcmp(world.filesystem->name, "dir on ext4") != 0)
        return; /* the others make inodes as they are needed */
    for (unsigned left = 0; left < 8; left++) {
        char id[16];
        struct volume *volume;
        struct volume_mounts mounts;
        struct err err = { 0 };
        int fd;

        (void)snprintf(id, sizeof(id), "v%u", left);
        volume = new_volume(id);
        while ((fd = open(inode_name(used), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) >= 0) {
            (void)close(fd);
            used++;
        }
        CHECK(errno == ENOSPC);
        for (unsigned i = 0; i < left; i++)
            CHECK(unlink(inode_name(--used)) == 0);
        if (volume_mount(volume, world.userns_fd, FIRST_UID, &mounts, &err) < 0) {
            CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
            CHECK(left > 0 || strstr(err.msg, "inodes"), "(%s)", err.msg);
            failed++;
        } else {
            struct statvfs info;

            CHECK(fstatvfs(mounts.fds[0], &info) == 0 && !(info.f_flag & ST_RDONLY),
                  "(%u inodes left)", left);
            volume_mounts_done(&mounts);
            mounted++;
        }
        for (unsigned i = 0; i < 32; i++)
            CHECK(unlink(inode_name(--used)) == 0);
        destroy(volume);
    }
    while (used > 0)
        CHECK(unlink(inode_name(--used)) == 0);
    CHECK(failed > 0 && mounted > 0, "(%u failed, %u mounted)", failed, mounted);
}

static const struct claim claims[] = {
    CLAIM(everything_survives_snapshot_and_branch),
    CLAIM(nobody_writes_to_a_snapshot),
    CLAIM(hostile_names_lead_nowhere),
    CLAIM(a_link_is_no_snapshot),
    CLAIM(a_volume_is_whole_after_a_crash),
    CLAIM(a_snapshot_is_whole_or_not_there),
    CLAIM(a_thousand_snapshots_are_no_trouble),
    CLAIM(a_full_disk_is_survived),
    CLAIM(no_tree_is_mounted_read_only_when_inodes_are_short),
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
