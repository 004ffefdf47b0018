// SPDX-License-Identifier: Apache-2.0
/* Random programs on real overlays; what diff_run reports about the layers must equal a plain
 * comparison of the merged trees. usage: store_diff_random_test [SEED [PROGRAMS]] */
#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "kernel/mount.h"
#include "kernel/store/diff_oracle.h"
#include "kernel/store/diff_world.h"
#include "store/backend/btrfs_image.h"

enum {
    PROGRAMS = 400,
    OPERATIONS = 30,
    LOWER_OPERATIONS = 120, /* leave some 50 files */
};

static unsigned random_state;

static unsigned pick(unsigned count)
{
    return (unsigned)rand_r(&random_state) % count;
}

static void random_path(char path[static PATH_BYTES])
{
    static const char *const names[] = { "a", "b", "a.b", "a-b", "a0", "n\nl", "sp ace", "\xff" };
    unsigned depth = 1 + pick(3);
    size_t used = (size_t)snprintf(path, PATH_BYTES, "merged");

    while (depth-- > 0)
        used +=
            (size_t)snprintf(path + used, PATH_BYTES - used, "/%s", names[pick(ARRAY_SIZE(names))]);
}

/* Few texts, so that equal ones occur. */
static int write_text(const char *path, int flags)
{
    static const char *const texts[] = { "", "one\n", "two\n", "three\n", "no newline", "\0bin" };
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0644);
    unsigned which = pick(ARRAY_SIZE(texts));
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > TEXT_MAX / 2)
        return -1;
    return (int)write(fd, texts[which], which == 5 ? 4 : strlen(texts[which]));
}

static int op_create(const char *path, const char *other)
{
    (void)other;
    return write_text(path, O_CREAT | O_TRUNC);
}

static int op_append(const char *path, const char *other)
{
    (void)other;
    return write_text(path, O_APPEND);
}

static int op_overwrite(const char *path, const char *other)
{
    (void)other;
    return write_text(path, 0);
}

static int op_truncate(const char *path, const char *other)
{
    struct stat st;

    (void)other;
    /* Through a link it could leave the tree. */
    return lstat(path, &st) < 0 || !S_ISREG(st.st_mode) ? -1 : truncate(path, pick(12));
}

static int op_mkdir(const char *path, const char *other)
{
    (void)other;
    return mkdir(path, 0755);
}

static int op_rmdir(const char *path, const char *other)
{
    (void)other;
    return rmdir(path);
}

static int op_unlink(const char *path, const char *other)
{
    (void)other;
    return unlink(path);
}

static int op_remove_tree(const char *path, const char *other)
{
    (void)other;
    return pick(3) == 0 ? tree_remove_at(AT_FDCWD, path) : -1;
}

static int op_rename(const char *path, const char *other)
{
    return rename(path, other);
}

static int op_exchange(const char *path, const char *other)
{
    return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
}

static int op_link(const char *path, const char *other)
{
    return link(path, other);
}

static int op_symlink(const char *path, const char *other)
{
    return symlink(strrchr(other, '/') + 1, path);
}

static int op_chmod(const char *path, const char *other)
{
    struct stat st;

    (void)other;
    return lstat(path, &st) < 0 || S_ISLNK(st.st_mode) ? -1 : chmod(path, pick(2) ? 0755 : 0640);
}

static int op_chown(const char *path, const char *other)
{
    (void)other;
    return lchown(path, pick(3), pick(3));
}

static int op_dir_to_file(const char *path, const char *other)
{
    struct stat st;

    (void)other;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || pick(3) ||
        tree_remove_at(AT_FDCWD, path) < 0)
        return -1;
    return write_text(path, O_CREAT);
}

static int op_file_to_dir(const char *path, const char *other)
{
    struct stat st;

    (void)other;
    if (lstat(path, &st) < 0 || S_ISDIR(st.st_mode) || unlink(path) < 0)
        return -1;
    return mkdir(path, 0755);
}

