// SPDX-License-Identifier: Apache-2.0
/* The kernel names a file of FUSE by the node that its server knows, without asking the server:
 * that is what holt-view is asked about. Inode numbers would not do: those of layers on btrfs are
 * not unique. */
#include "host/view/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/beside.h"
#include "host/machine/machine_internal.h"
#include "host/view/view.h"

enum {
    PIDS_BYTES_MAX = 1 << 20,
    PATH_BYTES = 96,
    FDINFO_BYTES = 4096,
    FILEID_INO64_GEN = 0x81, /* <linux/exportfs.h>: node and generation */
    FILEID_INO64_GEN_BYTES = 12,
    MAPPED_MAX = 65536,
    END_MS = 2000,
};

struct search {
    struct machine *machine;
    const char *group; /* that is searched: of the machine, or of the second one of its sandbox */
    bool ends;
    struct holders *result;
    struct view_held held[VIEW_HELD_MAX]; /* of one process */
    int fds[VIEW_HELD_MAX];               /* of these files, which keep the nodes alive */
    size_t count;
    bool is_holder;   /* the process holds too much */
    uint64_t *mapped; /* nodes that are mapped only */
    size_t mapped_count;
    struct err *err;
};

/* Returns the node of a regular file of FUSE, 0 for anything else. Asks no server. */
static uint64_t node_of(int fd)
{
    union {
        struct file_handle handle;
        char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };
    uint32_t words[2];
    struct statx st;
    int mount;

    if (name_to_handle_at(fd, "", &file.handle, &mount, AT_EMPTY_PATH) < 0 ||
        file.handle.handle_type != FILEID_INO64_GEN ||
        file.handle.handle_bytes != FILEID_INO64_GEN_BYTES)
        return 0;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0 ||
        !S_ISREG(st.stx_mode))
        return 0;
    memcpy(words, file.handle.f_handle, sizeof(words));
    return (uint64_t)words[0] << 32 | words[1];
}

static void held_flush(struct search *search)
{
    int r = search->count == 0
                ? 0
                : view_judge_held(search->machine->view, search->held, search->count, search->err);

    for (size_t i = 0; i < search->count; i++) {
        const struct view_held *held = &search->held[i];

        (void)close(search->fds[i]);
        if (r < 0 || !held->has_too_much)
            continue;
        search->is_holder = true;
        if (held->is_open || search->mapped_count == MAPPED_MAX)
            continue;
        search->mapped = xreallocarray(search->mapped, search->mapped_count + 1, sizeof(uint64_t));
        search->mapped[search->mapped_count++] = held->node;
    }
    search->count = 0;
}

/* Takes the descriptor. */
static void held_add(struct search *search, int fd, bool writes)
{
    const uint64_t node = node_of(fd);

    for (size_t i = 0; i < search->count && node != 0; i++)
        if (search->held[i].node == node) {
            search->held[i].writes |= writes;
            (void)close(fd);
            return;
        }
    if (node == 0) {
        (void)close(fd);
        return;
    }
    search->held[search->count] = (struct view_held){ .node = node, .writes = writes };
    search->fds[search->count++] = fd;
    if (search->count == VIEW_HELD_MAX)
        held_flush(search);
}

/* --- one process ------------------------------------------------------------------------------ */

/* Returns the flags that a descriptor was opened with. */
static int flags_read(pid_t pid, const char *fd)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FDINFO_BYTES);
    char path[PATH_BYTES];
    const char *flags;

    (void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
    (void)file_read_at(AT_FDCWD, path, &text);
    flags = text.data ? strstr(text.data, "flags:") : NULL;
    return flags ? (int)strtol(flags + strlen("flags:"), NULL, 8) : O_RDWR;
}

static void descriptors_search(struct search *search, pid_t pid)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        int fd = *entry->d_name == '.' ? -1 : openat(dirfd(dir), entry->d_name, O_PATH | O_CLOEXEC);
        int flags = fd < 0 ? 0 : flags_read(pid, entry->d_name);

        if (fd >= 0 && flags & O_PATH)
            (void)close(fd);
        else if (fd >= 0)
            held_add(search, fd, (flags & O_ACCMODE) != O_RDONLY);
    }
    if (dir)
        (void)closedir(dir);
}

