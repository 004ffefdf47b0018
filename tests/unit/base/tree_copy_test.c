// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/files/tree_copy.h"
#include "check.h"
#include "kernel/path.h"

static int scratch_fd;

static int dir(const char *name)
{
    int fd;

    CHECK(mkdirat(scratch_fd, name, 0755) == 0, "(%s)", strerror(errno));
    fd = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void put(int fd, const char *name, const char *text)
{
    cleanup_close int file = openat(fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
}

static bool reads(int fd, const char *name, const char *wanted)
{
    cleanup_close int file = open_no_links(fd, name, O_RDONLY, 0);
    char text[64] = "";

    return file >= 0 && read(file, text, sizeof(text) - 1) >= 0 && strcmp(text, wanted) == 0;
}

/* Copies "from" to "to", which is recreated. */
static int copy(struct tree_copy *copy)
{
    cleanup_close int from = openat(scratch_fd, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int to = -EBADF, links = -EBADF;
    int r;

    CHECK(tree_remove_at(scratch_fd, "to") == 0 && tree_remove_at(scratch_fd, "links") == 0);
    to = dir("to");
    links = dir("links");
    copy->links_fd = links;
    r = tree_copy(copy, from, to);
    CHECK(tree_remove_at(scratch_fd, "links") == 0);
    return r;
}

static void clear(void)
{
    CHECK(tree_remove_at(scratch_fd, "from") == 0 && tree_remove_at(scratch_fd, "to") == 0);
    CHECK(tree_remove_at(scratch_fd, "outside") == 0);
}

static void contents_and_attributes_are_kept(void)
{
    struct tree_copy done = { 0 };
    struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 2, .tv_nsec = 3 } };
    cleanup_close int from = dir("from"), file = -EBADF;
    struct stat st;

    put(from, "file", "text");
    CHECK(fchmodat(from, "file", 04750, 0) == 0 && utimensat(from, "file", times, 0) == 0);
    file = openat(from, "sparse", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && pwrite(file, "x", 1, 1 << 20) == 1 && ftruncate(file, 8 << 20) == 0);
    CHECK(mkdirat(from, "dir", 0700) == 0 && linkat(from, "file", from, "dir/link", 0) == 0);
    CHECK(symlinkat("file", from, "symlink") == 0 && mknodat(from, "fifo", S_IFIFO, 0) == 0);
    CHECK(utimensat(from, "dir", times, 0) == 0 && utimensat(from, ".", times, 0) == 0);
    CHECK(copy(&done) == 0);
    CHECK(fstatat(scratch_fd, "to/file", &st, 0) == 0);
    CHECK(st.st_mode == (S_IFREG | 04750) && st.st_nlink == 2 && st.st_mtim.tv_nsec == 3);
    CHECK(reads(scratch_fd, "to/dir/link", "text"));
    CHECK(fstatat(scratch_fd, "to/sparse", &st, 0) == 0);
    CHECK(st.st_size == 8 << 20 && st.st_blocks < 64);
    CHECK(fstatat(scratch_fd, "to/dir", &st, 0) == 0 && st.st_mtim.tv_sec == 2);
    CHECK(fstatat(scratch_fd, "to", &st, 0) == 0 && st.st_mtim.tv_sec == 2);
    CHECK(done.files == 6);
    clear();
}

static void depth_costs_no_descriptors(void)
{
    struct tree_copy done = { 0 };
    cleanup_close int fd = dir("from");
    int levels = 400;

    for (int i = 0; i < levels; i++) {
        int next;

        put(fd, "file", "text");
        CHECK(mkdirat(fd, "d", 0755) == 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(fd);
        fd = next;
    }
    CHECK(copy(&done) == 0);
    CHECK(done.files == 2 * (uint64_t)levels);
    clear();
}

static void many_entries_are_all_copied(void)
{
    struct tree_copy done = { 0 };
    cleanup_close int fd = dir("from");
    char name[64];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "dir%d", i);
        CHECK(mkdirat(fd, name, 0755) == 0);
        for (int j = 0; j < 10; j++) {
            (void)snprintf(name, sizeof(name), "dir%d/%d", i, j);
            put(fd, name, "x");
        }
    }
    CHECK(copy(&done) == 0 && done.files == 1100);
    clear();
}

