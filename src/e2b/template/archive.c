// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

#define SUFFIX ".tar.gz"

enum {
    UNUSED_MAX_S = 7 * 24 * 3600,
    PART_MAX_S = 24 * 3600,
    ARCHIVES_MAX = 4096, /* checked per run; the rest after some of these were removed */
};

struct archive {
    char name[NAME_MAX + 1];
    uint64_t bytes;
    time_t used;
    bool is_whole;
};

/* Longest unused first. */
static int compare(const void *a, const void *b)
{
    const struct archive *one = a, *two = b;

    return (one->used > two->used) - (one->used < two->used);
}

static size_t gather(DIR *dir, struct archive all[ARCHIVES_MAX])
{
    struct dirent *entry;
    size_t count = 0;

    while (count < ARCHIVES_MAX && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name), suffix = strlen(SUFFIX);
        struct stat status;

        if (fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        all[count] = (struct archive){
            .bytes = (uint64_t)status.st_size,
            .used = status.st_mtime,
            .is_whole = len > suffix && strcmp(entry->d_name + len - suffix, SUFFIX) == 0,
        };
        (void)snprintf(all[count++].name, sizeof(all->name), "%s", entry->d_name);
    }
    qsort(all, count, sizeof(*all), compare);
    return count;
}

int e2b_archives_prune(const char *directory)
{
    cleanup_with(closedir_slot) DIR *dir = NULL;
    cleanup_free struct archive *all = xcalloc(ARCHIVES_MAX, sizeof(*all));
    time_t now = time(NULL);
    uint64_t total = 0;
    size_t count;

    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return -errno;
    dir = opendir(directory);
    if (!dir)
        return -errno;
    count = gather(dir, all);
    for (size_t i = 0; i < count; i++)
        total += all[i].bytes;
    for (size_t i = 0; i < count; i++) {
        time_t unused = now - all[i].used;
        bool is_surplus =
            all[i].is_whole && (total > E2B_ARCHIVES_BYTES_MAX || count - i >= ARCHIVES_MAX);

        if (!is_surplus && unused <= (all[i].is_whole ? UNUSED_MAX_S : PART_MAX_S))
            continue;
        if (unlinkat(dirfd(dir), all[i].name, 0) == 0)
            total -= all[i].bytes;
    }
    return 0;
}

bool e2b_archive_use(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}
