// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "kernel/clone.h"

int program_find(const char *program, char **ret, struct err *err)
{
    static const char *const folders[] = { "", "../libexec/holt/" };
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len < 0)
        return err_sys(err, -errno, "find this program's own path");
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        cleanup_free char *path = xasprintf("%s/%s%s", self, folders[i], program);

        if (access(path, R_OK) == 0) {
            *ret = TAKE_PTR(path);
            return 0;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s is neither in '%.80s' nor in ../libexec/holt", program,
                   self);
}

int program_load(const char *name, const char *path, int *ret_fd, struct err *err)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    cleanup_close int file_fd = open(path, O_RDONLY | O_CLOEXEC);
    cleanup_close int memory_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat info;

    if (file_fd < 0 || fstat(file_fd, &info) < 0)
        return err_sys(err, -errno, "open %s at '%s'", name, path);
    if (memory_fd < 0 || fchmod(memory_fd, 0111) < 0)
        return err_sys(err, -errno, "create a memfd for %s", name);
    for (off_t done = 0; done < info.st_size;) {
        ssize_t n = sendfile(memory_fd, file_fd, &done, (size_t)(info.st_size - done));

        if (n <= 0)
            return err_sys(err, n < 0 ? -errno : -EIO, "read %s at '%s'", name, path);
    }
    if (fcntl(memory_fd, F_ADD_SEALS, seals) < 0)
        return err_sys(err, -errno, "seal %s", name);
    *ret_fd = TAKE_FD(memory_fd);
    return 0;
}

int program_start(const char *name, const int *fds, size_t fd_count, pid_t *ret_pid, int *ret_pidfd,
                  struct err *err)
{
    cleanup_free char *own_name = xstrdup(name), *path = NULL;
    char *const args[] = { own_name, NULL };
    char *const env[] = { NULL };
    cleanup_close int program_fd = -EBADF;
    int r = program_find(name, &path, err);

    if (r < 0 || !path)
        return r;
    program_fd = open(path, O_PATH | O_CLOEXEC);
    if (program_fd < 0)
        return err_sys(err, -errno, "open '%s'", path);
    r = clone_exec(&(struct clone_exec){ .cgroup_fd = -1,
                                         .program_fd = program_fd,
                                         .args = args,
                                         .env = env,
                                         .fds = fds,
                                         .fd_count = fd_count },
                   ret_pid, ret_pidfd);
    return r < 0 ? err_sys(err, r, "start '%s'", path) : 0;
}
