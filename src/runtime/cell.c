// SPDX-License-Identifier: Apache-2.0
#include "runtime/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"

#define RUNSC "/usr/bin/runsc"

/* The path of the package, which is in the program. */
static const char systrap_package[] = "pkg/sentry/platform/systrap";

/* Systrap needs no ptrace and is several times as fast, but older versions lack it. */
static bool has_systrap(int fd)
{
    struct stat info;
    bool is_there;
    void *text;

    if (fstat(fd, &info) < 0 || info.st_size <= 0)
        return false;
    text = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return false;
    is_there = memmem(text, (size_t)info.st_size, systrap_package, strlen(systrap_package));
    (void)munmap(text, (size_t)info.st_size);
    return is_there;
}

/* Searches a program once: its inode and time of change are kept in one word. */
static const char *platform_choose(int fd)
{
    static atomic_uint_fast64_t searched;
    static atomic_bool found;
    struct stat info;
    uint64_t which;

    if (fstat(fd, &info) < 0)
        return "ptrace";
    which = (uint64_t)info.st_ino ^ (uint64_t)info.st_mtim.tv_nsec << 20 ^
            (uint64_t)info.st_mtim.tv_sec << 32;
    if (atomic_load(&searched) != which) {
        atomic_store(&found, has_systrap(fd));
        atomic_store(&searched, which);
    }
    return atomic_load(&found) ? "systrap" : "ptrace";
}

int runtime_cell_open(struct runtime_cell *ret, struct err *err)
{
    cleanup_close int fd = open(RUNSC, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        (void)err_set(err, ERR_UNSUPPORTED, "runtime 'gvisor' needs " RUNSC ": %s",
                      strerror(errno));
        return err_remedy(err, "install the package 'runsc'");
    }
    ret->platform = platform_choose(fd);
    ret->runsc_fd = TAKE_FD(fd);
    return 0;
}

void runtime_cell_close(struct runtime_cell *cell)
{
    cell->runsc_fd = fd_close(cell->runsc_fd);
}
