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
#include "store/import/layers.h"

enum { REPORT_BYTES = 16 << 20, REPORT_FILES = 512 };

void budget_report(struct import_budget *budget)
{
    struct template_progress progress = { budget->bytes, budget->files, budget->source_bytes,
                                          budget->source_total };

    if (!budget->progress)
        return;
    budget->reported_bytes = budget->bytes;
    budget->reported_files = budget->files;
    if (budget->total)
        progress = (struct template_progress){ atomic_load(&budget->total->bytes),
                                               atomic_load(&budget->total->files),
                                               atomic_load(&budget->total->source_bytes),
                                               budget->total->source_total };
    budget->progress(&progress, budget->context);
}

void budget_read(struct import_budget *budget, uint64_t source_bytes)
{
    if (budget->total && source_bytes > budget->source_bytes)
        atomic_fetch_add(&budget->total->source_bytes, source_bytes - budget->source_bytes);
    budget->source_bytes = source_bytes;
}

void budget_expect(struct import_budget *budget, uint64_t bytes)
{
    budget->source_total =
        bytes < UINT64_MAX - budget->source_total ? budget->source_total + bytes : UINT64_MAX;
}

static int bytes_are_full(const struct import_budget *budget, struct err *err)
{
    return err_set(err, ERR_EXHAUSTED, "the template is larger than %" PRIu64 " bytes",
                   budget->bytes_max);
}

static int files_are_full(const struct import_budget *budget, struct err *err)
{
    return err_set(err, ERR_EXHAUSTED, "the template has more than %" PRIu64 " files",
                   budget->files_max);
}

/* Charges what several threads share. What does not fit stays charged: the import fails. */
static int total_spend(struct import_budget *budget, uint64_t files, uint64_t bytes,
                       struct err *err)
{
    uint64_t other_bytes, other_files;

    if (bytes > budget->bytes_max)
        return bytes_are_full(budget, err);
    other_bytes = atomic_fetch_add(&budget->total->bytes, bytes);
    other_files = atomic_fetch_add(&budget->total->files, files);
    if (other_bytes > budget->bytes_max - bytes)
        return bytes_are_full(budget, err);
    return other_files + files > budget->files_max ? files_are_full(budget, err) : 0;
}

int budget_spend(struct import_budget *budget, uint64_t files, uint64_t bytes, struct err *err)
{
    int r = 0;

    if (budget->total)
        r = total_spend(budget, files, bytes, err);
    else if (bytes > budget->bytes_max - budget->bytes)
        r = bytes_are_full(budget, err);
    else if (files > budget->files_max - budget->files)
        r = files_are_full(budget, err);
    if (r < 0)
        return r;
    budget->bytes += bytes;
    budget->files += files;
    if (budget->bytes - budget->reported_bytes >= REPORT_BYTES ||
        budget->files - budget->reported_files >= REPORT_FILES)
        budget_report(budget);
    return 0;
}

static int subdir_make(int dir_fd, const char *name, mode_t mode, int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(dir_fd, name, 0700) < 0)
        return import_error(err, -errno, "make the directory", name);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return import_error(err, -errno, "open the directory", name);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int import_subdir(struct import *import, const char *name, mode_t mode, int *ret_fd,
                  struct err *err)
{
    return subdir_make(import->fd, name, mode, ret_fd, err);
}

static int temp_open(struct import *import, struct err *err)
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
    return 0;
}

static int root_begin(struct import *import, int dir_fd, const char *name, struct err *err)
{
    int r = subdir_make(dir_fd, name, 0755, &import->root_fd, err);

    if (r < 0)
        return r;
    import->root = (struct import_root)IMPORT_ROOT_INIT(import->root_fd, &import->budget);
    return 0;
}

int import_start(struct import *import, struct err *err)
{
    int r = temp_open(import, err);

    return r < 0 ? r : root_begin(import, import->fd, "rootfs", err);
}

int import_start_upper(struct import *import, struct err *err)
{
    cleanup_close int layers_fd = -EBADF;
    int r = temp_open(import, err);

    if (r == 0)
        r = import_subdir(import, "layers", 0700, &layers_fd, err);
    if (r == 0)
        r = root_begin(import, layers_fd, "root", err);
    import->root.is_upper = true;
    return r;
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
    template_settings_done(&import->settings);
    image_layers_free(import->layers);
    import->layers = NULL;
    import->root_fd = fd_close(import->root_fd);
    import->fd = fd_close(import->fd);
    /* store_open removes leftovers. */
    if (import->temp[0])
        (void)tree_remove_at(import->store->templates_fd, import->temp);
}
