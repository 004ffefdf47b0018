// SPDX-License-Identifier: Apache-2.0
/* Operations on files through an overlay alone, and through holt-view over it.
 *
 * usage: view_holt FILES SECONDS [PASSTHROUGH_LL]     as root, in a mount namespace of its own,
 *                                     with holt-view beside this program
 * Prints one JSON object for each operation and file system: operations a second on one thread, or
 * MB a second. The files are on a tmpfs, so that no disk is measured. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/view/view.h"
#include "kernel/mount.h"

enum { FILES_PER_DIRECTORY = 100, DATA_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20, NAME_BYTES = 64 };

static const char rules[] = "/**=write\n**/.env*=none@1\n/vendor/**=read@2\n";

static unsigned file_count, next_name;
static double seconds;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static const char *file_name(unsigned index)
{
    static char name[NAME_BYTES];

    (void)snprintf(name, sizeof(name), "d%u/f%u", index / FILES_PER_DIRECTORY, index);
    return name;
}

/* --- operations: each returns how many units of work it did ------------------------------------
 */

static double open_read_close(int dir_fd, unsigned i)
{
    char text[64];
    int fd = openat(dir_fd, file_name(i % file_count), O_RDONLY | O_CLOEXEC);

    check(fd >= 0 && read(fd, text, sizeof(text)) > 0, "open and read");
    (void)close(fd);
    return 1;
}

static double stat_again(int dir_fd, unsigned i)
{
    struct stat st;

    check(fstatat(dir_fd, file_name(i % file_count), &st, 0) == 0, "stat");
    return 1;
}

static double create_remove(int dir_fd, unsigned i)
{
    char name[NAME_BYTES];
    int fd;

    (void)snprintf(name, sizeof(name), "d0/new%u", i);
    fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    check(fd >= 0, "create");
    (void)close(fd);
    check(unlinkat(dir_fd, name, 0) == 0, "unlink");
    return 1;
}

static double rename_file(int dir_fd, unsigned i)
{
    char from[NAME_BYTES], to[NAME_BYTES];

    (void)i;
    (void)snprintf(from, sizeof(from), "d0/renamed%u", next_name);
    (void)snprintf(to, sizeof(to), "d0/renamed%u", ++next_name);
    check(renameat(dir_fd, from, dir_fd, to) == 0, "rename");
    return 1;
}

static double list_directory(int dir_fd, unsigned i)
{
    char name[NAME_BYTES];
    int fd;
    DIR *dir;

    (void)snprintf(name, sizeof(name), "d%u", i % (file_count / FILES_PER_DIRECTORY));
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fdopendir(fd);
    check(dir, "opendir");
    while (readdir(dir))
        ;
    (void)closedir(dir);
    return 1;
}

static char block[BLOCK_BYTES];

static double move_data(int dir_fd, int flags)
{
    int fd = openat(dir_fd, "data", flags | O_CLOEXEC, 0644);

    check(fd >= 0, "open data");
    for (int at = 0; at < DATA_BYTES; at += BLOCK_BYTES)
        check((flags & O_WRONLY ? write(fd, block, BLOCK_BYTES) : read(fd, block, BLOCK_BYTES)) ==
                  BLOCK_BYTES,
              "data");
    (void)close(fd);
    return DATA_BYTES / 1e6;
}

static double write_data(int dir_fd, unsigned i)
{
    (void)i;
    return move_data(dir_fd, O_WRONLY | O_CREAT);
}

static double read_data(int dir_fd, unsigned i)
{
    (void)i;
    return move_data(dir_fd, O_RDONLY);
}

static const struct {
    const char *name, *unit;
    double (*run)(int dir_fd, unsigned i);
} operations[] = {
    { "open+read+close", "1/s", open_read_close },
    { "stat", "1/s", stat_again },
    { "create+unlink", "1/s", create_remove },
    { "rename", "1/s", rename_file },
    { "list 100 names", "1/s", list_directory },
    { "write", "MB/s", write_data },
    { "read", "MB/s", read_data },
};

