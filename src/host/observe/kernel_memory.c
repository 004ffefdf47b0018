// SPDX-License-Identifier: Apache-2.0
#include "host/observe/kernel_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/netns_enter.h"
#include "kernel/sockets.h"

enum {
    SOCKETS_FEW = 16,          /* cannot hold more than 2 MiB each */
    POLL_BYTES = 72,           /* of one entry of a list */
    LOCK_BYTES = 192,          /* of a lock of a file */
    INFO_LINES = 4,            /* of a descriptor, before its locks */
    DIRECTORY_BYTES = 4 << 10, /* of an open directory, at least */
    DIRECTORY_FACTOR = 2,      /* of its size; the kernel keeps more than the names */
    OTHER_BYTES = 256,         /* of a descriptor or thread, whose memory is charged but for this */
    LOOKS_MAX = 20000,         /* at descriptors and threads; more are not needed to find it */
    PROCESSES_BYTES_MAX = 1 << 20,
    PATH_BYTES = 64,
};

/* What is known so far of the processes of a machine. */
struct estimate {
    struct machine *machine;
    uint64_t bytes;
    unsigned looks;
    bool counts_locks;
};

struct netns_search {
    ino_t own;
    bool is_inside;
};

/* The program that starts holt-init may be outside. */
static bool netns_try(void *context, pid_t pid, int *pidfd)
{
    struct netns_search *search = context;

    (void)pid;
    search->is_inside = netns_enter(*pidfd) == 0 && netns_id() != search->own;
    return search->is_inside;
}

uint64_t kernel_memory_of_sockets(struct machine *machine, ino_t own_netns)
{
    struct netns_search search = { .own = own_netns };
    uint64_t bytes = 0;

    (void)cgroup_each_init(machine->host->cgroups, machine->id, netns_try, &search);
    if (search.is_inside && sockets_count() > SOCKETS_FEW)
        (void)sockets_read_uncharged(&bytes);
    return bytes;
}

typedef void (*entry_fn)(struct estimate *estimate, int dir_fd, const char *name);

/* Calls each for the entries of a directory of /proc/PID. */
static void entries_look(struct estimate *estimate, pid_t pid, const char *name, entry_fn each)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    dir = opendir(path);
    if (!dir)
        return; /* it has ended */
    while (estimate->looks < LOOKS_MAX && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            estimate->looks++;
            estimate->bytes += OTHER_BYTES;
            each(estimate, dirfd(dir), entry->d_name);
        }
    (void)closedir(dir);
}

/* Adds a line of the descriptor's information for each lock that it holds. */
static void locks_look(struct estimate *estimate, int dir_fd, const char *name)
{
    char path[PATH_BYTES], text[4096];
    cleanup_close int fd = -EBADF;
    uint64_t lines = 0;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "../fdinfo/%.20s", name);
    fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    if (lines > INFO_LINES)
        estimate->bytes += (lines - INFO_LINES) * LOCK_BYTES;
}

static void descriptor_look(struct estimate *estimate, int dir_fd, const char *name)
{
    struct stat info;
    uint64_t bytes;

    if (fstatat(dir_fd, name, &info, 0) < 0)
        return;
    if (S_ISREG(info.st_mode) && estimate->counts_locks)
        locks_look(estimate, dir_fd, name);
    if (!S_ISDIR(info.st_mode))
        return;
    bytes = (uint64_t)info.st_size * DIRECTORY_FACTOR;
    estimate->bytes += bytes > DIRECTORY_BYTES ? bytes : DIRECTORY_BYTES;
}

/* Returns which argument of the call is the length of a list to wait for; 0: none. */
static unsigned list_argument(long number)
{
#ifdef SYS_poll
    if (number == SYS_poll)
        return 2;
    if (number == SYS_select)
        return 1;
#endif
    if (number == SYS_ppoll)
        return 2;
    return number == SYS_pselect6 ? 1 : 0;
}

/* The file says "NUMBER ARGUMENTS...", or "running". */
static void thread_look(struct estimate *estimate, int dir_fd, const char *name)
{
    char path[PATH_BYTES], text[256], *end;
    cleanup_close int fd = -EBADF;
    unsigned argument;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "%.20s/syscall", name);
    fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return;
    text[n] = '\0';
    argument = list_argument(strtol(text, &end, 10));
    if (end == text || argument == 0)
        return;
    if (argument == 2)
        (void)strtoull(end, &end, 16);
    estimate->bytes += (uint64_t)(uint32_t)strtoull(end, NULL, 16) * POLL_BYTES;
}

static void child_look(void *context, const char *child)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PROCESSES_BYTES_MAX);
    struct estimate *estimate = context;
    struct machine *machine = estimate->machine;
    char *save = NULL;

    if (cgroup_read_processes(machine->host->cgroups, machine->id, child, &pids) < 0 ||
        pids.len == 0)
        return;
    for (char *line = strtok_r(pids.data, "\n", &save); line && estimate->looks < LOOKS_MAX;
         line = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);

        entries_look(estimate, pid, "task", thread_look);
        entries_look(estimate, pid, "fd", descriptor_look);
    }
}

uint64_t kernel_memory_of_processes(struct machine *machine, bool counts_locks)
{
    struct estimate estimate = { .machine = machine, .counts_locks = counts_locks };

    (void)cgroup_list_children(machine->host->cgroups, machine->id, child_look, &estimate);
    return estimate.bytes;
}

/* A line of the file is "NAME OBJECTS ALL BYTES ...". */
bool kernel_memory_has_locks(uint64_t bytes)
{
    static const char name[] = "file_lock_cache ";
    FILE *file = fopen("/proc/slabinfo", "re");
    bool is_found = false;
    uint64_t held = 0;
    char line[256];

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        is_found = strncmp(line, name, sizeof(name) - 1) == 0;
        if (is_found)
            held = strtoull(line + sizeof(name) - 1, NULL, 10) * LOCK_BYTES;
    }
    if (file)
        (void)fclose(file);
    return !is_found || held >= bytes;
}
