// SPDX-License-Identifier: Apache-2.0
#include "kernel/netns_enter.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

ino_t netns_id(void)
{
    struct stat info;

    return stat("/proc/thread-self/ns/net", &info) < 0 ? 0 : info.st_ino;
}

int netns_enter(int fd)
{
    return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

struct setting {
    const char *name;
    bool is_own;
};

static void setting_look(void *argument)
{
    struct setting *setting = argument;
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "/proc/sys/%s", setting->name);
    setting->is_own = unshare(CLONE_NEWNET) == 0 && access(path, F_OK) == 0;
}

bool netns_has_own(const char *setting)
{
    struct setting wanted = { .name = setting };
    struct thread thread = { .is_started = false };

    if (thread_start(&thread, "holt-netns", setting_look, &wanted) < 0)
        return false;
    thread_join(&thread);
    return wanted.is_own;
}
