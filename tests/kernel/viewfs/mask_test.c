// SPDX-License-Identifier: Apache-2.0
/* The kernel engine: ways around a mask from inside of a sandbox, and files for which there cannot
 * be one. */
#include <dirent.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "kernel/viewfs/view_world.h"

enum { NOBODY = 65534 };

static const char rules_text[] = "/**=read\n/hidden/**=none@1\n**/*.pem=none@1\n";

static void show_mask(void)
{
    world.engine = &view_engines[ARRAY_SIZE(view_engines) - 1];
    world_begin();
    lower_directory("hidden");
    lower_file("hidden/key", "secret");
    lower_directory("open");
    lower_file("open/file", "text");
    lower_file("open/key.pem", "secret");
    lower_link("../hidden/key", "open/leak");
    world_show(rules_text);
}

static void upper_is_empty(void)
{
    DIR *dir = fdopendir(openat(world.dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;

    CHECK(dir);
    while ((entry = readdir(dir)))
        CHECK(*entry->d_name == '.', "(%s)", entry->d_name);
    (void)closedir(dir);
}

/* What a sandbox must not be able to do has left the codebase, and what lies above it, as it was.
 */
static void mask_ends(void)
{
    struct stat st;
    char text[8] = "";
    cleanup_close int fd = openat(world.lower_fd, "open/file", O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 4 && strcmp(text, "text") == 0);
    CHECK(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0755 && st.st_uid == PLAIN_USER);
    upper_is_empty();
    world_end();
}

#define REFUSED(call)                                                                              \
    CHECK((call) < 0 && (errno == EPERM || errno == EACCES), "(" #call ": %s)", strerror(errno))
#define ABSENT(call) CHECK((call) < 0 && errno == ENOENT, "(" #call ": %s)", strerror(errno))

/* --- attributes ------------------------------------------------------------------------------- */

static void nothing_changes(void)
{
    REFUSED(open("open/file", O_RDWR | O_CLOEXEC));
    REFUSED(chmod("open/file", 0666));
    REFUSED(chmod("open/file", 04755));
    REFUSED(chmod("open", 01777));
    REFUSED(chmod(".", 0777));
    REFUSED(chown("open/file", getuid(), getgid()));
    REFUSED(chown("open", getuid(), (gid_t)-1));
    REFUSED(lchown("open/leak", getuid(), getgid()));
    REFUSED(unlink("open/file"));
    REFUSED(rename("open/file", "open/other"));
    REFUSED(rename("open", "closed"));
    REFUSED(link("open/file", "linked"));
    REFUSED(open("new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    REFUSED(open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    REFUSED(mkdir("hidden", 0700));
    REFUSED(symlink("hidden/key", "second"));
    REFUSED(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    ABSENT(open("hidden/key", O_RDONLY | O_CLOEXEC));
    ABSENT(open("open/key.pem", O_RDONLY | O_CLOEXEC));
    ABSENT(open("open/leak", O_RDONLY | O_CLOEXEC));
    ABSENT(unlink("open/key.pem"));
}

static void attributes_try(void *ignored)
{
    static const char acl[] = "\2\0\0\0\1\0\7\0\377\377\377\377\4\0\7\0\377\377\377\377 \0\7\0\377"
                              "\377\377\377";
    static const char *const names[] = { "trusted.overlay.redirect", "trusted.overlay.metacopy",
                                         "trusted.overlay.opaque",   "user.overlay.redirect",
                                         "user.overlay.opaque",      "user.mine" };
    static const char capability[20] = { [0] = 1, [3] = 2, [4] = 2 }; /* CAP_DAC_OVERRIDE */
    const int flags = FS_NOATIME_FL;
    int fd = open("open/file", O_RDONLY | O_CLOEXEC);
    char listed[256];

    (void)ignored;
    nothing_changes();
    CHECK(fd >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        REFUSED(fsetxattr(fd, names[i], "/hidden/key", 11, 0));
        REFUSED(setxattr("open", names[i], "y", 1, 0));
        REFUSED(setxattr(".", names[i], "y", 1, 0));
        CHECK(fgetxattr(fd, names[i], NULL, 0) < 0 && errno == ENODATA);
    }
    CHECK(flistxattr(fd, listed, sizeof(listed)) == 0);
    REFUSED(fsetxattr(fd, "security.capability", capability, sizeof(capability), 0));
    REFUSED(fsetxattr(fd, "system.posix_acl_access", acl, sizeof(acl) - 1, 0));
    REFUSED(setxattr("open", "system.posix_acl_default", acl, sizeof(acl) - 1, 0));
    CHECK(ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0);
    CHECK(fallocate(fd, 0, 0, 10) < 0 && ftruncate(fd, 0) < 0);
    CHECK(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    CHECK(mprotect(mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0), 1, PROT_READ | PROT_WRITE) < 0);
    (void)close(fd);
}

/* Its name is that of whoever owns the files, which is somebody else. */
static void nobody_tries(void *ignored)
{
    struct stat st;

    CHECK(stat("open/file", &st) == 0 && st.st_uid == getuid() && st.st_gid == getgid());
    attributes_try(ignored);
}

static void attributes_cannot_be_changed(void)
{
    show_mask();
    sandbox_run(0, attributes_try, NULL);
    sandbox_run(PLAIN_USER, attributes_try, NULL);
    sandbox_run(NOBODY, nobody_tries, NULL);
    mask_ends();
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void map_write(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "(%s: %s)", file,
          strerror(errno));
    (void)close(fd);
}

/* A namespace of its own cannot name users that the sandbox does not have. */
static void namespace_tries(void *ignored)
{
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    map_write("/proc/self/setgroups", "deny");
    map_write("/proc/self/uid_map", "65534 0 1\n");
    map_write("/proc/self/gid_map", "65534 0 1\n");
    CHECK(fchdir(here) == 0);
    (void)close(here);
    attributes_try(ignored);
}

/* An overlay of a sandbox's own above the mask: redirects lead nowhere that the mask lacks. */
static void overlay_tries(void *ignored)
{
    char here[PATH_MAX], options[PATH_MAX + 128];

    (void)ignored;
    CHECK(getcwd(here, sizeof(here)));
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REFUSED(mount(NULL, here, NULL, MS_REMOUNT, "redirect_dir=on"));
    REFUSED(umount2(here, MNT_DETACH) < 0 && errno == EINVAL ? (errno = EPERM, -1) : 0);
    CHECK(mount("tmpfs", "/mnt", "tmpfs", 0, "mode=0755") == 0, "(%s)", strerror(errno));
    CHECK(mkdir("/mnt/upper", 0755) == 0 && mkdir("/mnt/work", 0755) == 0);
    CHECK(mkdir("/mnt/upper/found", 0755) == 0 && mkdir("/mnt/seen", 0755) == 0);
    CHECK(setxattr("/mnt/upper/found", "user.overlay.redirect", "/hidden", 7, 0) == 0);
    (void)snprintf(options, sizeof(options),
                   "lowerdir=%s,upperdir=/mnt/upper,workdir=/mnt/work,userxattr", here);
    CHECK(mount("mine", "/mnt/seen", "overlay", 0, options) == 0, "(%s)", strerror(errno));
    CHECK(open("/mnt/seen/found/key", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(open("/mnt/seen/hidden/key", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOENT);
    CHECK(open("/mnt/seen/open/key.pem", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOENT);
    nothing_changes();
}

/* Handles are for who may read any file of the host. */
static void handle_tries(void *ignored)
{
    union {
        struct file_handle handle;
        char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = { .handle = { .handle_bytes = 8, .handle_type = 1 } };
    int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), mount;
    char path[64];

    (void)ignored;
    CHECK(open_by_handle_at(dir, &file.handle, O_RDONLY | O_CLOEXEC) < 0);
    file.handle.handle_bytes = MAX_HANDLE_SZ;
    CHECK(name_to_handle_at(AT_FDCWD, "open/file", &file.handle, &mount, 0) < 0);
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd/hidden/key", (int)getpid());
    ABSENT(open(path, O_RDONLY | O_CLOEXEC));
    (void)close(dir);
}

static void namespaces_do_not_help(void)
{
    show_mask();
    sandbox_run(0, namespace_tries, NULL);
    sandbox_run(0, overlay_tries, NULL);
    sandbox_run(0, handle_tries, NULL);
    mask_ends();
}

/* --- what there cannot be a mask of ----------------------------------------------------------- */

/* Returns what mask_fill does about one file. */
static int fill(const char *text, mode_t mode, bool is_directory, char refusal[MASK_REFUSAL_SIZE])
{
    cleanup_view_rules struct view_rules *rules = NULL;
    cleanup_close int mask_fd = -EBADF;
    struct err err = { 0 };
    int r;

    world.engine = &view_engines[ARRAY_SIZE(view_engines) - 1];
    world_begin();
    if (is_directory)
        lower_directory("it");
    else
        lower_file("it", "text");
    CHECK(fchmodat(world.lower_fd, "it", mode, 0) == 0);
    world_mkdir("mask", &mask_fd);
    CHECK(view_rules_parse(text, 1, &rules, &err) == 0, "(%s)", err.msg);
    r = mask_fill(world.lower_fd, rules, mask_fd, refusal);
    CHECK(r != 0 || (faccessat(mask_fd, "it", F_OK, 0) == 0) == (strcmp(text, "/x=read") == 0));
    world_end();
    return r;
}

static void only_modes_that_mean_the_same_to_all_are_taken(void)
{
    static const struct {
        const char *rules;
        mode_t mode;
        bool is_directory;
        int wanted;
    } rows[] = {
        { "/**=read", 0644, false, 0 }, { "/**=read", 0755, false, 0 },
        { "/**=read", 0444, false, 0 }, { "/**=read", 0664, false, 0 },
        { "/**=read", 0600, false, 1 }, { "/**=read", 0640, false, 1 },
        { "/**=read", 0604, false, 1 }, { "/**=read", 0744, false, 1 },
        { "/**=read", 0645, false, 1 }, { "/**=read", 0755, true, 0 },
        { "/**=read", 0777, true, 1 },  { "/**=read", 0666, false, 1 },
        { "/**=read", 0700, true, 1 },  { "/**=read", 0711, true, 1 },
        { "/**=read", 0744, true, 1 },  { "/x=read", 0600, false, 0 }, /* it is hidden */
        { "/**=view", 0644, false, 1 }, { "/**=write", 0644, false, 1 },
    };
    char refusal[MASK_REFUSAL_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        refusal[0] = '\0';
        CHECK(fill(rows[i].rules, rows[i].mode, rows[i].is_directory, refusal) == rows[i].wanted,
              "(%s, %o: %s)", rows[i].rules, (unsigned)rows[i].mode, refusal);
        CHECK((strstr(refusal, "'/it'") != NULL) == (rows[i].wanted == 1), "(%s)", refusal);
    }
}

int main(void)
{
    must_be_root();
    RUN(attributes_cannot_be_changed);
    RUN(namespaces_do_not_help);
    RUN(only_modes_that_mean_the_same_to_all_are_taken);
    return 0;
}
