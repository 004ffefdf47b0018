// SPDX-License-Identifier: Apache-2.0
/* Detached mounts. Each test runs in its own mount namespace, so that a failure leaves none. */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "kernel/harness.h"
#include "kernel/mount.h"

static const struct mount_option small[] = { { "size", "1m" }, { "mode", "755" } };

static int new_tmpfs(uint64_t attributes)
{
    int fd = mount_new("tmpfs", small, ARRAY_SIZE(small), attributes);

    CHECK(fd >= 0, "(%s)", strerror(-fd));
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    return fd;
}

static void put_file(int dir_fd, const char *name, const char *text)
{
    cleanup_close int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0, "(%s: %s)", name, strerror(errno));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void check_file(int dir_fd, const char *name, const char *wanted)
{
    cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    char text[64] = "";

    CHECK(fd >= 0, "(%s: %s)", name, strerror(errno));
    CHECK(read(fd, text, sizeof(text) - 1) >= 0);
    CHECK_TEXT(text, wanted);
}

static int open_dir(int dir_fd, const char *name)
{
    int fd;

    CHECK(mkdirat(dir_fd, name, 0755) == 0 || errno == EEXIST);
    fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void a_detached_mount_is_in_no_table(void)
{
    size_t before = count_lines("/proc/self/mountinfo");
    cleanup_close int fd = new_tmpfs(0);

    put_file(fd, "file", "text");
    check_file(fd, "file", "text");
    CHECK(count_lines("/proc/self/mountinfo") == before);
}

static void attach_and_look(void)
{
    cleanup_close int outer = new_tmpfs(0), inner = new_tmpfs(0), place = open_dir(outer, "place");

    put_file(inner, "file", "text");
    CHECK(mount_attach(inner, place) == 0);
    check_file(outer, "place/file", "text");
}

static void attributes_hold(void)
{
    cleanup_close int fd = new_tmpfs(MOUNT_ATTR_RDONLY);

    CHECK(openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0 && errno == EROFS);
}

static void attributes_can_be_set_later(void)
{
    cleanup_close int fd = new_tmpfs(0);

    put_file(fd, "file", "text");
    CHECK(mount_set_attributes(fd, MOUNT_ATTR_RDONLY, false) == 0);
    CHECK(openat(fd, "file", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
    check_file(fd, "file", "text");
}

static void a_clone_is_a_mount_of_its_own(void)
{
    cleanup_close int fd = new_tmpfs(0), below = open_dir(fd, "dir"), copy = -EBADF;

    put_file(below, "file", "text");
    copy = mount_clone(fd, "dir", false);
    CHECK(copy >= 0 && mount_set_attributes(copy, MOUNT_ATTR_RDONLY, false) == 0);
    check_file(copy, "file", "text");
    CHECK(openat(copy, "file", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
    put_file(below, "file", "new"); /* the original stays unchanged */
    check_file(copy, "file", "new");
}

static void an_overlay_writes_to_its_upper_only(void)
{
    cleanup_close int fd = new_tmpfs(0);
    cleanup_close int top = open_dir(fd, "top"), bottom = open_dir(fd, "bottom");
    cleanup_close int upper = open_dir(fd, "upper"), work = open_dir(fd, "work"), overlay = -EBADF;
    const int lowers[] = { top, bottom };

    put_file(top, "both", "top");
    put_file(bottom, "both", "bottom");
    put_file(bottom, "below", "bottom");
    overlay = mount_overlay(&(struct overlay){
        .lower_fds = lowers, .lower_count = 2, .upper_fd = upper, .work_fd = work });
    CHECK(overlay >= 0, "(%s)", strerror(-overlay));
    check_file(overlay, "both", "top");
    check_file(overlay, "below", "bottom");
    put_file(overlay, "below", "changed");
    put_file(overlay, "new", "new");
    CHECK(unlinkat(overlay, "both", 0) == 0);
    check_file(bottom, "below", "bottom");
    check_file(top, "both", "top");
    check_file(upper, "below", "changed");
    check_file(upper, "new", "new");
    CHECK(faccessat(overlay, "both", F_OK, 0) < 0 && errno == ENOENT);
}

static void an_unknown_filesystem_is_an_error(void)
{
    CHECK(mount_new("no-such-filesystem", NULL, 0, 0) == -ENODEV);
    CHECK(mount_new("tmpfs", (const struct mount_option[]){ { "no-such-option", "1" } }, 1, 0) ==
          -EINVAL);
    CHECK(mount_clone(AT_FDCWD, "/no/such/path", false) == -ENOENT);
}

static void pivot_and_look(void)
{
    cleanup_close int root = new_tmpfs(0), place = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat info;

    put_file(root, "file", "text");
    CHECK(mount_attach(root, place) == 0);
    CHECK(mount_pivot(root) == 0);
    check_file(AT_FDCWD, "/file", "text");
    CHECK(stat("/etc", &info) < 0 && errno == ENOENT);
    CHECK(stat("/..", &info) == 0 && stat("/../etc", &info) < 0);
}

/* In a child, whose exit removes all mounts. */
static void in_a_namespace(void (*test)(void))
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(unshare(CLONE_NEWNS) == 0);
        CHECK(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) == 0);
        test();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (status != 0)
        exit(1); /* the child has printed the reason */
}

static void an_attached_mount_is_where_it_was_put(void)
{
    in_a_namespace(attach_and_look);
}

static void a_pivot_changes_the_root(void)
{
    in_a_namespace(pivot_and_look);
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(a_detached_mount_is_in_no_table);
    RUN_CLEAN(an_attached_mount_is_where_it_was_put);
    RUN_CLEAN(attributes_hold);
    RUN_CLEAN(attributes_can_be_set_later);
    RUN_CLEAN(a_clone_is_a_mount_of_its_own);
    RUN_CLEAN(an_overlay_writes_to_its_upper_only);
    RUN_CLEAN(an_unknown_filesystem_is_an_error);
    RUN_CLEAN(a_pivot_changes_the_root);
    return 0;
}
