// SPDX-License-Identifier: Apache-2.0
/* Imports of a root: formats, and attacks by hostile archives. */
#include "unit/store/import_test.h"

#include <linux/limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define BUSYBOX "/bin/busybox"

extern char **environ;

static void every_compression_is_read(void)
{
    static const char *const filters[] = { NULL, "gzip", "zstd", "xz", "bzip2" };
    static const struct item items[] = {
        { .path = "etc/", .type = S_IFDIR },
        { .path = "etc/hello", .text = "hi\n" },
    };
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
        CHECK_IMPORTED(import_items("t", filters[i], items, ARRAY_SIZE(items)));
        CHECK_TEXT(text_in("t", "etc/hello"), "hi\n");
        CHECK(fstatat(scratch_fd, "archive", &st, 0) == 0);
        CHECK(told.source_total == (uint64_t)st.st_size && told.source_bytes == told.source_total);
        forget("t");
    }
}

static void other_formats_are_refused(void)
{
    file_put("archive", "#!/bin/sh\nexit 0\n", 17);
    CHECK_REFUSED(import_path_as("t", "archive"), ERR_INVALID, "not a tar archive");
    file_put("archive", "", 0);
    CHECK_REFUSED(import_path_as("t", "archive"), ERR_INVALID, "not a tar archive");
    CHECK_REFUSED(import_path_as("t", "missing"), ERR_NOT_FOUND, "does not exist");
    CHECK(mkfifoat(scratch_fd, "fifo", 0600) == 0);
    CHECK_REFUSED(import_path_as("t", "fifo"), ERR_INVALID, "neither a directory nor an archive");
}

static void owners_modes_and_times_are_kept(void)
{
    struct stat st;

    CHECK_IMPORTED(IMPORT("t", { .path = "./", .type = S_IFDIR, .mode = 0750, .mtime = 7 },
                          { .path = "./bin/", .type = S_IFDIR, .mode = 0555, .mtime = 5 },
                          { .path = "./bin/su", .mode = 04755, .uid = 0, .mtime = 6, .text = "s" },
                          { .path = "./bin/mine", .mode = 0600, .uid = 65535, .text = "m" },
                          { .path = "./bin/link", .type = S_IFLNK, .link = "su", .uid = 3 },
                          { .path = "./bin/pipe", .type = S_IFIFO, .mode = 0622, .uid = 4 }));
    st = stat_in("t", "bin/su");
    CHECK((st.st_mode & 07777) == 04755 && st.st_mtime == 6 && st.st_uid == 0);
    st = stat_in("t", "bin/mine");
    CHECK((st.st_mode & 07777) == 0600 && st.st_uid == 65535 && st.st_gid == 65535);
    st = stat_in("t", "bin/link");
    CHECK(S_ISLNK(st.st_mode) && st.st_uid == 3);
    st = stat_in("t", "bin/pipe");
    CHECK(S_ISFIFO(st.st_mode) && (st.st_mode & 07777) == 0622 && st.st_uid == 4);
    /* The directory is read-only before its files are added, and keeps its time. */
    st = stat_in("t", "bin");
    CHECK((st.st_mode & 07777) == 0555 && st.st_mtime == 5);
    st = stat_in("t", ".");
    CHECK((st.st_mode & 07777) == 0750 && st.st_mtime == 7);
    forget("t");
}

static void names_beyond_ascii_are_kept(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "caf\xc3\xa9", .text = "x" },
                          { .path = "l\xc3\xafnk", .type = S_IFLNK, .link = "caf\xc3\xa9" },
                          { .path = "h\xc3\xa4rd", .hard = "caf\xc3\xa9" }));
    CHECK(S_ISREG(stat_in("t", "caf\xc3\xa9").st_mode));
    CHECK(S_ISLNK(stat_in("t", "l\xc3\xafnk").st_mode));
    CHECK(S_ISREG(stat_in("t", "h\xc3\xa4rd").st_mode));
    forget("t");
}

