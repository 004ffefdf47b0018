// SPDX-License-Identifier: Apache-2.0
/* Devices, and what the kernel tells of itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "prove/prove.h"

enum { PATH_BYTES = 600, LOG_BYTES = 4 << 20, READ_ALL = 3 };

/* Makes a node, opens it and removes it. Returns the descriptor, or -1 with errno. */
static int node_open(const char *dir, mode_t type, dev_t device, int flags)
{
    char path[PATH_BYTES];
    int fd, saved;

    (void)snprintf(path, sizeof(path), "%s/node", dir);
    if (mknod(path, type | 0600, device) < 0)
        return -1;
    fd = open(path, flags | O_CLOEXEC);
    saved = errno;
    (void)unlink(path);
    errno = saved;
    return fd;
}

void attempt_disk(const struct facts *facts, struct result *ret)
{
    const char *dir = scratch_dir(facts);
    char sector[512];
    int fd;

    if (facts->device == 0) {
        errno = 0;
        absent(ret, "the host has no disk");
        return;
    }
    fd = node_open(dir, S_IFBLK, (dev_t)facts->device, O_RDONLY);
    if (fd >= 0 && read(fd, sector, sizeof(sector)) == sizeof(sector))
        reached(ret, "read a sector of device %u:%u", major(facts->device), minor(facts->device));
    else
        held(ret, "open the device");
    if (fd >= 0)
        (void)close(fd);
    (void)rmdir(dir);
}

void attempt_device_nodes(const struct facts *facts, struct result *ret)
{
    static const struct {
        const char *name;
        unsigned major, minor;
    } nodes[] = {
        { "mem", 1, 1 },
        { "port", 1, 4 },
        { "kmsg", 1, 11 },
        { "loop-control", 10, 237 },
        { "kvm", 10, 232 },
        { "fuse", 10, 229 },
        { "tun", 10, 200 },
        { "vhost-net", 10, 238 },
        { "vhost-vsock", 10, 241 },
    };
    const char *dir = scratch_dir(facts);

    for (size_t i = 0; !ret->is_reached && i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        int fd = node_open(dir, S_IFCHR, makedev(nodes[i].major, nodes[i].minor), O_RDONLY);

        if (fd >= 0)
            reached(ret, "opened the device %s", nodes[i].name);
        else
            held(ret, "open a node");
        if (fd >= 0)
            (void)close(fd);
    }
    (void)rmdir(dir);
}

void attempt_kernel_memory(const struct facts *facts, struct result *ret)
{
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    char magic[4] = "";

    (void)facts;
    if (fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
        memcmp(magic, "\177ELF", sizeof(magic)) == 0)
        reached(ret, "read /proc/kcore");
    else
        held(ret, "read /proc/kcore");
    if (fd >= 0)
        (void)close(fd);
}

/* The guard has written the token to the log. */
void attempt_kernel_log(const struct facts *facts, struct result *ret)
{
    static char log[LOG_BYTES];
    int len = klogctl(READ_ALL, log, sizeof(log));

    if (len >= 0)
        token_search(facts, log, (size_t)len, ret, "read the kernel log");
    else
        held(ret, "read the kernel log");
}
