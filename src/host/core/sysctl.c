// SPDX-License-Identifier: Apache-2.0
#include "host/core/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "host/core/config.h"
#include "host/core/descriptors.h"
#include "kernel/netns_enter.h"

#define FILES_PATH "/proc/sys/fs/file-max"
#define STAMPS "net/core/tstamp_allow_data"
#define STAMPS_PATH "/proc/sys/" STAMPS

enum { FILE_BYTES = 128 }; /* of an open file in the kernel: less than it is */

/* Returns 0 if the setting has this value, or may get it. */
static int sysctl_set(const char *path, uint64_t value, bool changes)
{
    char text[32];

    if (!changes)
        return access(path, W_OK) < 0 ? -errno : 0;
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return file_write_at(AT_FDCWD, path, text);
}

/* Returns as many as all sandboxes may open, at most what fits into the machine's memory. */
static uint64_t files_wanted(const struct config *config)
{
    uint64_t fit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / FILE_BYTES;
    uint64_t count = config->sandboxes_max == CONFIG_AUTO_COUNT ? descriptors_sandboxes_max()
                                                                : config->sandboxes_max;

    if (config->limit_pids == 0 || __builtin_mul_overflow(count, config->limit_pids, &count) ||
        __builtin_mul_overflow(count, config->limit_files, &count) || count > fit)
        return fit;
    return count;
}

int sysctl_check_files(const struct config *config, bool changes, struct err *err)
{
    uint64_t wanted = files_wanted(config);
    long long now = 0;

    if (file_read_number_at(AT_FDCWD, FILES_PATH, &now) < 0 || (uint64_t)now >= wanted ||
        sysctl_set(FILES_PATH, wanted, changes) == 0)
        return 0;
    (void)err_set(err, ERR_EXHAUSTED,
                  "fs.file-max is %lld: one sandbox can use up the open files of the machine", now);
    return err_remedy(err, "raise fs.file-max in sysctl.conf(5), or lower limits.files");
}

int sysctl_check_stamps(bool changes, struct err *err)
{
    long long now = 0;

    if (file_read_number_at(AT_FDCWD, STAMPS_PATH, &now) == 0 &&
        (now == 0 || netns_has_own(STAMPS) || sysctl_set(STAMPS_PATH, 0, changes) == 0))
        return 0;
    (void)err_set(
        err, ERR_EXHAUSTED,
        "net.core.tstamp_allow_data is not 0: a sandbox can have memory beyond its limit");
    return err_remedy(err, "set net.core.tstamp_allow_data = 0 in sysctl.conf(5)");
}
