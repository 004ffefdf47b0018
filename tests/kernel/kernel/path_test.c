// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "kernel/harness.h"
#include "kernel/path.h"

/* base/dir/file, with links out of base and inside it. */
static char base[] = "/tmp/holt-path-test-XXXXXX";
static int base_fd;

static void make_links(void)
{
    static const struct {
        const char *target, *name;
    } links[] = {
        { "dir", "inside" },
        { "dir/file", "inside_file" },
        { "/etc", "absolute" },
        { "/etc/passwd", "absolute_file" },
        { "../../../../etc", "above" },
        { "/dir", "root_relative" },
        { "loop", "loop" },
        { "/proc/self/root", "magic" },
        { "..", "parent" },
    };
    cleanup_close int file_fd = -EBADF;

    CHECK(mkdtemp(base));
    base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(base_fd >= 0 && mkdirat(base_fd, "dir", 0755) == 0);
    file_fd = openat(base_fd, "dir/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CHECK(file_fd >= 0 && write(file_fd, "text", 4) == 4);
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        CHECK(symlinkat(links[i].target, base_fd, links[i].name) == 0);
}

static int try(int (*open_fn)(int, const char *, int, mode_t), const char *path)
{
    int fd = open_fn(base_fd, path, O_RDONLY, 0);

    if (fd < 0)
        return fd;
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC, "(%s would be inherited)", path);
    (void)close(fd);
    return 0;
}

static bool is_escape(int r)
{
    return r == -EXDEV || r == -ELOOP;
}

static void beneath_opens_what_is_inside(void)
{
    CHECK(try(open_beneath, "dir/file") == 0 && try(open_beneath, "inside/file") == 0);
    CHECK(try(open_beneath, "inside_file") == 0 && try(open_beneath, "dir/../dir/file") == 0);
    CHECK(try(open_beneath, "dir/missing") == -ENOENT && try(open_beneath, "loop") == -ELOOP);
}

static void beneath_never_leaves(void)
{
    static const char *const ways[] = { "..",
                                        "../..",
                                        "dir/../../etc",
                                        "/etc/passwd",
                                        "absolute",
                                        "above",
                                        "absolute_file",
                                        "magic/etc",
                                        "absolute/passwd",
                                        "parent",
                                        "root_relative/file" };

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
        CHECK(is_escape(try(open_beneath, ways[i])), "(%s: %d)", ways[i],
              try(open_beneath, ways[i]));
}

static void in_root_stays_inside(void)
{
    CHECK(try(open_in_root, "/dir/file") == 0 && try(open_in_root, "root_relative/file") == 0);
    CHECK(try(open_in_root, "../../dir/file") == 0 && try(open_in_root, "parent/dir/file") == 0);
    /* This root has no etc, wherever the link points. */
    CHECK(try(open_in_root, "absolute/passwd") == -ENOENT);
    CHECK(try(open_in_root, "above/passwd") == -ENOENT);
    CHECK(try(open_in_root, "/etc/passwd") == -ENOENT);
    CHECK(try(open_in_root, "magic/etc/passwd") < 0);
}

static void no_links_follows_none(void)
{
    static const char *const links[] = { "inside",   "inside/file", "inside_file",
                                         "absolute", "loop",        "magic" };

    CHECK(try(open_no_links, "dir/file") == 0);
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        CHECK(try(open_no_links, links[i]) == -ELOOP, "(%s)", links[i]);
    CHECK(is_escape(try(open_no_links, "../etc")) && is_escape(try(open_no_links, "/etc/passwd")));
}

static void a_new_file_is_made_inside_only(void)
{
    int fd = open_beneath(base_fd, "dir/new", O_CREAT | O_EXCL | O_WRONLY, 0600);
    struct stat info;

    CHECK(fd >= 0 && fstat(fd, &info) == 0 && (info.st_mode & 07777) == 0600);
    (void)close(fd);
    CHECK(is_escape(open_beneath(base_fd, "above/holt-path-test", O_CREAT | O_WRONLY, 0600)));
    CHECK(access("/etc/holt-path-test", F_OK) < 0);
}

/* Another process repeatedly exchanges a directory for a link to /etc. */
static void a_race_with_a_link_is_never_won(void)
{
    struct stat wanted, outside;
    pid_t pid;

    CHECK(stat("/etc/passwd", &outside) == 0 && mkdirat(base_fd, "swap", 0755) == 0);
    CHECK(mkdirat(base_fd, "swap/real", 0755) == 0 && symlinkat("/etc", base_fd, "swap/link") == 0);
    (void)close(openat(base_fd, "swap/real/passwd", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    CHECK(fstatat(base_fd, "swap/real/passwd", &wanted, 0) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        for (;;)
            (void)renameat2(base_fd, "swap/real", base_fd, "swap/link", RENAME_EXCHANGE);
    for (int i = 0; i < 20000; i++) {
        cleanup_close int fd = open_beneath(base_fd, "swap/real/passwd", O_RDONLY, 0);
        struct stat info;

        if (fd < 0)
            continue;
        CHECK(fstat(fd, &info) == 0 && info.st_ino == wanted.st_ino &&
              info.st_ino != outside.st_ino);
    }
    (void)kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void all(void)
{
    make_links();
    RUN_CLEAN(beneath_opens_what_is_inside);
    RUN_CLEAN(beneath_never_leaves);
    RUN_CLEAN(in_root_stays_inside);
    RUN_CLEAN(no_links_follows_none);
    RUN_CLEAN(a_new_file_is_made_inside_only);
    RUN_CLEAN(a_race_with_a_link_is_never_won);
    (void)close(base_fd);
    CHECK(tree_remove_at(AT_FDCWD, base) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