static void absolute_names_are_taken_from_the_root(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "/tmp/holt-absolute-name", .text = "in" }));
    CHECK_TEXT(text_in("t", "tmp/holt-absolute-name"), "in");
    CHECK(access("/tmp/holt-absolute-name", F_OK) < 0);
    CHECK((stat_in("t", "tmp").st_mode & 07777) == 0755); /* created implicitly */
    forget("t");
}

static void dotdot_is_refused_anywhere(void)
{
    static const char *const paths[] = { "../x", "a/../../x", "..", "a/..", "/..//x" };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        CHECK_REFUSED(IMPORT("t", { .path = paths[i], .text = "x" }), ERR_INVALID, "'..'");
    CHECK_REFUSED(IMPORT("t", { .path = "x", .hard = "../../victim" }), ERR_INVALID, "'..'");
}

static void the_victim_is_unharmed(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(64);

    CHECK(entries_in(scratch_fd, "outside") == 1);
    CHECK(file_read_at(scratch_fd, "outside/victim", &text) == 0);
    CHECK_TEXT(text.data, "untouched");
}

static void links_do_not_lead_out(void)
{
    char outside[96], victim[112];

    (void)snprintf(outside, sizeof(outside), "%s/outside", scratch);
    (void)snprintf(victim, sizeof(victim), "%s/victim", outside);
    CHECK(mkdirat(scratch_fd, "outside", 0755) == 0);
    file_put("outside/victim", "untouched", 9);

    /* A file, and a directory, through a link to a directory outside. */
    CHECK_REFUSED(IMPORT("t", { .path = "l", .type = S_IFLNK, .link = outside },
                         { .path = "l/victim", .text = "harmed" }),
                  ERR_INVALID, "dangling link");
    CHECK_REFUSED(IMPORT("t", { .path = "l", .type = S_IFLNK, .link = "../../../../outside" },
                         { .path = "l/new/", .type = S_IFDIR }),
                  ERR_INVALID, "dangling link");
    /* A hard link to a file outside, by name or through a link. */
    CHECK_REFUSED(IMPORT("t", { .path = "h", .hard = victim }), ERR_INVALID, "hard link");
    CHECK_REFUSED(IMPORT("t", { .path = "l", .type = S_IFLNK, .link = outside },
                         { .path = "h", .hard = "l/victim" }),
                  ERR_INVALID, "hard link");
    /* A file replaces a link; a hard link to a link is a link. */
    CHECK_IMPORTED(IMPORT("t", { .path = "l", .type = S_IFLNK, .link = victim },
                          { .path = "h", .hard = "l" }, { .path = "l", .text = "harmed" }));
    CHECK(S_ISREG(stat_in("t", "l").st_mode) && S_ISLNK(stat_in("t", "h").st_mode));
    forget("t");
    the_victim_is_unharmed();
}

static void links_inside_are_followed_inside(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "usr/bin/", .type = S_IFDIR },
                          { .path = "bin", .type = S_IFLNK, .link = "/usr/bin" },
                          { .path = "lib", .type = S_IFLNK, .link = "../../../usr/bin" },
                          { .path = "bin/a", .text = "a" }, { .path = "lib/b", .text = "b" },
                          { .path = "c", .hard = "bin/a" }));
    CHECK_TEXT(text_in("t", "usr/bin/a"), "a");
    CHECK_TEXT(text_in("t", "usr/bin/b"), "b");
    CHECK(stat_in("t", "c").st_ino == stat_in("t", "usr/bin/a").st_ino);
    forget("t");
}

static void a_loop_or_a_file_as_directory_is_refused(void)
{
    CHECK_REFUSED(
        IMPORT("t", { .path = "l", .type = S_IFLNK, .link = "l" }, { .path = "l/x", .text = "x" }),
        ERR_INVALID, "loop of links");
    CHECK_REFUSED(IMPORT("t", { .path = "f", .text = "x" }, { .path = "f/x", .text = "x" }),
                  ERR_INVALID, "not a directory");
}

