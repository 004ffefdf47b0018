// SPDX-License-Identifier: Apache-2.0
/* Operations on files through an overlay alone, through holt-view over it, and through the overlay
 * of a mask, by which nothing can be written.
 *
 * usage: view_holt FILES SECONDS [PASSTHROUGH_LL [BINDFS]]     as root, in a mount namespace of its
 *                                     own, with holt-view beside this program
 * Prints one JSON object for each operation and file system: operations a second on one thread, MB
 * a second, or the milliseconds of a program. The files are on a tmpfs, so that no disk is
 * measured. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/view/mask.h"
#include "host/view/view.h"
#include "kernel/mount.h"
#include "view/rules.h"

enum { FILES_PER_DIRECTORY = 100, DATA_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20, NAME_BYTES = 64 };
enum { ROUNDS = 5, PEERS = 2, SUBJECTS_MAX = 3 + PEERS, PEER_FILES = 1 << 20, PEER_SPARE = 1000 };
enum { OPENED_MAX = 10000 }; /* files that single operations use */

static const char rules[] = "/**=write\n**/.env*=none@1\n/vendor/**=read@2\n";
static const char mask_rules[] = "/**=read\n**/.env*=none@1\n";

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
    int fd = openat(dir_fd, file_name(i % (file_count < OPENED_MAX ? file_count : OPENED_MAX)),
                    O_RDONLY | O_CLOEXEC);

    check(fd >= 0 && read(fd, text, sizeof(text)) > 0, "open and read");
    (void)close(fd);
    return 1;
}

static double stat_again(int dir_fd, unsigned i)
{
    struct stat st;

    check(fstatat(dir_fd, file_name(i % (file_count < OPENED_MAX ? file_count : OPENED_MAX)), &st,
                  0) == 0,
          "stat");
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

    (void)snprintf(name, sizeof(name), "d%u",
                   i % FILES_PER_DIRECTORY % (file_count / FILES_PER_DIRECTORY));
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
    bool writes;
} operations[] = {
    { "open+read+close", "1/s", open_read_close, false },
    { "stat", "1/s", stat_again, false },
    { "create+unlink", "1/s", create_remove, true },
    { "rename", "1/s", rename_file, true },
    { "list 100 names", "1/s", list_directory, false },
    { "write", "MB/s", write_data, true },
    { "read", "MB/s", read_data, false },
};

/* --- programs ----------------------------------------------------------------------------------
 */

/* A build makes what it made before again. */
static const struct {
    const char *name, *command;
    bool reads_all; /* files */
    bool writes;
} programs[] = {
    { "git status", "git --no-optional-locks -c safe.directory='*' status --porcelain", true,
      false },
    { "ripgrep", "rg --quiet 'nothing has this' || [ $? = 1 ]", true, false },
    { "build of 20 C files", "make -s -C project clean all", false, true },
};

/* Runs a command in the directory. */
static void program_run(int dir_fd, const char *command)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (fchdir(dir_fd) == 0 && dup2(fd, STDOUT_FILENO) >= 0)
            (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, command);
}

/* The first run fills caches. */
static double program_measure(int dir_fd, const char *command)
{
    double began;

    program_run(dir_fd, command);
    began = now();
    program_run(dir_fd, command);
    return (now() - began) * 1000;
}

/* --- measuring ---------------------------------------------------------------------------------
 */

enum { RESULTS = ARRAY_SIZE(operations) + ARRAY_SIZE(programs) };

static struct subject {
    const char *name;
    int dir_fd;
    bool is_small;  /* it cannot have all files in use */
    bool is_sealed; /* nothing can be written */
    double values[RESULTS][ROUNDS];
} subjects[SUBJECTS_MAX];
static size_t subject_count;

static struct subject *subject_add(const char *name, int dir_fd)
{
    struct subject *subject = &subjects[subject_count++];

    subject->name = name;
    subject->dir_fd = dir_fd;
    return subject;
}

static double operation_measure(int dir_fd, double (*run)(int dir_fd, unsigned i))
{
    const double began = now();
    double work = 0, ended = began;

    for (unsigned i = 0; ended - began < seconds; ended = now())
        for (unsigned many = 0; many < 16; many++)
            work += run(dir_fd, i++);
    return work / (ended - began);
}

static bool subject_skips(const struct subject *subject, size_t result)
{
    const size_t program = result - ARRAY_SIZE(operations);

    if (result < ARRAY_SIZE(operations))
        return subject->is_sealed && operations[result].writes;
    return (subject->is_small && programs[program].reads_all) ||
           (subject->is_sealed && programs[program].writes);
}

static double result_measure(const struct subject *subject, size_t result)
{
    if (result < ARRAY_SIZE(operations))
        return operation_measure(subject->dir_fd, operations[result].run);
    return program_measure(subject->dir_fd, programs[result - ARRAY_SIZE(operations)].command);
}