static int op_dir_anew(const char *path, const char *other)
{
    struct stat st;

    (void)other;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || tree_remove_at(AT_FDCWD, path) < 0)
        return -1;
    return mkdir(path, 0755);
}

static int op_file_anew(const char *path, const char *other)
{
    char text[TEXT_MAX];
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_close int new_fd = -EBADF;
    ssize_t len;
    struct stat st;

    (void)other;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || unlink(path) < 0)
        return -1;
    len = read(fd, text, sizeof(text));
    new_fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    return new_fd < 0 || len < 0 ? -1 : (int)write(new_fd, text, (size_t)len);
}

static int op_fifo(const char *path, const char *other)
{
    (void)other;
    return pick(3) == 0 ? mkfifo(path, 0644) : -1;
}

static int op_touch(const char *path, const char *other)
{
    (void)other;
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

static struct {
    int (*run)(const char *path, const char *other);
    unsigned weight;
    size_t done;
} operations[] = {
    { op_create, 8, 0 },      { op_append, 3, 0 },      { op_overwrite, 3, 0 },
    { op_truncate, 3, 0 },    { op_mkdir, 6, 0 },       { op_rmdir, 2, 0 },
    { op_unlink, 4, 0 },      { op_remove_tree, 2, 0 }, { op_rename, 8, 0 },
    { op_exchange, 2, 0 },    { op_link, 3, 0 },        { op_symlink, 3, 0 },
    { op_chmod, 3, 0 },       { op_chown, 3, 0 },       { op_dir_to_file, 2, 0 },
    { op_file_to_dir, 2, 0 }, { op_dir_anew, 2, 0 },    { op_file_anew, 4, 0 },
    { op_fifo, 2, 0 },        { op_touch, 3, 0 },
};

/* Tries until one operation has had an effect. */
static void operate(void)
{
    char path[PATH_BYTES], other[PATH_BYTES];

    for (int tries = 0; tries < 1000; tries++) {
        size_t i = pick(ARRAY_SIZE(operations));

        if (pick(8) >= operations[i].weight)
            continue;
        random_path(path);
        random_path(other);
        if (operations[i].run(path, other) < 0)
            continue;
        operations[i].done++;
        return;
    }
}

static void operate_in(const char *upper, const char *lowers, struct state *state)
{
    overlay_mount(upper, lowers);
    for (int i = 0; i < OPERATIONS; i++)
        operate();
    state_take(state, "merged");
    overlay_umount();
}

static void lower_make(struct state *state)
{
    CHECK(mkdir("lower", 0755) == 0 && rename("lower", "merged") == 0);
    for (int i = 0; i < LOWER_OPERATIONS; i++)
        operate();
    state_take(state, "merged");
    CHECK(rename("merged", "lower") == 0);
}

static struct state states[4];

static void check_both_ways(const char *a_layers, const struct state *a, const char *b_layers,
                            const struct state *b)
{
    const struct diff_options options = { .wants_patch = pick(20) == 0 };

    oracle_check(a_layers, a, b_layers, b, &options);
    oracle_check(b_layers, b, a_layers, a, &options);
}

/* The upper as written, and again above it after it has become a layer of a template. */
static void program_commits(void)
{
    operate_in("upper2", "upper:lower", &states[2]);
    check_both_ways("upper:lower", &states[1], "upper2:upper:lower", &states[2]);
    check_both_ways("lower", &states[0], "upper2:upper:lower", &states[2]);
}

/* Two branches of one template. */
static void program_branches(void)
{
    operate_in("upper2", "lower", &states[2]);
    check_both_ways("upper:lower", &states[1], "upper2:lower", &states[2]);
}

static bool is_btrfs;

static void tree_copy(const char *from, const char *to)
{
    cleanup_close int from_fd = -EBADF, dir_fd = -EBADF;
    struct btrfs_ioctl_vol_args_v2 args = { 0 };

    if (!is_btrfs) {
        CHECK(run_in(".", "cp", "-a", from, to, NULL) == 0);
        return;
    }
    from_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    args.fd = from_fd;
    (void)snprintf(args.name, sizeof(args.name), "%s", to);
    CHECK(ioctl(dir_fd, BTRFS_IOC_SNAP_CREATE_V2, &args) == 0, "(%s)", strerror(errno));
}

/* A snapshot of the upper, and the upper after further changes. */
static void program_goes_on(void)
{
    tree_copy("upper", "snapshot");
    operate_in("upper", "lower", &states[2]);
    check_both_ways("snapshot:lower", &states[1], "upper:lower", &states[2]);
    check_both_ways("lower", &states[0], "snapshot:lower", &states[1]);
}

/* A whole tree and a clone of it with further changes: no layers at all. */
static void program_clones(void)
{
    tree_copy("upper", "snapshot");
    CHECK(rename("upper", "merged") == 0);
    state_take(&states[1], "merged");
    for (int i = 0; i < OPERATIONS; i++)
        operate();
    state_take(&states[2], "merged");
    CHECK(rename("merged", "upper") == 0);
    check_both_ways("snapshot", &states[1], "upper", &states[2]);
}

static void upper_make(void)
{
    cleanup_close int dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct btrfs_ioctl_vol_args args = { .name = "upper" };

    if (is_btrfs)
        CHECK(ioctl(dir_fd, BTRFS_IOC_SUBVOL_CREATE, &args) == 0, "(%s)", strerror(errno));
}

static void run_program(unsigned program_seed)
{
    static void (*const programs[])(void) = { program_commits, program_branches, program_goes_on };

    random_state = program_seed;
    stage_begin();
    lower_make(&states[0]);
    upper_make();
    operate_in("upper", "lower", &states[1]);
    check_both_ways("lower", &states[0], "upper:lower", &states[1]);
    if (pick(4) > 0) {
        programs[pick(ARRAY_SIZE(programs))]();
    } else {
        /* Without whiteouts, which only an overlay may create. */
        CHECK(tree_remove_at(AT_FDCWD, "upper") == 0 && tree_remove_at(AT_FDCWD, "merged") == 0);
        upper_make();
        CHECK(run_in(".", "cp", "-aT", "lower", "upper", NULL) == 0);
        program_clones();
    }
    stage_end();
}

static unsigned first_seed = 1;
static unsigned seed; /* of the running program; 0: none */
static unsigned program_count = PROGRAMS;

/* A failed check ends the test program; its last line says how to reproduce the failure. */
static void seed_tell(void)
{
    if (seed > 0)
        (void)printf("the seed was %u%s\n", seed, is_btrfs ? ", on btrfs" : "");
}

static void run_programs(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        seed = first_seed + i;
        run_program(seed);
    }
    seed = 0;
}

