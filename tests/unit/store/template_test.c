// SPDX-License-Identifier: Apache-2.0
/* The store itself, the host template, and templates by name. */
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "unit/store/import_test.h"

enum { DEEP = 3000 };

static struct template *open_template(const char *name)
{
    struct template *template = NULL;
    struct err err;

    CHECK(template_open(store, name, &template, &err) == 0, "%s", err.msg);
    return template;
}

static const struct template_tree *tree_of(const struct template *template, const char *target)
{
    for (size_t i = 0; i < template->tree_count; i++) {
        if (strcmp(template->trees[i].target, target) == 0)
            return &template->trees[i];
    }
    return NULL;
}

static void the_state_directory_is_private(void)
{
    struct stat st;

    CHECK(fstatat(scratch_fd, "state", &st, 0) == 0 && (st.st_mode & 07777) == 0700);
    store_stop();
    CHECK(fchmodat(scratch_fd, "state", 0755, 0) == 0);
    store_start();
    CHECK(fstatat(scratch_fd, "state", &st, 0) == 0 && (st.st_mode & 07777) == 0700);
}

static void a_relative_state_directory_is_refused(void)
{
    struct store_options options = { .state_dir = "relative", .storage = "dir" };
    struct store *second;
    struct err err = { 0 };

    CHECK(store_open(&options, &second, &err) < 0 && err.kind == ERR_INVALID, "%s", err.msg);
}

/* The host's /usr is mounted; a link on the host is a link in the root. */
static void the_host_template_has_the_hosts_trees(void)
{
    static const char *const targets[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64" };
    struct template *template = open_template("host");

    CHECK_TEXT(template->trees[0].target, "/");
    CHECK_TEXT(template->trees[0].name, "root");
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        struct stat st, ours;

        if (lstat(targets[i], &st) < 0)
            continue;
        CHECK(!!tree_of(template, targets[i]) == !!S_ISDIR(st.st_mode), "%s", targets[i]);
        ours = stat_in("host", targets[i] + 1);
        CHECK((ours.st_mode & S_IFMT) == (st.st_mode & S_IFMT), "%s", targets[i]);
    }
    CHECK(faccessat(tree_of(template, "/usr")->fd, "bin", F_OK, 0) == 0);
    template_close(template);
}

static void the_host_template_shows_nothing_else(void)
{
    static const char *const hidden[] = { "etc/ssh",     "etc/machine-id", "etc/fstab",
                                          "etc/sudoers", "etc/gshadow",    "etc/ssl/private",
                                          "etc/apt",     "etc/environment" };
    static const char *const empty[] = { "root", "home/user", "var/lib", "var/log",  "run/lock",
                                         "srv",  "tmp",       "mnt",     "workspace" };

    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
        CHECK(stat_in("host", hidden[i]).st_mode == 0, "%s", hidden[i]);
    for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "host/rootfs/%s", empty[i]);
        CHECK(entries_in(templates_fd, path) == 0, "%s", empty[i]);
    }
    CHECK(!strstr(text_in("host", "etc/shadow"), "$"));
    CHECK(strstr(text_in("host", "etc/passwd"), "user:x:1000:1000:"));
    CHECK_TEXT(text_in("host", "etc/hostname"), "holt\n");
}

static void the_host_template_is_usable(void)
{
    struct stat st = stat_in("host", "tmp");

    CHECK((st.st_mode & 07777) == 01777);
    st = stat_in("host", "root");
    CHECK((st.st_mode & 07777) == 0700 && st.st_uid == 0);
    st = stat_in("host", "home/user");
    CHECK((st.st_mode & 07777) == 0755 && st.st_uid == 1000 && st.st_gid == 1000);
    st = stat_in("host", "etc/passwd");
    CHECK((st.st_mode & 07777) == 0644);
    if (access("/etc/ld.so.cache", R_OK) == 0)
        CHECK(S_ISREG(stat_in("host", "etc/ld.so.cache").st_mode));
    if (access("/etc/ssl/certs", R_OK) == 0)
        CHECK(S_ISDIR(stat_in("host", "etc/ssl/certs").st_mode));
}

