// SPDX-License-Identifier: Apache-2.0
/* Programs that rebuild the system's certificates, such as update-ca-certificates, rename a new
 * bundle over the old one, which cannot be done to a file that is a mount point. So a copy of the
 * whole directory is mounted over it where it is small, and a bundle without the authority still
 * leaves it there under the hash of its name. */
#include "guest/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "guest/keystore.h"
#include "kernel/mount.h"
#include "kernel/path.h"
#include "wire/message.h"

#define WRITABLE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define READ_ONLY (MOUNT_ATTR_RDONLY | WRITABLE)
#define JAVA_STORE "cacerts" /* in a directory java */

enum { FILE_MAX = 4 << 20, ENTRIES_MAX = 4096, LEVELS_MAX = 3, AGENT_BACKLOG = 64 };

/* Where distributions have their certificates: Debian, Alpine and Arch; Fedora; openSUSE. */
static const struct trust_place {
    const char *dir, *bundle;
} places[] = {
    { "/etc/ssl/certs", "ca-certificates.crt" },
    { "/etc/pki/ca-trust/extracted/pem", "tls-ca-bundle.pem" },
    { "/var/lib/ca-certificates", "ca-bundle.pem" },
};

static int tmpfs_new(const char *bytes)
{
    const struct mount_option options[] = { { "size", bytes }, { "mode", "0755" } };

    return mount_new("tmpfs", options, ARRAY_SIZE(options), MOUNT_ATTR_NOEXEC);
}

static int file_read(int dir_fd, const char *name, struct buf *ret)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    ssize_t n;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return -EINVAL;
    r = buf_reserve(ret, (size_t)st.st_size + 1);
    if (r < 0)
        return r;
    n = read_full(fd, ret->data, (size_t)st.st_size);
    ret->len = n < 0 ? 0 : (size_t)n;
    return n < 0 ? (int)n : 0;
}

static int bytes_put(int dir_fd, const char *name, const struct buf *content)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    return fd < 0 ? -errno : write_all(fd, content->data, content->len);
}

static int file_put(int dir_fd, const char *name, const struct buf *content, const char *more)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : 0;

    if (r == 0 && content)
        r = write_all(fd, content->data, content->len);
    if (r == 0 && content && content->len > 0 && content->data[content->len - 1] != '\n')
        r = write_all(fd, "\n", 1);
    return r == 0 && more ? write_all(fd, more, strlen(more)) : r;
}

/* --- a copy of a directory ----------------------------------------------------------------------
 */

struct dir_copy {
    int from_fd, to_fd;
    int entries; /* so far, of all levels */
    int level;
};

static int entries_copy(struct dir_copy *copy);