static void layers_differ_as_merged_trees_do(void)
{
    run_programs(program_count);
    for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
        CHECK(operations[i].done > 0, "(operation %zu was never done)", i);
    CHECK(oracle_renames > 0);
    (void)printf("%u programs, %zu changes, %zu renames\n", program_count, oracle_changes,
                 oracle_renames);
}

static void snapshots_of_btrfs_differ_as_merged_trees_do(void)
{
    cleanup_close int state_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int target_fd = -EBADF;
    struct err err = { 0 };
    struct image *image;

    if (image_open(state_fd, ".", &image, &err) < 0)
        SKIP("%s", err.msg);
    make_dir("btrfs");
    target_fd = open("btrfs", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(mount_attach(image_root(image), target_fd) == 0 && chdir("btrfs") == 0);
    is_btrfs = true;
    run_programs(program_count / 4);
    is_btrfs = false;
    CHECK(chdir("..") == 0 && umount2("btrfs", MNT_DETACH) == 0);
    image_close(image);
}

static void all(void)
{
    world_begin();
    CHECK(atexit(seed_tell) == 0);
    RUN_CLEAN(layers_differ_as_merged_trees_do);
    RUN_CLEAN(snapshots_of_btrfs_differ_as_merged_trees_do);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        program_count = (unsigned)strtoul(argv[2], NULL, 10);
    RUN(all);
    return 0;
}
