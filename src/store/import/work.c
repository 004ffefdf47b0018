// SPDX-License-Identifier: Apache-2.0
#include "store/import/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"

enum { REPORT_BYTES = 16 << 20, REPORT_FILES = 512 };

void budget_report(struct import_budget *budget)
{
    if (!budget->progress)
        return;
    budget->reported_bytes = budget->bytes;
    budget->reported_files = budget->files;
    budget->progress(&(struct template_progress){ budget->bytes, budget->files,
                                                  budget->source_bytes, budget->source_total },
                     budget->context);
}

void budget_expect(struct import_budget *budget, uint64_t bytes)
{
    budget->source_total =
        bytes < UINT64_MAX - budget->source_total ? budget->source_total + bytes : UINT64_MAX;
}

int budget_spend(struct import_budget *budget, uint64_t files, uint64_t bytes, struct err *err)
{
    if (bytes > budget->bytes_max - budget->bytes)
        return err_set(err, ERR_EXHAUSTED, "the template is larger than %" PRIu64 " bytes",
                       budget->bytes_max);
    if (files > budget->files_max - budget->files)
        return err_set(err, ERR_EXHAUSTED, "the template has more than %" PRIu64 " files",
                       budget->files_max);
    budget->bytes += bytes;
    budget->files += files;
    if (budget->bytes - budget->reported_bytes >= REPORT_BYTES ||
        budget->files - budget->reported_files >= REPORT_FILES)
        budget_report(budget);
    return 0;
}

int import_subdir(struct import *import, const char *name, mode_t mode, int *ret_fd,
                  struct err *err)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(import->fd, name, 0700) < 0)
        return import_error(err, -errno, "make the directory", name);
    fd = openat(import->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return import_error(err, -errno, "open the directory", name);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int import_start(struct import *import, struct err *err)
{
    int r = store_temp_dir(import->store->templates_fd, "import", import->temp, err);

    if (r < 0) {
        import->temp[0] = '\0';
        return r;
    }
    import->fd = openat(import->store->templates_fd, import->temp,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (import->fd < 0)
        return import_error(err, -errno, "open", import->temp);
    r = import_subdir(import, "rootfs", 0755, &import->root_fd, err);
    if (r < 0)
        return r;
    import->root = (struct import_root)IMPORT_ROOT_INIT(import->root_fd, &import->budget);
    return 0;
}

int import_seal(struct import *import, const struct template_meta *meta, struct err *err)
{
    int r;

    import_root_done(&import->root); /* restores the time of the last directory */
    r = template_meta_write(import->fd, meta, err);
    if (r < 0)
        return r;
    return syncfs(import->fd) < 0 ? import_error(err, -errno, "write", "meta.json") : 0;
}

void import_done(struct import *import)
{
    import_root_done(&import->root);
    import->root_fd = fd_close(import->root_fd);
    import->fd = fd_close(import->fd);
    /* store_open removes leftovers. */
    if (import->temp[0])
        (void)tree_remove_at(import->store->templates_fd, import->temp);
}