static int subdir_copy(struct dir_copy *copy, const char *name)
{
    cleanup_close int from_fd =
        openat(copy->from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to_fd = -EBADF;
    struct dir_copy below = { from_fd, -EBADF, copy->entries, copy->level + 1 };
    int r;

    if (from_fd < 0 || mkdirat(copy->to_fd, name, 0755) < 0)
        return -errno;
    to_fd = openat(copy->to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    below.to_fd = to_fd;
    r = to_fd < 0 ? -errno : entries_copy(&below);
    copy->entries = below.entries;
    return r;
}

static int entry_copy(struct dir_copy *copy, const char *name)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_MAX + 1);
    char target[1024];
    struct stat st;
    ssize_t len;
    int r;

    if (fstatat(copy->from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return subdir_copy(copy, name);
    if (S_ISLNK(st.st_mode)) {
        len = readlinkat(copy->from_fd, name, target, sizeof(target) - 1);
        target[len < 0 ? 0 : len] = '\0';
        return len < 0 || symlinkat(target, copy->to_fd, name) < 0 ? -errno : 0;
    }
    r = file_read(copy->from_fd, name, &content);
    return r < 0 ? r : bytes_put(copy->to_fd, name, &content);
}

/* Fails for anything but files, links and a few levels of directories. */
static int entries_copy(struct dir_copy *copy)
{
    int fd = openat(copy->from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = copy->level > LEVELS_MAX ? -EFBIG : 0;

    if (!dir)
        return fd < 0 ? -errno : -ENOMEM;
    while (r == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        r = ++copy->entries > ENTRIES_MAX ? -EFBIG : entry_copy(copy, entry->d_name);
    }
    return r;
}

/* --- covering -----------------------------------------------------------------------------------
 */

/* Adds the authority to the keystore of Java, where the directory has one. */
static void java_cover(int copy_fd, const char *ca)
{
    cleanup_with(buf_done) struct buf store = BUF_INIT(FILE_MAX + 1), made = BUF_INIT(FILE_MAX + 1);
    cleanup_close int dir_fd =
        openat(copy_fd, "java", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir_fd >= 0 && file_read(dir_fd, JAVA_STORE, &store) == 0 &&
        keystore_add(&store, ca, &made) == 0)
        (void)bytes_put(dir_fd, JAVA_STORE, &made);
}

static int dir_cover(int dir_fd, const struct trust_place *place, const struct buf *bundle,
                     const struct message_root *message)
{
    cleanup_close int copy_fd = tmpfs_new("32m");
    char hashed[32];
    struct dir_copy copy = { .from_fd = dir_fd, .to_fd = copy_fd };
    int r = copy_fd < 0 ? copy_fd : entries_copy(&copy);

    (void)snprintf(hashed, sizeof(hashed), "%.16s.0", message->ca_hash);
    if (r == 0)
        r = file_put(copy_fd, place->bundle, bundle, message->ca);
    if (r == 0)
        r = file_put(copy_fd, hashed, NULL, message->ca);
    if (r == 0) {
        java_cover(copy_fd, message->ca);
        r = mount_set_attributes(copy_fd, WRITABLE, false);
    }
    return r < 0 ? r : mount_attach(copy_fd, dir_fd);
}

static int bundle_cover(const struct trust *trust, int dir_fd, const char *name)
{
    cleanup_close int mount_point = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int mount_fd = mount_clone(trust->files_fd, "ca-bundle.pem", false);
    int r = mount_fd < 0 ? mount_fd : mount_set_attributes(mount_fd, READ_ONLY, false);

    if (mount_point < 0)
        return -errno;
    return r < 0 ? r : mount_attach(mount_fd, mount_point);
}

/* Opens the directory of the first place that this root has, and reads its bundle. Returns NULL if
 * it has none. */
static const struct trust_place *place_find(int root_fd, int *ret_dir_fd, struct buf *bundle)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        cleanup_close int fd =
            open_in_root(root_fd, places[i].dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

        if (fd < 0 || file_read(fd, places[i].bundle, bundle) < 0)
            continue;
        *ret_dir_fd = TAKE_FD(fd);
        return &places[i];
    }
    return NULL;
}

/* Mounts the filesystem of /dev/holt for the first root with an authority; no process of the
 * sandbox has run before it. */
static int files_make(struct trust *trust, int old_root_fd)
{
    cleanup_close int files_fd = tmpfs_new("8m"), mount_fd = -EBADF, mount_point = -EBADF;
    cleanup_close int dev_fd = open_no_links(old_root_fd, "dev", O_PATH | O_DIRECTORY, 0);
    int r;

    if (files_fd < 0 || dev_fd < 0)
        return files_fd < 0 ? files_fd : dev_fd;
    if (mkdirat(dev_fd, "holt", 0755) < 0 && errno != EEXIST)
        return -errno;
    mount_point = open_no_links(dev_fd, "holt", O_PATH | O_DIRECTORY, 0);
    if (mount_point < 0)
        return mount_point;
    mount_fd = mount_clone(files_fd, "", false);
    r = mount_fd < 0 ? mount_fd : mount_set_attributes(mount_fd, READ_ONLY, false);
    if (r == 0)
        r = mount_attach(mount_fd, mount_point);
    if (r == 0)
        trust->files_fd = TAKE_FD(files_fd);
    return r;
}

/* --- the ssh-agent ------------------------------------------------------------------------------
 */

/* A path would be looked up in the root of the sandbox, so the socket is bound in the working
 * directory. Without a listener programs see that there is no agent. */
static void agent_bind(int files_fd, int fd)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SSH_AGENT_SOCKET };

    (void)unlinkat(files_fd, SSH_AGENT_SOCKET, 0);
    if (fchdir(files_fd) == 0 &&
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        fchmodat(files_fd, SSH_AGENT_SOCKET, 0666, 0) == 0)
        (void)listen(fd, AGENT_BACKLOG);
    (void)chdir("/");
}

void trust_set_agent(struct trust *trust, int fd)
{
    (void)fd_close(trust->agent_fd);
    trust->agent_fd = fd;
    if (trust->files_fd < 0)
        return;
    agent_bind(trust->files_fd, fd);
    trust->agent_fd = fd_close(fd);
}

int trust_cover(struct trust *trust, int root_fd, int old_root_fd,
                const struct message_root *message, struct err *err)
{
    cleanup_with(buf_done) struct buf bundle = BUF_INIT(FILE_MAX + 1);
    const struct trust_place *place;
    cleanup_close int dir_fd = -EBADF;
    int r = 0;

    if (!*message->ca)
        return 0;
    place = place_find(root_fd, &dir_fd, &bundle);
    if (trust->files_fd < 0)
        r = files_make(trust, old_root_fd);
    if (r == 0)
        r = file_put(trust->files_fd, "ca.pem", NULL, message->ca);
    if (r == 0)
        r = file_put(trust->files_fd, "ca-bundle.pem", &bundle, message->ca);
    if (r == 0 && place && dir_cover(dir_fd, place, &bundle, message) < 0)
        r = bundle_cover(trust, dir_fd, place->bundle);
    if (r < 0)
        return err_sys(err, r, "lay the host's certificate over those of the sandbox");
    if (trust->agent_fd >= 0)
        trust_set_agent(trust, TAKE_FD(trust->agent_fd));
    return 0;
}