static void measure(const char *system, int dir_fd)
{
    int fd = openat(dir_fd, "d0/renamed0", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    check(fd >= 0, "make a file to rename");
    (void)close(fd);
    next_name = 0;
    for (size_t which = 0; which < ARRAY_SIZE(operations); which++) {
        const double began = now();
        double work = 0, ended = began;

        for (unsigned i = 0; ended - began < seconds; ended = now())
            for (unsigned many = 0; many < 16; many++)
                work += operations[which].run(dir_fd, i++);
        (void)printf("{\"bench\":\"view\",\"system\":\"%s\",\"operation\":\"%s\",\"unit\":\"%s\","
                     "\"files\":%u,\"value\":%.0f}\n",
                     system, operations[which].name, operations[which].unit, file_count,
                     work / (ended - began));
        (void)fflush(stdout);
    }
}

/* --- file systems ------------------------------------------------------------------------------
 */

static void files_make(int dir_fd)
{
    char name[NAME_BYTES];

    for (unsigned i = 0; i < file_count; i++) {
        int fd;

        if (i % FILES_PER_DIRECTORY == 0) {
            (void)snprintf(name, sizeof(name), "d%u", i / FILES_PER_DIRECTORY);
            check(mkdirat(dir_fd, name, 0755) == 0, "mkdir");
        }
        fd = openat(dir_fd, file_name(i), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        check(fd >= 0 && write(fd, "some text\n", 10) == 10, "make files");
        (void)close(fd);
    }
}

static int directory_make(int parent_fd, const char *name)
{
    check(mkdirat(parent_fd, name, 0755) == 0, name);
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int overlay_make(int dir_fd, int lower_fd, const char *upper, const char *work)
{
    struct overlay overlay = { .lower_fds = &lower_fd,
                               .lower_count = 1,
                               .upper_fd = directory_make(dir_fd, upper),
                               .work_fd = directory_make(dir_fd, work) };
    int fd = mount_overlay(&overlay);

    (void)close(overlay.upper_fd);
    (void)close(overlay.work_fd);
    check(fd >= 0, "mount an overlay");
    return fd;
}

/* Runs libfuse's own example over an overlay. */
static void peer_measure(int dir_fd, const char *dir, int lower_fd, const char *program)
{
    char source[NAME_BYTES], target[NAME_BYTES], options[2 * NAME_BYTES];
    int source_fd = directory_make(dir_fd, "source"), target_fd = directory_make(dir_fd, "peer");
    int overlay_fd = overlay_make(dir_fd, lower_fd, "upper3", "work3"), status = 0;
    pid_t pid;

    (void)snprintf(source, sizeof(source), "%s/source", dir);
    (void)snprintf(target, sizeof(target), "%s/peer", dir);
    (void)snprintf(options, sizeof(options), "source=%s,cache=always", source);
    check(mount_attach(overlay_fd, source_fd) == 0, "attach the overlay of the peer");
    pid = fork();
    if (pid == 0) {
        (void)execl(program, program, "-o", options, target, (char *)NULL);
        _exit(1);
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, program);
    (void)close(target_fd);
    target_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    measure("passthrough_ll", target_fd);
    (void)close(target_fd);
    (void)umount2(target, MNT_DETACH);
    (void)close(overlay_fd);
    (void)close(source_fd);
}

int main(int argc, char **argv)
{
    static const struct view_events no_events;
    char dir[] = "/tmp/holt-bench-XXXXXX";
    struct err err = { 0 };
    struct views *views;
    struct view *view;
    int dir_fd, lower_fd, overlay_fd, served_fd, mount_fd;
    double began;

    file_count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 50000;
    seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    check(file_count >= FILES_PER_DIRECTORY && mkdtemp(dir), dir);
    check(mount("tmpfs", dir, "tmpfs", 0, "mode=0755") == 0, "mount a tmpfs");
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lower_fd = directory_make(dir_fd, "lower");
    files_make(lower_fd);
    overlay_fd = overlay_make(dir_fd, lower_fd, "upper", "work");
    served_fd = overlay_make(dir_fd, lower_fd, "upper2", "work2");
    check(views_start(dir_fd, &no_events, &views, &err) == 0, err.msg);
    began = now();
    if (view_start(views,
                   &(struct view_start){
                       .id = "bench", .mount_fd = served_fd, .rules = rules, .generation = 1 },
                   &mount_fd, &view, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    (void)printf("{\"bench\":\"view\",\"system\":\"holt-view\",\"operation\":\"start\","
                 "\"unit\":\"ms\",\"files\":%u,\"value\":%.2f}\n",
                 file_count, (now() - began) * 1000);
    (void)close(served_fd);
    measure("overlay", overlay_fd);
    measure("holt-view", mount_fd);
    if (argc > 3)
        peer_measure(dir_fd, dir, lower_fd, argv[3]);
    (void)close(overlay_fd);
    (void)close(mount_fd);
    view_stop(view);
    views_stop(views);
    (void)umount2(dir, MNT_DETACH);
    (void)rmdir(dir);
    return 0;
}