static void the_root_itself_cannot_be_replaced(void)
{
    CHECK_REFUSED(IMPORT("t", { .path = "./", .type = S_IFLNK, .link = "/etc" }), ERR_INVALID,
                  "root");
    CHECK_REFUSED(IMPORT("t", { .path = "a", .text = "x" }, { .path = ".", .hard = "a" }),
                  ERR_INVALID, "root");
}

static void a_hard_link_to_itself_keeps_the_file(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "a", .text = "kept" }, { .path = "./a", .hard = "a" }));
    CHECK_TEXT(text_in("t", "a"), "kept");
    forget("t");
}

static void devices_are_refused_but_below_dev(void)
{
    CHECK_REFUSED(IMPORT("t", { .path = "etc/null", .type = S_IFCHR }), ERR_INVALID, "etc/null");
    CHECK_IMPORTED(IMPORT("t", { .path = "dev/", .type = S_IFDIR },
                          { .path = "dev/null", .type = S_IFCHR },
                          { .path = "dev/disk", .type = S_IFBLK }, { .path = "a", .text = "a" }));
    CHECK(S_ISDIR(stat_in("t", "dev").st_mode) && stat_in("t", "dev/null").st_mode == 0);
    forget("t");
}

static void owners_beyond_a_sandbox_are_refused(void)
{
    CHECK_REFUSED(IMPORT("t", { .path = "etc/x", .uid = 65536, .text = "x" }), ERR_INVALID,
                  "'etc/x' has owner 65536");
    CHECK_REFUSED(IMPORT("t", { .path = "l", .type = S_IFLNK, .link = "x", .uid = 4294967295 }),
                  ERR_INVALID, "has owner");
}

static void a_bomb_of_bytes_is_refused(void)
{
    static char zeros[TEST_BYTES_MAX + 1];
    static const struct item items[] = {
        { .path = "small", .text = "x" },
        { .path = "big", .text = zeros, .len = sizeof(zeros) },
    };

    CHECK_REFUSED(import_items("t", "gzip", items, ARRAY_SIZE(items)), ERR_EXHAUSTED, "'big'");
}

/* Skipped entries have to be decompressed as well. */
static void a_bomb_below_dev_is_refused(void)
{
    static char zeros[TEST_BYTES_MAX + 1];
    static const struct item items[] = { { .path = "dev/b", .text = zeros, .len = sizeof(zeros) } };

    CHECK_REFUSED(import_items("t", "gzip", items, ARRAY_SIZE(items)), ERR_EXHAUSTED, "bytes");
}

static void a_bomb_of_files_is_refused(void)
{
    static struct item items[TEST_FILES_MAX + 1];
    static char names[ARRAY_SIZE(items)][8];

    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
        items[i].path = names[i];
    }
    CHECK_REFUSED(import_items("t", NULL, items, ARRAY_SIZE(items)), ERR_EXHAUSTED, "files");
}

/* Few entries, but more directories than the file limit allows. */
static void directories_made_on_the_way_count(void)
{
    static char paths[5][2 * 100 + 8];
    struct item items[ARRAY_SIZE(paths)] = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        for (size_t depth = 0; depth < 100; depth++)
            memcpy(paths[i] + 2 * depth, "d/", 2);
        paths[i][0] = (char)('a' + i);
        paths[i][200] = 'f';
        items[i].path = paths[i];
    }
    CHECK_REFUSED(import_items("t", NULL, items, ARRAY_SIZE(items)), ERR_EXHAUSTED, "files");
}