static void the_host_template_is_remade_only_when_needed(void)
{
    ino_t before = stat_in("host", ".").st_ino;
    cleanup_close int old = openat(templates_fd, "host/rootfs", O_PATH | O_CLOEXEC);

    CHECK(old >= 0); /* its inode number is not reused while it is open */
    store_stop();
    store_start();
    CHECK(stat_in("host", ".").st_ino == before);
    store_stop();
    CHECK(file_create_at(scratch_fd, "state/templates/host/meta.json", 0600, "{}") == 0);
    store_start();
    CHECK(stat_in("host", ".").st_ino != before);
    CHECK(S_ISREG(stat_in("host", "etc/passwd").st_mode) && entries_in(templates_fd, ".") == 1);
}

static void leftovers_are_swept_at_start(void)
{
    store_stop();
    CHECK(mkdirat(scratch_fd, "state/templates/.import-1", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "state/templates/.import-1/rootfs", 0) == 0);
    CHECK(mkdirat(scratch_fd, "state/scratch/v1", 0700) == 0);
    file_put("state/scratch/v1/x", "x", 1);
    CHECK(symlinkat("../../outside", scratch_fd, "state/scratch/link") == 0);
    CHECK(mkdirat(scratch_fd, "outside", 0755) == 0);
    file_put("outside/kept", "x", 1);
    store_start();
    CHECK(entries_in(scratch_fd, "state/scratch") == 0);
    CHECK(entries_in(templates_fd, ".") == 1);
    CHECK(entries_in(scratch_fd, "outside") == 1);
}

static void volumes_that_stay_are_not_swept_unless_half_made(void)
{
    store_stop();
    CHECK(mkdirat(scratch_fd, "state/volumes/half", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "state/volumes/.gone-1", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "state/volumes/.gone-1/live-1", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "state/volumes/v1", 0700) == 0);
    CHECK(mkdirat(scratch_fd, "state/volumes/v1/live-7", 0700) == 0);
    file_put("state/volumes/v1/live-7/x", "x", 1);
    store_start();
    CHECK(entries_in(scratch_fd, "state/volumes") == 1);
    CHECK(entries_in(scratch_fd, "state/volumes/v1/live-7") == 1);
}

