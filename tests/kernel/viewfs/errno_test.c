// SPDX-License-Identifier: Apache-2.0
/* Every level through every family of system calls, for uid 0 and a plain user of the sandbox: the
 * table of docs/permissions.md. */
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "kernel/viewfs/view_world.h"
#include "view/rule.h"

enum { LEVELS = VIEW_WRITE + 1, PATH_BYTES = 128 };

static const char *const level_names[LEVELS] = { "none", "view", "read", "write" };

/* Each returns 0 or an errno. */
typedef int call_fn(const char *path);

static int result(long r)
{
    return r < 0 ? errno : 0;
}

static int closed(int fd)
{
    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

/* --- calls on what exists --------------------------------------------------------------------- */

static int call_stat(const char *path)
{
    struct stat st;

    return result(lstat(path, &st));
}

static int call_statx(const char *path)
{
    struct statx st;

    return result(statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_ALL, &st));
}

static int call_access(const char *path)
{
    return result(access(path, F_OK));
}

static int call_access_write(const char *path)
{
    return result(access(path, W_OK));
}

static int call_faccessat2(const char *path)
{
    return result(syscall(SYS_faccessat2, AT_FDCWD, path, R_OK, AT_EACCESS));
}

static int call_open_path(const char *path)
{
    return closed(open(path, O_PATH | O_CLOEXEC));
}

static int call_open_read(const char *path)
{
    return closed(open(path, O_RDONLY | O_CLOEXEC));
}

static int call_open_write(const char *path)
{
    return closed(open(path, O_WRONLY | O_CLOEXEC));
}

static int call_open_both(const char *path)
{
    return closed(open(path, O_RDWR | O_CLOEXEC));
}

static int call_open_append(const char *path)
{
    return closed(open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int call_open_truncate(const char *path)
{
    return closed(open(path, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int call_openat2(const char *path)
{
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH };

    return closed((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

/* With O_CREAT, as what is hidden is not there. */
static int call_open_create(const char *path)
{
    return closed(open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0666));
}

static int call_creat(const char *path)
{
    return closed(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666));
}

static int call_mmap_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), r;
    char *at;

    if (fd < 0)
        return errno;
    at = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    r = at == MAP_FAILED ? errno : 0;
    if (r == 0)
        *at = 'x';
    (void)close(fd);
    return r;
}

static int call_exec(const char *path)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl(path, path, (char *)NULL);
        _exit(errno);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int call_copy_from(const char *path)
{
    int from = open(path, O_RDONLY | O_CLOEXEC), to, r;

    if (from < 0)
        return errno;
    to = open("free/copy", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    r = to < 0 || copy_file_range(from, NULL, to, NULL, 4, 0) != 4 ? errno : 0;
    (void)unlink("free/copy");
    (void)close(from);
    (void)close(to);
    return r;
}

static int call_fallocate(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), r;

    if (fd < 0)
        return errno;
    r = result(fallocate(fd, 0, 0, 100));
    (void)close(fd);
    return r;
}

static int call_fsync(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), r;

    if (fd < 0)
        return errno;
    r = result(write(fd, "x", 1) == 1 && fsync(fd) == 0 && fdatasync(fd) == 0 ? 0 : -1);
    (void)close(fd);
    return r;
}

static int call_copy_to(const char *path)
{
    int to = open(path, O_WRONLY | O_CLOEXEC), from, r;

    if (to < 0)
        return errno;
    from = open("free/other", O_RDONLY | O_CLOEXEC);
    r = copy_file_range(from, NULL, to, NULL, 2, 0) != 2 ? errno : 0;
    (void)close(from);
    (void)close(to);
    return r;
}

static int call_mmap_exec(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;
    void *at;

    if (fd < 0)
        return errno;
    at = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    r = at == MAP_FAILED ? errno : 0;
    (void)close(fd);
    return r;
}

/* A descriptor that only names the file must not become one that reads or writes it. */
static int proc_open(const char *path, int flags)
{
    int fd = open(path, O_PATH | O_CLOEXEC), r;
    char name[64];

    if (fd < 0)
        return errno;
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    r = closed(open(name, flags | O_CLOEXEC));
    (void)close(fd);
    return r;
}

static int call_proc_read(const char *path)
{
    return proc_open(path, O_RDONLY);
}

static int call_proc_write(const char *path)
{
    return proc_open(path, O_RDWR);
}

static int call_proc_root(const char *path)
{
    char name[PATH_BYTES + 64], here[PATH_BYTES];

    if (!getcwd(here, sizeof(here)))
        return EIO;
    (void)snprintf(name, sizeof(name), "/proc/self/root%s/%s", here, path);
    return closed(open(name, O_RDONLY | O_CLOEXEC));
}

/* Handles are for who may read any file of the host: nobody in a sandbox. */
static int call_handle(const char *path)
{
    union {
        struct file_handle handle;
        char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };
    int mount, dir, r;

    if (name_to_handle_at(AT_FDCWD, path, &file.handle, &mount, 0) < 0)
        return errno;
    dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = closed(open_by_handle_at(dir, &file.handle, O_RDONLY | O_CLOEXEC));
    (void)close(dir);
    return r;
}

static int call_statfs(const char *path)
{
    struct statfs st;

    return result(statfs(path, &st));
}

static int call_touch(const char *path)
{
    return result(utimensat(AT_FDCWD, path, NULL, 0));
}

static int call_exchange_from(const char *path)
{
    return result(renameat2(AT_FDCWD, path, AT_FDCWD, "free/third", RENAME_EXCHANGE));
}

static int call_truncate(const char *path)
{
    return result(truncate(path, 1));
}

static int call_chmod(const char *path)
{
    return result(chmod(path, 0755));
}

static int call_chown(const char *path)
{
    return result(lchown(path, (uid_t)-1, PLAIN_USER));
}

static int call_utimens(const char *path)
{
    static const struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 2 } };
    struct stat st;

    if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    return lstat(path, &st) == 0 && st.st_mtim.tv_sec == 2 ? 0 : EIO;
}

