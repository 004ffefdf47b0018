// SPDX-License-Identifier: Apache-2.0
#include "store/import/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "store/import/copy.h"
#include "store/import/host_etc.h"
#include "store/import/import.h"
#include "store/import/root.h"

enum { USER_ID = 1000 };

const struct host_tree host_trees[] = {
    { "/usr", "usr", false },       { "/bin", "bin", false },     { "/sbin", "sbin", false },
    { "/lib", "lib", false },       { "/lib32", "lib32", false }, { "/lib64", "lib64", false },
    { "/libx32", "libx32", false }, { "/opt", "opt", true },
};
const size_t host_tree_count = ARRAY_SIZE(host_trees);

static const struct {
    const char *path;
    mode_t mode;
    uid_t owner;
} directories[] = {
    { "", 0755, 0 },          { "etc", 0755, 0 },       { "root", 0700, 0 },
    { "home", 0755, 0 },      { "tmp", 01777, 0 },      { "home/user", 0755, USER_ID },
    { "run", 0755, 0 },       { "run/lock", 01777, 0 }, { "var", 0755, 0 },
    { "var/tmp", 01777, 0 },  { "var/lib", 0755, 0 },   { "var/log", 0755, 0 },
    { "var/cache", 0755, 0 }, { "var/spool", 0755, 0 }, { "srv", 0755, 0 },
    { "mnt", 0755, 0 },       { "media", 0755, 0 },     { "opt", 0755, 0 },
    { "proc", 0555, 0 },      { "sys", 0555, 0 },       { "dev", 0755, 0 },
    { "workspace", 0777, 0 }, /* the working directory of every user */
};

static const struct {
    const char *path, *target;
} links[] = {
    { "var/run", "/run" },
    { "var/lock", "/run/lock" },
    { "etc/mtab", "../proc/self/mounts" },
};

static const struct {
    const char *path;
    mode_t mode;
    const char *text;
} files[] = {
    { "etc/passwd", 0644,
      "root:x:0:0:root:/root:/bin/bash\n"
      "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
      "user:x:1000:1000:user:/home/user:/bin/bash\n"
      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
    { "etc/group", 0644,
      "root:x:0:\n"
      "daemon:x:1:\n"
      "tty:x:5:\n"
      "user:x:1000:\n"
      "nogroup:x:65534:\n" },
    { "etc/shadow", 0640, "root:*:::::::\ndaemon:*:::::::\nuser:*:::::::\nnobody:*:::::::\n" },
    { "etc/hostname", 0644, "holt\n" },
    { "etc/hosts", 0644, "127.0.0.1 localhost holt\n::1 localhost ip6-localhost\n" },
    { "etc/resolv.conf", 0644, "# No name servers: a sandbox has no network of its own.\n" },
    { "etc/nsswitch.conf", 0644,
      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
      "protocols: files\nservices: files\nethers: files\nrpc: files\n" },
    { "etc/shells", 0644, "/bin/sh\n/bin/bash\n" },
    { "etc/profile", 0644,
      "export PATH=\"${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\"\n"
      "if [ -n \"$BASH_VERSION\" ] && [ -r /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi\n" },
};

static struct import_node node_now(const char *path, mode_t mode, uid_t owner)
{
    return (struct import_node){
        .path = path, .mode = mode, .uid = owner, .gid = owner, .mtime = { .tv_sec = time(NULL) }
    };
}

static int directory_make(struct import_root *root, const char *path, mode_t mode, uid_t owner,
                          struct err *err)
{
    struct import_node node = node_now(path, S_IFDIR | mode, owner);
    cleanup_close int fd = -EBADF;
    int r = import_root_make(root, &node, &fd, err);

    return r < 0 ? r : import_root_finish(root, &node, fd, err);
}

static int file_make(struct import_root *root, const char *path, mode_t mode, const char *text,
                     struct err *err)
{
    struct import_node node = node_now(path, S_IFREG | mode, 0);
    cleanup_close int fd = -EBADF;
    int r = import_root_make(root, &node, &fd, err);

    if (r < 0)
        return r;
    r = write_all(fd, text, strlen(text));
    if (r < 0)
        return import_error(err, r, "write", path);
    return import_root_finish(root, &node, fd, err);
}

static int link_make(struct import_root *root, const char *path, const char *target,
                     struct err *err)
{
    struct import_node node = node_now(path, S_IFLNK | 0777, 0);

    return import_root_symlink(root, &node, target, err);
}

/* Creates the mount point for a tree of the host, or the same symbolic link as on the host. */
static int mount_point_make(struct import_root *root, const struct host_tree *tree, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = readlink(tree->target, target, sizeof(target) - 1);

    if (len >= 0) {
        target[len] = '\0';
        return link_make(root, tree->name, target, err);
    }
    if (errno == ENOENT)
        return 0;
    return directory_make(root, tree->name, 0755, 0, err);
}

static int skeleton_make(struct import_root *root, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(directories); i++)
        r = directory_make(root, directories[i].path, directories[i].mode, directories[i].owner,
                           err);
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(links); i++)
        r = link_make(root, links[i].path, links[i].target, err);
    for (size_t i = 0; r >= 0 && i < host_tree_count; i++)
        r = mount_point_make(root, &host_trees[i], err);
    return r;
}

static int etc_copy(int dir_fd, const char *name, const char *path, void *copy, struct err *err)
{
    return import_copy_tree(copy, dir_fd, name, path, err);
}

int import_host_build(struct import_root *root, struct err *err)
{
    cleanup_with(import_copy_done) struct import_copy copy = { .root = root, .is_public = true };
    int r = skeleton_make(root, err);

    if (r >= 0)
        r = host_etc_each(etc_copy, &copy, err);
    /* Last, so that no file of the host can replace a generated one. */
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(files); i++)
        r = file_make(root, files[i].path, files[i].mode, files[i].text, err);
    return r;
}

static void digest_text(struct digest *digest, const char *text)
{
    digest_add(digest, text, strlen(text) + 1);
}

static void digest_generated(struct digest *digest)
{
    for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
        digest_text(digest, directories[i].path);
        digest_add(digest, &directories[i].mode, sizeof(directories[i].mode));
        digest_add(digest, &directories[i].owner, sizeof(directories[i].owner));
    }
    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        digest_text(digest, links[i].path);
        digest_text(digest, links[i].target);
    }
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        digest_text(digest, files[i].path);
        digest_add(digest, &files[i].mode, sizeof(files[i].mode));
        digest_text(digest, files[i].text);
    }
}

static void digest_host_trees(struct digest *digest)
{
    char target[PATH_MAX];

    for (size_t i = 0; i < host_tree_count; i++) {
        ssize_t len = readlink(host_trees[i].target, target, sizeof(target));

        digest_text(digest, host_trees[i].target);
        digest_text(digest, len >= 0 || errno != ENOENT ? "there" : "missing");
        digest_add(digest, target, len > 0 ? (size_t)len : 0);
    }
}

int import_host_fingerprint(char ret_hex[static DIGEST_HEX_LEN + 1], struct err *err)
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    int r;

    if (!digest)
        return err_set(err, ERR_INTERNAL, "OpenSSL does not support SHA-256");
    digest_generated(digest);
    digest_host_trees(digest);
    r = host_etc_each(host_etc_digest, digest, err);
    if (r < 0)
        return r;
    r = digest_hex(digest, ret_hex);
    return r < 0 ? err_sys(err, r, "compute a fingerprint") : 0;
}