static void an_unknown_template_is_named(void)
{
    struct template *template;
    struct err err;

    CHECK(template_open(store, "nope", &template, &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK_TEXT(err.msg, "no template 'nope'");
    CHECK(template_open(store, "../host", &template, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(template_remove(store, "nope", &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK(template_remove(store, ".import", &err) < 0 && err.kind == ERR_INVALID);
}

static void a_template_in_use_is_not_removed(void)
{
    struct template *one, *two;
    struct err err;

    CHECK_IMPORTED(IMPORT("t", { .path = "a", .text = "x" }));
    one = open_template("t");
    two = open_template("t");
    CHECK(one->tree_count == 1 && faccessat(one->trees[0].fd, "a", F_OK, 0) == 0);
    CHECK(template_remove(store, "t", &err) < 0 && err.kind == ERR_BUSY, "%s", err.msg);
    template_close(one);
    CHECK(template_remove(store, "t", &err) < 0 && err.kind == ERR_BUSY, "%s", err.msg);
    template_close(two);
    CHECK(template_remove(store, "t", &err) == 0, "%s", err.msg);
    CHECK(entries_in(templates_fd, ".") == 1);
    CHECK(template_remove(store, "host", &err) < 0 && err.kind == ERR_DENIED, "%s", err.msg);
}

static void templates_are_listed_by_name(void)
{
    struct template_info *list;
    size_t count;
    struct err err;

    CHECK_IMPORTED(IMPORT("zz", { .path = "a", .text = "12345" }, { .path = "b", .text = "1" }));
    CHECK_IMPORTED(IMPORT("aa", { .path = "a", .text = "x" }));
    CHECK(template_list(store, &list, &count, &err) == 0 && count == 3, "%s", err.msg);
    CHECK_TEXT(list[0].name, "aa");
    CHECK_TEXT(list[1].name, "host");
    CHECK_TEXT(list[2].name, "zz");
    CHECK(list[1].is_host && !list[2].is_host);
    CHECK(list[2].size_bytes == 6 && list[2].files == 2);
    CHECK(list[2].created_at <= time(NULL) && list[2].created_at > time(NULL) - 60);
    free(list);
    forget("aa");
    forget("zz");
}

/* A state directory on a small filesystem, which an import fills up. */
static void a_full_disk_is_said_and_cleaned_up(void)
{
    static char zeros[1 << 20], names[40][8], state[96];
    struct item items[ARRAY_SIZE(names)] = { 0 };

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        SKIP("no mount namespace: %s", strerror(errno));
    (void)snprintf(state, sizeof(state), "%s/state", scratch);
    CHECK(mount("tmpfs", state, "tmpfs", 0, "size=20m") == 0);
    scratch_fd = fd_close(scratch_fd); /* it belongs to the old namespace */
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bytes_max = sizeof(zeros) * ARRAY_SIZE(names);
    store_start();
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
        items[i] = (struct item){ .path = names[i], .text = zeros, .len = sizeof(zeros) };
    }
    CHECK_REFUSED(import_items("t", "gzip", items, ARRAY_SIZE(items)), ERR_EXHAUSTED, "full");
    CHECK(strstr(why.msg, "'f"), "%s", why.msg);
    CHECK_IMPORTED(IMPORT("t", { .path = "a", .text = "there is room again" }));
    store_stop();
    CHECK(umount(state) == 0);
}

static void a_very_deep_tree_is_removed(void)
{
    cleanup_close int fd = -EBADF;

    if (geteuid() != 0)
        SKIP("only root may enter a directory without permissions");
    CHECK(mkdirat(scratch_fd, "deep", 0700) == 0);
    fd = openat(scratch_fd, "deep", O_PATH | O_CLOEXEC);
    for (int i = 0; i < DEEP; i++) {
        int next;

        CHECK(mkdirat(fd, "d", 0) == 0 && mkdirat(fd, ".deep-0", 0) == 0);
        next = openat(fd, "d", O_PATH | O_CLOEXEC);
        (void)close(fd);
        fd = next;
    }
    CHECK(tree_remove_at(scratch_fd, "deep") == 0);
    CHECK(faccessat(scratch_fd, "deep", F_OK, 0) < 0);
    CHECK(tree_remove_at(scratch_fd, "deep") == 0);
}

static void a_link_is_removed_not_followed(void)
{
    CHECK(mkdirat(scratch_fd, "kept", 0700) == 0 && mkdirat(scratch_fd, "tree", 0700) == 0);
    file_put("kept/x", "x", 1);
    CHECK(symlinkat("../kept", scratch_fd, "tree/link") == 0);
    CHECK(symlinkat("kept", scratch_fd, "link") == 0);
    CHECK(tree_remove_at(scratch_fd, "tree") == 0 && tree_remove_at(scratch_fd, "link") == 0);
    CHECK(entries_in(scratch_fd, "kept") == 1);
}

static void missing_directories_are_made(void)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/one/two//three/", scratch);
    CHECK(tree_make(path, 0700) == 0 && tree_make(path, 0700) == 0);
    CHECK(faccessat(scratch_fd, "one/two/three", F_OK, 0) == 0);
    file_put("file", "x", 1);
    (void)snprintf(path, sizeof(path), "%s/file/y", scratch);
    CHECK(tree_make(path, 0700) == -ENOTDIR && tree_make("one", 0700) == -EINVAL);
}

static void all(void)
{
    (void)umask(077);
    scratch_make();
    RUN(a_very_deep_tree_is_removed);
    RUN(a_link_is_removed_not_followed);
    RUN(missing_directories_are_made);
    if (geteuid() != 0) {
        scratch_remove();
        SKIP("only root may set the owners of a template's files");
    }
    store_start();
    RUN(the_state_directory_is_private);
    RUN(a_relative_state_directory_is_refused);
    RUN(the_host_template_has_the_hosts_trees);
    RUN(the_host_template_shows_nothing_else);
    RUN(the_host_template_is_usable);
    RUN(the_host_template_is_remade_only_when_needed);
    RUN(leftovers_are_swept_at_start);
    RUN(volumes_that_stay_are_not_swept_unless_half_made);
    RUN(an_unknown_template_is_named);
    RUN(a_template_in_use_is_not_removed);
    RUN(templates_are_listed_by_name);
    store_stop();
    RUN(a_full_disk_is_said_and_cleaned_up);
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
