// SPDX-License-Identifier: Apache-2.0
#include "store/import/work.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"

int import_subdir(struct import *import, const char *name, mode_t mode, int *ret_fd,
                  struct err *err)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(import->fd, name, 0700) < 0)
        return import_fail(err, -errno, "make the directory", name);
    fd = openat(import->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return import_fail(err, -errno, "open the directory", name);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int import_begin(struct import *import, struct err *err)
{
    int r = store_temp_dir(import->store->templates_fd, "import", import->temp, err);

    if (r < 0) {
        import->temp[0] = '\0';
        return r;
    }
    import->fd = openat(import->store->templates_fd, import->temp,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (import->fd < 0)
        return import_fail(err, -errno, "open", import->temp);
    r = import_subdir(import, "rootfs", 0755, &import->root_fd, err);
    if (r < 0)
        return r;
    import->root = (struct import_root)IMPORT_ROOT_INIT(import->root_fd, &import->budget);
    return 0;
}

int import_seal(struct import *import, const struct template_meta *meta, struct err *err)
{
    int r;

    import_root_done(&import->root); /* puts back the time of the last directory */
    r = template_meta_write(import->fd, meta, err);
    if (r < 0)
        return r;
    return syncfs(import->fd) < 0 ? import_fail(err, -errno, "write", "meta.json") : 0;
}

void import_done(struct import *import)
{
    import_root_done(&import->root);
    import->root_fd = fd_close(import->root_fd);
    import->fd = fd_close(import->fd);
    /* What cannot be removed now, store_open removes. */
    if (import->temp[0])
        (void)tree_remove_at(import->store->templates_fd, import->temp);
}