enum { PAIRS = 100, COPIES = 40 };

/* Exchanges names below fd as fast as possible: directories with links to outside, files with
 * links, and a directory that disappears and returns. */
static pid_t swap_names(int fd)
{
    char dir_name[16], link_name[16];
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        (void)snprintf(dir_name, sizeof(dir_name), "dir%u", i % PAIRS);
        (void)snprintf(link_name, sizeof(link_name), "link%u", i % PAIRS);
        (void)renameat2(fd, dir_name, fd, link_name, RENAME_EXCHANGE);
        (void)renameat2(fd, "file", fd, "file-link", RENAME_EXCHANGE);
        (void)renameat2(fd, "d/deep", fd, "deep", RENAME_NOREPLACE);
        (void)renameat2(fd, "deep", fd, "d/deep", RENAME_NOREPLACE);
    }
}

static void make_pairs(int fd)
{
    char name[32];

    for (int i = 0; i < PAIRS; i++) {
        (void)snprintf(name, sizeof(name), "dir%d", i);
        CHECK(mkdirat(fd, name, 0755) == 0);
        (void)snprintf(name, sizeof(name), "link%d", i);
        CHECK(symlinkat("../outside", fd, name) == 0);
    }
    put(fd, "file", "own");
    CHECK(symlinkat("../outside/secret", fd, "file-link") == 0);
}

static void check_no_secret(void)
{
    char name[32];

    for (int i = 0; i < 2 * PAIRS; i++) {
        (void)snprintf(name, sizeof(name), "to/%s%d/secret", i % 2 ? "dir" : "link", i / 2);
        CHECK(!reads(scratch_fd, name, "secret"), "(%s)", name);
    }
    CHECK(!reads(scratch_fd, "to/file", "secret") && !reads(scratch_fd, "to/file-link", "secret"));
}

static void what_is_moved_meanwhile_leads_nowhere(void)
{
    cleanup_close int fd = dir("from"), outside = dir("outside");
    char path[400] = "d/deep";
    pid_t pid;

    put(outside, "secret", "secret");
    CHECK(mkdirat(fd, "d", 0755) == 0);
    make_pairs(fd);
    for (int i = 0; i < 40; i++) {
        CHECK(mkdirat(fd, path, 0755) == 0);
        (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/x");
    }
    pid = swap_names(fd);
    for (int i = 0; i < COPIES; i++) {
        struct tree_copy done = { 0 };
        int r = copy(&done);

        CHECK(r == 0 || r == -ESTALE || r == -ELOOP || r == -EINVAL || r == -ENOENT || r == -EEXIST,
              "(%s)", strerror(-r));
        check_no_secret();
    }
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    clear();
}

static void owners_can_be_lower(void)
{
    struct tree_copy done = { .owner_shift = 100000 };
    cleanup_close int fd = dir("from");
    struct stat st;

    if (geteuid() != 0)
        SKIP("needs root");
    put(fd, "file", "x");
    CHECK(fchownat(fd, "file", 101000, 100000, 0) == 0);
    CHECK(copy(&done) == 0 && fstatat(scratch_fd, "to/file", &st, 0) == 0);
    CHECK(st.st_uid == 1000 && st.st_gid == 0);
    clear();
}

static void all(void)
{
    char path[] = "/tmp/holt-copy-test-XXXXXX";

    CHECK(mkdtemp(path));
    scratch_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(scratch_fd >= 0);
    RUN(contents_and_attributes_are_kept);
    RUN(depth_costs_no_descriptors);
    RUN(many_entries_are_all_copied);
    RUN(what_is_moved_meanwhile_leads_nowhere);
    RUN(owners_can_be_lower);
    (void)close(scratch_fd);
    CHECK(tree_remove_at(AT_FDCWD, path) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