static void too_deep_and_too_long_are_refused(void)
{
    static char deep[2 * 200 + 2], name[300], path[2 * PATH_MAX];

    for (size_t i = 0; i < 200; i++)
        (void)memcpy(deep + 2 * i, "d/", 3);
    memset(name, 'n', sizeof(name) - 1);
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 100 == 99 ? '/' : 'p';
    CHECK_REFUSED(IMPORT("t", { .path = deep, .type = S_IFDIR }), ERR_INVALID, "too deep");
    CHECK_REFUSED(IMPORT("t", { .path = name, .text = "x" }), ERR_INVALID,
                  "a name that is too long");
    CHECK_REFUSED(IMPORT("t", { .path = path, .text = "x" }), ERR_INVALID,
                  "a path that is too long");
}

static int import_truncated(const char *filter)
{
    static struct blob blob;
    static char noise[100000];
    unsigned state = 1;
    const struct item items[] = {
        { .path = "a", .text = "x" },
        { .path = "noise", .text = noise, .len = sizeof(noise) },
    };

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)((state = state * 1103515245 + 12345) >> 16);
    tar_write(&blob, filter, items, ARRAY_SIZE(items));
    file_put("archive", blob.data, blob.len / 2);
    return import_path_as("t", "archive");
}

static void a_truncated_archive_is_refused(void)
{
    static const char *const filters[] = { NULL, "gzip", "zstd", "xz", "bzip2" };

    for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
        CHECK_REFUSED(import_truncated(filters[i]), ERR_INVALID, "import 't'");
}

static void a_damaged_header_is_refused(void)
{
    static struct blob blob;
    const struct item items[] = { { .path = "a", .text = "x" }, { .path = "b", .text = "y" } };

    tar_write(&blob, NULL, items, ARRAY_SIZE(items));
    file_put("archive", blob.data, 1024 + 100); /* within the second header */
    CHECK_REFUSED(import_path_as("t", "archive"), ERR_INVALID, "after entry 'a'");
    blob.data[1024 + 3] ^= 0x55;
    file_put("archive", blob.data, blob.len);
    CHECK_REFUSED(import_path_as("t", "archive"), ERR_INVALID, "after entry 'a'");
}

static void only_harmless_attributes_are_kept(void)
{
    static const char *const dropped[] = { "trusted.overlay.opaque", "trusted.overlay.redirect",
                                           "user.overlay.redirect", "security.selinux" };
    char value[16], path[128];

    CHECK_IMPORTED(IMPORT("t", { .path = "a", .type = S_IFDIR, .xattr = dropped[0] },
                          { .path = "b", .type = S_IFDIR, .xattr = dropped[1] },
                          { .path = "c", .type = S_IFDIR, .xattr = dropped[2] },
                          { .path = "d", .text = "x", .xattr = dropped[3] },
                          { .path = "e", .text = "x", .xattr = "user.note" }));
    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++) {
        (void)snprintf(path, sizeof(path), "%s/state/templates/t/rootfs/%c", scratch,
                       (char)('a' + i));
        CHECK(getxattr(path, dropped[i], value, sizeof(value)) < 0 && errno == ENODATA);
    }
    (void)snprintf(path, sizeof(path), "%s/state/templates/t/rootfs/e", scratch);
    CHECK(getxattr(path, "user.note", value, sizeof(value)) == 5);
    forget("t");
}

static void a_taken_or_bad_name_is_refused(void)
{
    CHECK_IMPORTED(IMPORT("t", { .path = "a", .text = "first" }));
    CHECK_REFUSED(IMPORT("t", { .path = "a", .text = "second" }), ERR_EXISTS, "'t'");
    CHECK_TEXT(text_in("t", "a"), "first");
    CHECK_REFUSED(IMPORT("host", { .path = "a" }), ERR_EXISTS, "'host'");
    CHECK_REFUSED(IMPORT("../t", { .path = "a" }), ERR_INVALID, "not a template name");
    CHECK_REFUSED(IMPORT(".import", { .path = "a" }), ERR_INVALID, "not a template name");
    forget("t");
}

static void an_entry_name_cannot_garble_the_message(void)
{
    CHECK_REFUSED(IMPORT("t", { .path = "a\n\x1b[2J/../x" }), ERR_INVALID, "'a??[2J/../x'");
}

