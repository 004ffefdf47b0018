// SPDX-License-Identifier: Apache-2.0
#include "host/core/program_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"

int init_path_find(const char *program, char **ret, struct err *err)
{
    static const char *const places[] = { "", "../libexec/holt/" };
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len < 0)
        return err_sys(err, -errno, "find this program's own path");
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        cleanup_free char *path = xasprintf("%s/%s%s", self, places[i], program);

        if (access(path, R_OK) == 0) {
            *ret = TAKE_PTR(path);
            return 0;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "%s is neither in '%.80s' nor in ../libexec/holt", program,
                   self);
}
