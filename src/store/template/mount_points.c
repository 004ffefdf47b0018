// SPDX-License-Identifier: Apache-2.0
#include "store/template/mount_points.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "kernel/path.h"
#include "store/template/template.h"

static const char *const files[] = { "hosts", "hostname", "resolv.conf" };

/* The modes are those that a sandbox sees, whatever the umask. */
static int directory_make(int dir_fd, const char *name, int *ret_fd)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0755) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int mount_points_open(int state_fd, int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF, etc_fd = -EBADF;
    int r = directory_make(state_fd, "mount-points", &fd);

    if (r == 0)
        r = directory_make(fd, "etc", &etc_fd);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
        if (faccessat(etc_fd, files[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            r = file_create_at(etc_fd, files[i], 0644, "");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
        r = fchmodat(etc_fd, files[i], 0644, 0) < 0 ? -errno : 0;
    if (r < 0)
        return err_sys(err, r, "make 'mount-points' in the state directory");
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static bool layer_has(int layer_fd, const char *name)
{
    cleanup_close int etc_fd = open_no_links(layer_fd, "etc", O_PATH | O_DIRECTORY, 0);
    struct stat info;

    return etc_fd >= 0 && fstatat(etc_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool root_has(const struct template_tree *root, const char *name)
{
    for (size_t i = 0; i < root->layer_count; i++)
        if (layer_has(root->layers[i], name))
            return true;
    return layer_has(root->fd, name);
}

bool mount_points_are_missing(const struct template_tree *root)
{
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (!root_has(root, files[i]))
            return true;
    return false;
}