static void put_at(const char *path, mode_t mode)
{
    cleanup_close int fd = openat(scratch_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    CHECK(fd >= 0 && write_all(fd, path, strlen(path)) == 0 && fchmod(fd, mode) == 0);
}

static void a_directory_is_copied_as_it_is(void)
{
    struct timespec times[2] = { { .tv_sec = 9 }, { .tv_sec = 9 } };
    struct stat st;
    char value[8];

    CHECK(mkdirat(scratch_fd, "src", 0755) == 0 && mkdirat(scratch_fd, "src/bin", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "src/dev", 0755) == 0);
    CHECK(mknodat(scratch_fd, "src/dev/null", S_IFCHR | 0666, 0x103) == 0);
    put_at("src/bin/su", 04711);
    CHECK(linkat(scratch_fd, "src/bin/su", scratch_fd, "src/same", 0) == 0);
    CHECK(symlinkat("/etc/shadow", scratch_fd, "src/link") == 0);
    CHECK(mkfifoat(scratch_fd, "src/pipe", 0600) == 0);
    {
        cleanup_close int fd = openat(scratch_fd, "src/bin/su", O_RDONLY | O_CLOEXEC);
        static const char capability[20] = { 1, 0, 0, 2, 0, 4 };

        CHECK(fsetxattr(fd, "user.note", "v", 1, 0) == 0);
        CHECK(fsetxattr(fd, "security.capability", capability, sizeof(capability), 0) == 0);
    }
    CHECK(utimensat(scratch_fd, "src/bin", times, 0) == 0);
    CHECK_IMPORTED(import_path_as("t", "src"));
    st = stat_in("t", "bin/su");
    CHECK((st.st_mode & 07777) == 04711 && st.st_ino == stat_in("t", "same").st_ino);
    CHECK_TEXT(text_in("t", "bin/su"), "src/bin/su");
    st = stat_in("t", "bin");
    CHECK((st.st_mode & 07777) == 0700 && st.st_mtime == 9);
    CHECK(S_ISLNK(stat_in("t", "link").st_mode) && S_ISFIFO(stat_in("t", "pipe").st_mode));
    CHECK(S_ISDIR(stat_in("t", "dev").st_mode) && stat_in("t", "dev/null").st_mode == 0);
    {
        cleanup_close int fd = openat(templates_fd, "t/rootfs/bin/su", O_RDONLY | O_CLOEXEC);

        CHECK(fgetxattr(fd, "user.note", value, sizeof(value)) == 1);
        CHECK(fgetxattr(fd, "security.capability", NULL, 0) == 20);
    }
    forget("t");
}

static void file_grow(const char *path, off_t size)
{
    cleanup_close int fd = openat(scratch_fd, path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0 && ftruncate(fd, size) == 0);
}

static void a_bad_directory_is_refused(void)
{
    CHECK(mkdirat(scratch_fd, "bad", 0755) == 0);
    CHECK(mknodat(scratch_fd, "bad/null", S_IFCHR | 0666, 0x103) == 0);
    CHECK_REFUSED(import_path_as("t", "bad"), ERR_INVALID, "'null' is a device");
    CHECK(unlinkat(scratch_fd, "bad/null", 0) == 0);
    put_at("bad/foreign", 0644);
    CHECK(fchownat(scratch_fd, "bad/foreign", 70000, 0, 0) == 0);
    CHECK_REFUSED(import_path_as("t", "bad"), ERR_INVALID, "has owner 70000");
    CHECK(unlinkat(scratch_fd, "bad/foreign", 0) == 0);
    put_at("bad/huge", 0644);
    file_grow("bad/huge", 1LL << 40);
    CHECK_REFUSED(import_path_as("t", "bad"), ERR_EXHAUSTED, "'huge'");
    CHECK(unlinkat(scratch_fd, "bad/huge", 0) == 0);
}

/* The state directory is inside the scratch directory. */
static void a_copy_does_not_copy_itself(void)
{
    CHECK(unlinkat(scratch_fd, "src/dev/null", 0) == 0 || errno == ENOENT);
    CHECK_IMPORTED(import_path_as("t", "."));
    CHECK(S_ISDIR(stat_in("t", "state").st_mode) && stat_in("t", "state/templates").st_mode == 0);
    forget("t");
}

static void run(const char *const *argv)
{
    pid_t pid;
    int status;

    CHECK(posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s", argv[0]);
}

static int busybox_in(const char *root)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (chroot(root) < 0 || chdir("/") < 0)
            _exit(99);
        (void)execl("/bin/sh", "sh", "-c", "test \"$(cat /etc/hello)\" = hi && exit 7", NULL);
        _exit(98);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A real root, packed by the system's tar. */
static void busybox_runs_from_an_imported_root(void)
{
    char directory[96], archive[96], bin[112], root[112];
    const char *const copy[] = { "cp", BUSYBOX, bin, NULL };
    const char *const pack[] = { "tar", "-C", directory, "-czf", archive, ".", NULL };

    if (access(BUSYBOX, X_OK) < 0)
        SKIP("%s is not installed", BUSYBOX);
    (void)snprintf(directory, sizeof(directory), "%s/busybox", scratch);
    (void)snprintf(archive, sizeof(archive), "%s/busybox.tar.gz", scratch);
    (void)snprintf(bin, sizeof(bin), "%s/bin", directory);
    (void)snprintf(root, sizeof(root), "%s/state/templates/bb/rootfs", scratch);
    CHECK(mkdirat(scratch_fd, "busybox", 0755) == 0);
    CHECK(mkdirat(scratch_fd, "busybox/bin", 0755) == 0);
    CHECK(mkdirat(scratch_fd, "busybox/etc", 0755) == 0);
    run(copy);
    CHECK(symlinkat("busybox", scratch_fd, "busybox/bin/sh") == 0);
    CHECK(symlinkat("/bin/busybox", scratch_fd, "busybox/bin/cat") == 0);
    file_put("busybox/etc/hello", "hi\n", 3);
    run(pack);
    CHECK_IMPORTED(import_path_as("bb", "busybox.tar.gz"));
    CHECK(busybox_in(root) == 7);
    forget("bb");
}

static void all(void)
{
    if (geteuid() != 0)
        SKIP("only root may set the owners of a template's files");
    (void)umask(077); /* as a daemon may have it; modes must not depend on it */
    scratch_make();
    store_start();
    RUN(every_compression_is_read);
    RUN(other_formats_are_refused);
    RUN(owners_modes_and_times_are_kept);
    RUN(names_beyond_ascii_are_kept);
    RUN(absolute_names_are_taken_from_the_root);
    RUN(dotdot_is_refused_anywhere);
    RUN(links_do_not_lead_out);
    RUN(links_inside_are_followed_inside);
    RUN(a_loop_or_a_file_as_directory_is_refused);
    RUN(the_root_itself_cannot_be_replaced);
    RUN(a_hard_link_to_itself_keeps_the_file);
    RUN(devices_are_refused_but_below_dev);
    RUN(owners_beyond_a_sandbox_are_refused);
    RUN(a_bomb_of_bytes_is_refused);
    RUN(a_bomb_below_dev_is_refused);
    RUN(a_bomb_of_files_is_refused);
    RUN(directories_made_on_the_way_count);
    RUN(too_deep_and_too_long_are_refused);
    RUN(a_truncated_archive_is_refused);
    RUN(a_damaged_header_is_refused);
    RUN(only_harmless_attributes_are_kept);
    RUN(a_taken_or_bad_name_is_refused);
    RUN(an_entry_name_cannot_garble_the_message);
    RUN(a_directory_is_copied_as_it_is);
    RUN(a_bad_directory_is_refused);
    RUN(a_copy_does_not_copy_itself);
    RUN(busybox_runs_from_an_imported_root);
    store_stop();
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