/* A line is START-END PERMISSIONS OFFSET DEVICE INODE PATH; anonymous memory has inode 0. */
static void mapping_add(struct search *search, pid_t pid, const char *line)
{
    unsigned long long start, end, inode;
    char permissions[8], path[PATH_BYTES];
    int fd;

    /* NOLINTNEXTLINE(cert-err34-c): the numbers are the kernel's */
    if (sscanf(line, "%llx-%llx %7s %*s %*s %llu", &start, &end, permissions, &inode) != 4 ||
        inode == 0)
        return;
    (void)snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, start, end);
    fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        held_add(search, fd, permissions[1] == 'w' && permissions[3] == 's');
}

static void mappings_search(struct search *search, pid_t pid)
{
    char path[PATH_BYTES], *line = NULL;
    size_t size = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    file = fopen(path, "re");
    while (file && getline(&line, &size, file) >= 0)
        mapping_add(search, pid, line);
    free(line);
    if (file)
        (void)fclose(file);
}

static void process_end(struct search *search, int pidfd)
{
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0)
        return;
    search->result->ended++;
    (void)poll(&ended, 1, END_MS);
}

static void process_search(struct search *search, pid_t pid)
{
    cleanup_close int pidfd = pidfd_open(pid, 0);

    if (pidfd < 0)
        return;
    search->is_holder = false;
    mappings_search(search, pid);
    if (search->ends)
        descriptors_search(search, pid);
    held_flush(search);
    if (search->ends && search->is_holder)
        process_end(search, pidfd);
}

/* --- all processes ---------------------------------------------------------------------------- */

static void group_search(void *context, const char *child)
{
    struct search *search = context;
    struct machine *machine = search->machine;
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PIDS_BYTES_MAX);
    char *save = NULL;

    if (cgroup_read_processes(machine->host->cgroups, search->group, child, &pids) < 0 ||
        !pids.data)
        return;
    for (char *line = strtok_r(pids.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const pid_t pid = (pid_t)strtol(line, NULL, 10);

        if (pid > 0)
            process_search(search, pid);
    }
}

static int node_compare(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

/* Several processes may have mapped one file. */
static uint32_t nodes_count(struct search *search)
{
    uint32_t count = 0;

    if (search->mapped_count > 0)
        qsort(search->mapped, search->mapped_count, sizeof(*search->mapped), node_compare);
    for (size_t i = 0; i < search->mapped_count; i++)
        count += i == 0 || search->mapped[i] != search->mapped[i - 1];
    return count;
}

/* A process may give what it holds to another one, or fork, while it is killed: so processes are
 * searched until none is found. */
enum { PASSES_MAX = 8 };

/* A sandbox need not have a second machine. */
static int groups_search(struct search *search)
{
    struct machine *machine = search->machine;
    char second[RUNTIME_ID_MAX];
    int r;

    machine_beside_id(machine->id, second);
    search->group = second;
    (void)cgroup_list_children(machine->host->cgroups, second, group_search, search);
    search->group = machine->id;
    r = cgroup_list_children(machine->host->cgroups, machine->id, group_search, search);
    search->group = NULL;
    return r;
}

int machine_find_holders(struct machine *machine, bool ends, struct holders *ret, struct err *err)
{
    cleanup_free struct search *search = xcalloc(1, sizeof(*search));
    uint32_t ended = 0;
    int r = 0;

    *ret = (struct holders){ 0 };
    *search = (struct search){ .machine = machine, .ends = ends, .result = ret, .err = err };
    for (int pass = 0; r == 0 && pass < PASSES_MAX; pass++) {
        r = groups_search(search);
        if (pass == 0)
            ret->mapped = nodes_count(search);
        if (ret->ended == ended)
            break;
        ended = ret->ended;
    }
    free(search->mapped);
    return r < 0 ? err_sys(err, r, "list the processes of '%s'", machine->id) : 0;
}
