// SPDX-License-Identifier: Apache-2.0
/* Which process listens on a port. The kernel's tables of sockets and descriptors are read from
 * outside, so this works with every holt-init. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"
#include "kernel/cgroup/cgroup.h"

enum {
    LISTENERS_MAX = 16, /* of one port: addresses, and sockets that share it */
    PROCESSES_BYTES = 1 << 20,
    STATE_LISTEN = 0x0a, /* TCP_LISTEN, as /proc/net/tcp writes it */
    LISTENER_TEXT = 40,  /* "socket:[N]" */
};

struct listeners {
    char sockets[LISTENERS_MAX][LISTENER_TEXT]; /* as a link in /proc/PID/fd names them */
    size_t count;
};

/* Adds the socket of a line of /proc/net/tcp. Returns false after the last one that listens: the
 * kernel lists these first. */
static bool listener_parse(const char *line, uint16_t port, struct listeners *listeners)
{
    char local_port[5], state[3], inode[21];

    if (sscanf(line, "%*[ 0-9]: %*[0-9A-F]:%4[0-9A-F] %*s %2[0-9A-F] %*s %*s %*s %*s %*s %20[0-9]",
               local_port, state, inode) != 3)
        return true; /* the heading */
    if (strtoul(state, NULL, 16) != STATE_LISTEN)
        return false;
    if (strtoul(local_port, NULL, 16) == port && listeners->count < LISTENERS_MAX)
        (void)snprintf(listeners->sockets[listeners->count++], LISTENER_TEXT, "socket:[%s]", inode);
    return true;
}

static int listeners_read(pid_t pid, const char *table, uint16_t port, struct listeners *listeners)
{
    char path[64], line[512];
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, table);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    while (fgets(line, sizeof(line), file) && listener_parse(line, port, listeners))
        ;
    (void)fclose(file);
    return 0;
}

static bool process_has(pid_t pid, const struct listeners *listeners)
{
    char path[64], target[LISTENER_TEXT];
    bool is_found = false;
    struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    dir = opendir(path);
    if (!dir)
        return false; /* it has ended */
    while (!is_found && (entry = readdir(dir))) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        if (len < 0)
            continue;
        target[len] = '\0';
        for (size_t i = 0; i < listeners->count; i++)
            is_found |= strcmp(target, listeners->sockets[i]) == 0;
    }
    (void)closedir(dir);
    return is_found;
}

/* Returns the next process of the list, or 0 at its end. */
static pid_t pid_next(char **at)
{
    return (pid_t)strtol(*at, at, 10);
}

/* Returns whether a process is in the daemon's own network namespace, as bubblewrap is, or gone. */
static bool is_outside(pid_t pid)
{
    struct stat own, its;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
    return stat("/proc/self/ns/net", &own) < 0 || stat(path, &its) < 0 || own.st_ino == its.st_ino;
}

/* holt-init is in the network namespace that connections from outside arrive in. */
static int listeners_find(struct machine *machine, uint16_t port, struct listeners *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PROCESSES_BYTES);
    int r = cgroup_read_processes(machine->host->cgroups, machine->id, "init", &text);
    char *at = text.data;
    pid_t pid = 0;

    if (r < 0)
        return r;
    do
        pid = at ? pid_next(&at) : 0;
    while (pid > 0 && is_outside(pid));
    if (pid <= 0)
        return -ESRCH;
    r = listeners_read(pid, "tcp", port, ret);
    if (r == 0)
        (void)listeners_read(pid, "tcp6", port, ret); /* absent without IPv6 */
    return r;
}

int port_find_listener(struct machine *machine, const char *process_id, uint16_t port,
                       enum port_listener *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(PROCESSES_BYTES);
    struct listeners listeners = { .count = 0 };
    int r = listeners_find(machine, port, &listeners);
    char *at;

    if (r == 0)
        r = cgroup_read_processes(machine->host->cgroups, machine->id, process_id, &text);
    if (r < 0)
        return r;
    *ret = listeners.count > 0 ? PORT_LISTENER_OTHER : PORT_LISTENER_NONE;
    at = text.data;
    for (pid_t pid; *ret == PORT_LISTENER_OTHER && at && (pid = pid_next(&at)) > 0;)
        if (process_has(pid, &listeners))
            *ret = PORT_LISTENER_OWN;
    return 0;
}