static int call_setxattr(const char *path)
{
    return result(setxattr(path, "user.test", "1", 1, 0));
}

static int call_getxattr(const char *path)
{
    char value[16];

    return result(getxattr(path, "user.there", value, sizeof(value)));
}

static int call_listxattr(const char *path)
{
    char names[256];

    return result(listxattr(path, names, sizeof(names)));
}

static int call_removexattr(const char *path)
{
    return result(removexattr(path, "user.there"));
}

static int call_inotify(const char *path)
{
    int fd = inotify_init1(IN_CLOEXEC);
    int r = result(inotify_add_watch(fd, path, IN_ATTRIB));

    (void)close(fd);
    return r;
}

static int call_unlink(const char *path)
{
    return result(unlink(path));
}

static int call_rename_from(const char *path)
{
    return result(rename(path, "free/renamed"));
}

static int call_rename_exchange(const char *path)
{
    return result(renameat2(AT_FDCWD, "free/other", AT_FDCWD, path, RENAME_EXCHANGE));
}

static int call_link_from(const char *path)
{
    int r = result(link(path, "free/linked"));

    (void)unlink("free/linked");
    return r;
}

/* --- directories and links -------------------------------------------------------------------- */

static int call_opendir(const char *path)
{
    return closed(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int call_chdir(const char *path)
{
    int r = result(chdir(path));

    return r != 0 ? r : result(chdir("../.."));
}

static int call_rmdir(const char *path)
{
    return result(rmdir(path));
}

static int call_rename_directory(const char *path)
{
    return result(rename(path, "free/directory"));
}

static int call_chmod_directory(const char *path)
{
    return result(chmod(path, 0700));
}

static int call_tmpfile(const char *path)
{
    return closed(open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

static int call_readlink(const char *path)
{
    char text[16];

    return result(readlink(path, text, sizeof(text)));
}

static int call_unlink_link(const char *path)
{
    return result(unlink(path));
}

/* --- new names -------------------------------------------------------------------------------- */

static int call_create_exclusive(const char *path)
{
    return closed(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
}

static int call_mkdir(const char *path)
{
    return result(mkdir(path, 0700));
}

static int call_mkfifo(const char *path)
{
    return result(mkfifo(path, 0600));
}

static int call_mknod(const char *path)
{
    return result(mknod(path, S_IFREG | 0600, 0));
}

static int call_bind(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    r = result(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    (void)close(fd);
    return r;
}

static int call_symlink(const char *path)
{
    return result(symlink("anywhere", path));
}

static int call_link_to(const char *path)
{
    return result(link("free/file", path));
}

static int call_rename_to(const char *path)
{
    int r = closed(open("free/source", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));

    return r != 0 ? r : result(rename("free/source", path));
}

static int call_rename_noreplace(const char *path)
{
    int r = closed(open("free/source", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));

    return r != 0 ? r
                  : result(renameat2(AT_FDCWD, "free/source", AT_FDCWD, path, RENAME_NOREPLACE));
}

static int call_link_tmpfile(const char *path)
{
    char name[64];
    int fd = open("free", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), r;

    if (fd < 0)
        return EIO;
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    r = result(linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW));
    (void)close(fd);
    return r;
}

/* --- what is neither file nor directory ------------------------------------------------------- */

static int call_fifo_read(const char *path)
{
    return closed(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

static int call_fifo_both(const char *path)
{
    return closed(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

static int call_fifo_create(const char *path)
{
    return closed(open(path, O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0600));
}

/* Nobody listens. */
static int call_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    r = result(connect(fd, (struct sockaddr *)&address, sizeof(address)));
    (void)close(fd);
    return r;
}

/* --- the table -------------------------------------------------------------------------------- */

enum kind { A_FILE, A_DIRECTORY, A_LINK, A_FIFO, A_SOCKET, A_NEW_NAME, KINDS };

static const struct row {
    const char *name;
    call_fn *call;
    enum kind kind;
    int wanted[LEVELS];
} rows[] = {
#define SEES                                                                                       \
    {                                                                                              \
        ENOENT, 0, 0, 0                                                                            \
    }
#define READS                                                                                      \
    {                                                                                              \
        ENOENT, EACCES, 0, 0                                                                       \
    }
#define WRITES                                                                                     \
    {                                                                                              \
        ENOENT, EACCES, EACCES, 0                                                                  \
    }
#define MAKES                                                                                      \
    {                                                                                              \
        EACCES, EACCES, EACCES, 0                                                                  \
    }
#define EXISTS(error)                                                                              \
    {                                                                                              \
        EACCES, error, error, error                                                                \
    }
    { "lstat", call_stat, A_FILE, SEES },
    { "statx", call_statx, A_FILE, SEES },
    { "access", call_access, A_FILE, SEES },
    { "faccessat2", call_faccessat2, A_FILE, SEES },
    { "access W_OK", call_access_write, A_FILE, SEES },
    { "open O_PATH", call_open_path, A_FILE, SEES },
    { "inotify", call_inotify, A_FILE, SEES },
    { "listxattr", call_listxattr, A_FILE, SEES },
    { "statfs", call_statfs, A_FILE, SEES },
    { "open_by_handle_at", call_handle, A_FILE, { ENOENT, EPERM, EPERM, EPERM } },
    { "mmap PROT_EXEC", call_mmap_exec, A_FILE, READS },
    { "/proc/self/fd O_RDONLY", call_proc_read, A_FILE, READS },
    { "/proc/self/fd O_RDWR", call_proc_write, A_FILE, WRITES },
    { "/proc/self/root", call_proc_root, A_FILE, READS },
    { "copy_file_range to", call_copy_to, A_FILE, WRITES },
    { "utimensat now", call_touch, A_FILE, WRITES },
    { "rename exchange from", call_exchange_from, A_FILE, WRITES },
    { "O_EXCL over", call_create_exclusive, A_FILE, EXISTS(EEXIST) },
    { "mkdir over", call_mkdir, A_FILE, EXISTS(EEXIST) },
    { "mknod over", call_mknod, A_FILE, EXISTS(EEXIST) },
    { "symlink over", call_symlink, A_FILE, EXISTS(EEXIST) },
    { "link over", call_link_to, A_FILE, EXISTS(EEXIST) },
    { "bind over", call_bind, A_FILE, EXISTS(EADDRINUSE) },
    { "RENAME_NOREPLACE over", call_rename_noreplace, A_FILE, EXISTS(EEXIST) },
    { "open O_RDONLY", call_open_read, A_FILE, READS },
    { "openat2", call_openat2, A_FILE, READS },
    { "exec", call_exec, A_FILE, READS },
    { "copy_file_range", call_copy_from, A_FILE, READS },
    { "getxattr", call_getxattr, A_FILE, READS },
    { "open O_WRONLY", call_open_write, A_FILE, WRITES },
    { "open O_RDWR", call_open_both, A_FILE, WRITES },
    { "open O_APPEND", call_open_append, A_FILE, WRITES },
    { "mmap MAP_SHARED", call_mmap_shared, A_FILE, WRITES },
    { "fallocate", call_fallocate, A_FILE, WRITES },
    { "fsync", call_fsync, A_FILE, WRITES },
    { "open O_TRUNC", call_open_truncate, A_FILE, WRITES },
    { "truncate", call_truncate, A_FILE, WRITES },
    { "chmod", call_chmod, A_FILE, WRITES },
    { "chown", call_chown, A_FILE, WRITES },
    { "utimensat", call_utimens, A_FILE, WRITES },
    { "setxattr", call_setxattr, A_FILE, WRITES },
    { "removexattr", call_removexattr, A_FILE, WRITES },
    { "link from", call_link_from, A_FILE, WRITES },
    { "rename from", call_rename_from, A_FILE, WRITES },
    { "rename exchange", call_rename_exchange, A_FILE, WRITES },
    { "unlink", call_unlink, A_FILE, WRITES },
    { "open O_CREAT", call_open_create, A_FILE, { EACCES, EACCES, 0, 0 } },
    { "creat over", call_creat, A_FILE, MAKES },
    { "rename over", call_rename_to, A_FILE, MAKES },
    { "stat directory", call_stat, A_DIRECTORY, SEES },
    { "opendir", call_opendir, A_DIRECTORY, SEES },
    { "chdir", call_chdir, A_DIRECTORY, SEES },
    { "O_TMPFILE", call_tmpfile, A_DIRECTORY, WRITES },
    { "chmod directory", call_chmod_directory, A_DIRECTORY, WRITES },
    { "rename directory", call_rename_directory, A_DIRECTORY, WRITES },
    { "rmdir", call_rmdir, A_DIRECTORY, WRITES },
    { "inotify directory", call_inotify, A_DIRECTORY, SEES },
    { "fifo O_RDONLY", call_fifo_read, A_FIFO, READS },
    { "fifo O_RDWR", call_fifo_both, A_FIFO, WRITES },
    { "fifo O_CREAT", call_fifo_create, A_FIFO, MAKES },
    { "unlink fifo", call_unlink, A_FIFO, WRITES },
    { "connect", call_connect, A_SOCKET, { ENOENT, EACCES, EACCES, ECONNREFUSED } },
    /* Their owner is nobody, or the kernel would let root use them without asking. */
    { "chmod socket", call_chmod, A_SOCKET, { ENOENT, EPERM, EPERM, 0 } },
    { "lstat link", call_stat, A_LINK, SEES },
    { "readlink", call_readlink, A_LINK, SEES },
    { "chown link", call_chown, A_LINK, WRITES },
    { "utimensat link", call_utimens, A_LINK, WRITES },
    { "unlink link", call_unlink_link, A_LINK, WRITES },
    { "open O_EXCL", call_create_exclusive, A_NEW_NAME, MAKES },
    { "creat", call_creat, A_NEW_NAME, MAKES },
    { "mkdir", call_mkdir, A_NEW_NAME, MAKES },
    { "mkfifo", call_mkfifo, A_NEW_NAME, MAKES },
    { "mknod", call_mknod, A_NEW_NAME, MAKES },
    { "bind", call_bind, A_NEW_NAME, MAKES },
    { "symlink", call_symlink, A_NEW_NAME, MAKES },
    { "link to", call_link_to, A_NEW_NAME, MAKES },
    { "rename to", call_rename_to, A_NEW_NAME, MAKES },
    { "rename RENAME_NOREPLACE", call_rename_noreplace, A_NEW_NAME, MAKES },
    { "linkat of O_TMPFILE", call_link_tmpfile, A_NEW_NAME, MAKES },
};

static const char rules_text[] = "/d/none*=none\n"
                                 "/d/view*=view\n"
                                 "/d/read*=read\n"
                                 "/d/write*=write\n"
                                 "/free=write\n";

/* For an engine by which nothing can be written. */
static const char sealed_rules_text[] = "/d/none*=none\n"
                                        "/d/read*=read\n"
                                        "/free=read\n";

static bool level_is_there(int level)
{
    return !world_engine()->is_kernel || level == VIEW_NONE || level == VIEW_READ;
}

/* Every case has a file of its own. */
static const char *case_path(size_t row, int level, uid_t uid)
{
    static char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "d/%s-%zu-%u", level_names[level], row, (unsigned)uid);
    return path;
}

static void case_make(size_t row, int level, uid_t uid)
{
    const char *path = case_path(row, level, uid);
    int fd;

    switch (rows[row].kind) {
    case A_FILE:
        lower_file(path, "#!/bin/true\n");
        fd = openat(world.lower_fd, path, O_RDONLY | O_CLOEXEC);
        CHECK(fsetxattr(fd, "user.there", "1", 1, 0) == 0, "(%s)", strerror(errno));
        (void)close(fd);
        break;
    case A_DIRECTORY:
        lower_directory(path);
        break;
    case A_LINK:
        lower_link("target", path);
        break;
    case A_FIFO:
    case A_SOCKET:
        if (world_engine()->is_kernel)
            break; /* a codebase has none */
        lower_node(path, rows[row].kind == A_FIFO ? S_IFIFO : S_IFSOCK);
        break;
    case A_NEW_NAME:
    case KINDS:
        break;
    }
}

/* The kernel alone decides who may do what in a sticky directory. */
static bool call_is_about_owners(call_fn *call)
{
    static call_fn *const calls[] = {
        call_unlink,        call_unlink_link, call_rename_from,     call_rename_exchange,
        call_exchange_from, call_rename_to,   call_link_from,       call_rename_directory,
        call_rmdir,         call_chmod,       call_chmod_directory, call_chown,
        call_utimens,       call_touch
    };

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (calls[i] == call)
            return true;
    return false;
}

/* How the kernel engine may differ: docs/permissions.md has the table. */
static bool may_differ_in_kernel(const struct row *row, int level, int got)
{
    if (got == EPERM && row->wanted[level] == EACCES)
        return call_is_about_owners(row->call) || row->call == call_link_to;
    if (row->call == call_access_write)
        return got == EACCES; /* as open */
    return row->call == call_handle && got == EOPNOTSUPP;
}

/* Returns whether a row is about what a codebase cannot have, or writes a file beside. */
static bool row_is_left_out(const struct row *row)
{
    static call_fn *const calls[] = { call_copy_from, call_link_tmpfile, call_rename_noreplace };

    if (!world_engine()->is_kernel)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (calls[i] == row->call)
            return true;
    return row->kind == A_FIFO || row->kind == A_SOCKET;
}

static bool may_differ(const struct row *row, int level, int got)
{
    if (world_engine()->is_kernel)
        return may_differ_in_kernel(row, level, got);
    /* A directory of the layer below cannot be renamed in an overlay without redirects. */
    return row->call == call_rename_directory && level == VIEW_WRITE && got == EXDEV;
}

static void rows_run(void *argument)
{
    const uid_t uid = *(const uid_t *)argument;
    unsigned wrong = 0;

    for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
        for (int level = 0; level < LEVELS; level++) {
            const char *path = case_path(row, level, uid);
            int got, wanted = rows[row].wanted[level];

            if (!level_is_there(level) || row_is_left_out(&rows[row]))
                continue;
            got = rows[row].call(path);
            if (got == wanted || may_differ(&rows[row], level, got))
                continue;
            (void)printf("%s as uid %u at level %s: %s instead of %s\n", rows[row].name,
                         (unsigned)uid, level_names[level], strerror(got), strerror(wanted));
            wrong++;
        }
    }
    CHECK(wrong == 0);
}

static void table_begin(const uid_t *uids, size_t count)
{
    world_begin();
    lower_directory("d");
    lower_directory("free");
    lower_file("free/file", "file");
    lower_file("free/other", "other");
    lower_file("free/third", "third");
    for (size_t row = 0; row < ARRAY_SIZE(rows); row++)
        for (int level = 0; level < LEVELS; level++)
            for (size_t i = 0; i < count && level_is_there(level); i++)
                case_make(row, level, uids[i]);
    world_show(world_engine()->is_kernel ? sealed_rules_text : rules_text);
}

static void table_check(void)
{
    uid_t uids[] = { 0, PLAIN_USER };

    table_begin(uids, ARRAY_SIZE(uids));
    for (size_t i = 0; i < ARRAY_SIZE(uids); i++)
        sandbox_run(uids[i], rows_run, &uids[i]);
    world_end();
}

static void the_table_holds_for_root_and_a_plain_user(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(view_engines); i++) {
        const struct view_engine *engine = &view_engines[i];

        world.engine = engine;
        table_check();
    }
}

/* --- what the host forbids everybody ---------------------------------------------------------- */

static const struct {
    const char *path;
    int max;
} protections[] = {
    { "/proc/sys/fs/protected_symlinks", 1 },
    { "/proc/sys/fs/protected_hardlinks", 1 },
    { "/proc/sys/fs/protected_fifos", 2 },
    { "/proc/sys/fs/protected_regular", 2 },
};

static int protection_read(size_t i)
{
    FILE *file = fopen(protections[i].path, "re");
    int value = -1;

    CHECK(file && fscanf(file, "%d", &value) == 1, "(%s)", protections[i].path);
    (void)fclose(file);
    return value;
}

static void protection_write(size_t i, int value)
{
    FILE *file = fopen(protections[i].path, "we");

    CHECK(file && fprintf(file, "%d\n", value) > 0 && fclose(file) == 0, "(%s)",
          protections[i].path);
}

/* The settings are those of the machine: a process of its own restores them when this one ends,
 * however it does, and only one test at a time changes them. */
static int protections_begin(void)
{
    int lock_fd = open("/run/holt-test-protections", O_CREAT | O_RDWR | O_CLOEXEC, 0600), ends[2];
    int values[ARRAY_SIZE(protections)];
    char byte;

    CHECK(lock_fd >= 0 && flock(lock_fd, LOCK_EX) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(protections); i++)
        values[i] = protection_read(i);
    (void)fflush(stdout);
    if (fork() == 0) {
        (void)setsid();
        (void)close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        for (size_t i = 0; i < ARRAY_SIZE(protections); i++)
            protection_write(i, values[i]);
        _exit(0);
    }
    (void)close(ends[0]);
    (void)close(lock_fd); /* the other process has the lock as long as it lives */
    return ends[1];
}

static void the_table_holds_whatever_the_host_protects(void)
{
    int guard_fd = protections_begin();

    for (int value = 0; value <= 2; value++) {
        for (size_t i = 0; i < ARRAY_SIZE(protections); i++)
            protection_write(i, value < protections[i].max ? value : protections[i].max);
        for (size_t i = 0; i < ARRAY_SIZE(view_engines); i++) {
            world.engine = &view_engines[i];
            table_check();
        }
    }
    (void)close(guard_fd);
    (void)wait(NULL);
}

/* --- what is listed --------------------------------------------------------------------------- */

static void names_list(void *ignored)
{
    unsigned seen[LEVELS] = { 0 };
    DIR *dir = opendir("d");
    const struct dirent *entry;

    (void)ignored;
    CHECK(dir);
    while ((entry = readdir(dir)))
        for (int level = 0; level < LEVELS; level++)
            seen[level] += strncmp(entry->d_name, level_names[level], 4) == 0;
    (void)closedir(dir);
    CHECK(seen[VIEW_NONE] == 0 && seen[VIEW_VIEW] > 0);
    CHECK(seen[VIEW_VIEW] == seen[VIEW_READ] && seen[VIEW_READ] == seen[VIEW_WRITE]);
}

static void what_is_hidden_is_not_listed(void)
{
    uid_t uids[] = { 0 };

    table_begin(uids, 1);
    for (int i = 0; i < 2; i++) /* the second time from the kernel's cache */
        sandbox_run(0, names_list, NULL);
    world_end();
}

static void open_protected(void *ignored)
{
    (void)ignored;
    CHECK(call_open_write("d/view-0-0") == EACCES);
}

static void refusals_are_reported(void)
{
    uid_t uids[] = { 0 };

    table_begin(uids, 1);
    sandbox_run(0, open_protected, NULL);
    EVENTUALLY(world.denied == 1);
    world_end();
}

int main(void)
{
    must_be_root();
    RUN(the_table_holds_for_root_and_a_plain_user);
    RUN(the_table_holds_whatever_the_host_protects);
    RUN(what_is_hidden_is_not_listed);
    RUN(refusals_are_reported);
    return 0;
}