static void subject_measure(struct subject *subject, size_t round)
{
    const int dir_fd = subject->dir_fd;
    char name[NAME_BYTES];
    int fd;

    next_name = 0;
    if (!subject->is_sealed) {
        fd = openat(dir_fd, "d0/renamed0", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        check(fd >= 0, "make a file to rename");
        (void)close(fd);
    }
    for (size_t i = 0; i < RESULTS; i++)
        if (!subject_skips(subject, i))
            subject->values[i][round] = result_measure(subject, i);
    (void)snprintf(name, sizeof(name), "d0/renamed%u", next_name);
    check(subject->is_sealed || unlinkat(dir_fd, name, 0) == 0, "unlink");
}

static int value_compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static void report(const char *system, const char *operation, const char *unit, double value)
{
    (void)printf("{\"bench\":\"view\",\"system\":\"%s\",\"operation\":\"%s\",\"unit\":\"%s\","
                 "\"files\":%u,\"value\":%.*f}\n",
                 system, operation, unit, file_count, value < 100 ? 1 : 0, value);
}

/* Prints the median of all rounds. */
static void subject_report(struct subject *subject)
{
    for (size_t i = 0; i < RESULTS; i++) {
        const bool is_program = i >= ARRAY_SIZE(operations);
        const size_t which = is_program ? i - ARRAY_SIZE(operations) : i;

        if (subject_skips(subject, i))
            continue;
        qsort(subject->values[i], ROUNDS, sizeof(double), value_compare);
        report(subject->name, is_program ? programs[which].name : operations[which].name,
               is_program ? "ms" : operations[which].unit, subject->values[i][ROUNDS / 2]);
    }
}

/* Measures all in turn, so that a disturbance affects all. */
static void measure(void)
{
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < subject_count; i++)
            subject_measure(&subjects[i], round);
    for (size_t i = 0; i < subject_count; i++)
        subject_report(&subjects[i]);
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

/* Makes a repository of the files, with a small project in C. */
static void project_make(int dir_fd)
{
    program_run(
        dir_fd,
        "mkdir project && cd project && for i in $(seq 20); do\n"
        "for j in $(seq 20); do echo \"int f${i}_$j(int a, char **b) "
        "{ return a > $j && *b ? a * $i : printf(\\\"%d\\\", a); }\"; done |\n"
        "sed '1i#include <stdio.h>' >file$i.c; done\n"
        "echo 'int main(void) { return 0; }' >main.c\n"
        "printf 'all: program\\nprogram: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tcc -o $@ $^\\n"
        "clean:\\n\\trm -f *.o program\\n' >Makefile\n"
        "cd .. && printf '*.o\\nprogram\\ndata\\nrenamed*\\n' >.gitignore && git init -q . && git "
        "add . &&\n"
        "git -c user.name=bench -c user.email=bench@localhost commit -q -m bench");
}

static int directory_make(int parent_fd, const char *name)
{
    check(mkdirat(parent_fd, name, 0755) == 0, name);
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What has no file to write needs one that is there. */
static void data_make(int dir_fd)
{
    check(move_data(dir_fd, O_WRONLY | O_CREAT) > 0, "data");
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

/* Makes a mask and its overlay, as host/view/mask.c and store/volume/mount.c do. */
static int masked_make(int dir_fd, int lower_fd)
{
    static const struct mount_option options[] = {
        { "index", "off" }, { "redirect_dir", "nofollow" }, { "metacopy", "off" }, { "xino", "off" }
    };
    cleanup_view_rules struct view_rules *compiled = NULL;
    const int mask_fd = directory_make(dir_fd, "tree5"), own_fd = mount_new("tmpfs", NULL, 0, 0);
    struct overlay overlay = { .lower_fds = (const int[]){ mask_fd, lower_fd },
                               .lower_count = 2,
                               .upper_fd = directory_make(own_fd, "upper"),
                               .work_fd = directory_make(own_fd, "work"),
                               .options = options,
                               .option_count = ARRAY_SIZE(options) };
    char refusal[MASK_REFUSAL_SIZE];
    struct err err = { 0 };
    double began = now();
    int fd;

    check(view_rules_parse(mask_rules, 1, &compiled, &err) == 0, err.msg);
    check(mask_fill(lower_fd, compiled, mask_fd, refusal) == 0, refusal);
    report("mask", "make", "ms", (now() - began) * 1000);
    began = now();
    fd = mount_overlay(&overlay);
    check(fd >= 0, "mount the overlay of a mask");
    report("mask", "start", "ms", (now() - began) * 1000);
    (void)close(overlay.upper_fd);
    (void)close(overlay.work_fd);
    (void)close(mask_fd);
    (void)close(own_fd);
    return fd;
}

/* Attaches a mount, as programs need to know where they are. */
static struct subject *attach(const char *system, int dir_fd, int mount_fd)
{
    int fd = directory_make(dir_fd, system);

    check(mount_attach(mount_fd, fd) == 0, "attach");
    (void)close(fd);
    fd = openat(dir_fd, system, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return subject_add(system, fd);
}

/* A program that serves a directory as another one. */
struct peer {
    const char *name, *program;
    const char *options;               /* NULL: the program takes two directories */
    const char *source, *upper, *work; /* names of directories */
    bool has_descriptors;              /* one for every file that the kernel knows */
};

/* Returns how many descriptors a process may have, which is as many as this one can allow it. */
static unsigned files_max(void)
{
    struct rlimit files = { .rlim_cur = PEER_FILES, .rlim_max = PEER_FILES };

    (void)setrlimit(RLIMIT_NOFILE, &files);
    check(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
    return (unsigned)files.rlim_cur;
}

static void peer_exec(const struct peer *peer, const char *source, const char *target)
{
    char options[3 * NAME_BYTES];

    (void)snprintf(options, sizeof(options), "%s,source=%s", peer->options ? peer->options : "",
                   source);
    if (peer->options)
        (void)execl(peer->program, peer->program, "-o", options, target, (char *)NULL);
    else
        (void)execl(peer->program, peer->program, source, target, (char *)NULL);
    _exit(1);
}

/* Starts a peer over an overlay of its own. */
static void peer_start(int dir_fd, const char *dir, int lower_fd, const struct peer *peer)
{
    char source[NAME_BYTES + 16], target[NAME_BYTES + 16];
    const bool is_small = peer->has_descriptors && files_max() < file_count + PEER_SPARE;
    int source_fd = directory_make(dir_fd, peer->source),
        target_fd = directory_make(dir_fd, peer->name);
    int overlay_fd = overlay_make(dir_fd, lower_fd, peer->upper, peer->work), status = 0;
    pid_t pid;

    (void)snprintf(source, sizeof(source), "%s/%s", dir, peer->source);
    (void)snprintf(target, sizeof(target), "%s/%s", dir, peer->name);
    check(mount_attach(overlay_fd, source_fd) == 0, "attach the overlay of the peer");
    pid = fork();
    if (pid == 0)
        peer_exec(peer, source, target);
    check(waitpid(pid, &status, 0) == pid && status == 0, peer->program);
    (void)close(target_fd);
    target_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    subject_add(peer->name, target_fd)->is_small = is_small;
    (void)close(overlay_fd);
    (void)close(source_fd);
}

int main(int argc, char **argv)
{
    static const struct view_events no_events;
    char dir[] = "/tmp/holt-bench-XXXXXX";
    struct err err = { 0 };
    struct peer peers[PEERS] = {
        { "passthrough_ll", NULL, "cache=always", "source3", "upper3", "work3", true },
        { "bindfs", NULL, NULL, "source4", "upper4", "work4", false },
    };
    struct views *views;
    struct view *view;
    int dir_fd, lower_fd, overlay_fd, served_fd, mount_fd, masked_fd;
    double began;

    file_count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 50000;
    seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    check(file_count >= FILES_PER_DIRECTORY && mkdtemp(dir), dir);
    check(mount("tmpfs", dir, "tmpfs", 0, "mode=0755") == 0, "mount a tmpfs");
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(dir_fd >= 0 && fchdir(dir_fd) == 0, dir);
    lower_fd = directory_make(dir_fd, "lower");
    files_make(lower_fd);
    project_make(lower_fd);
    data_make(lower_fd);
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
    report("holt-view", "start", "ms", (now() - began) * 1000);
    (void)close(served_fd);
    (void)attach("overlay", dir_fd, overlay_fd);
    (void)attach("holt-view", dir_fd, mount_fd);
    masked_fd = masked_make(dir_fd, lower_fd);
    attach("mask", dir_fd, masked_fd)->is_sealed = true;
    for (int i = 0; i < PEERS && i + 3 < argc; i++) {
        peers[i].program = argv[i + 3];
        peer_start(dir_fd, dir, lower_fd, &peers[i]);
    }
    measure();
    (void)close(overlay_fd);
    (void)close(mount_fd);
    (void)close(masked_fd);
    for (size_t i = 0; i < subject_count; i++) {
        (void)close(subjects[i].dir_fd);
        (void)umount2(subjects[i].name, MNT_DETACH);
    }
    view_stop(view);
    views_stop(views);
    check(chdir("/") == 0, "/");
    (void)umount2(dir, MNT_DETACH);
    (void)rmdir(dir);
    return 0;
}
