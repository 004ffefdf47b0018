// SPDX-License-Identifier: Apache-2.0
#include "guest/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <linux/sysinfo.h> /* that of a libc is larger */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "guest/resources_text.h"
#include "kernel/mount.h"
#include "kernel/seccomp.h"

#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define CGROUP "sys/fs/cgroup/"
#define ONLINE "sys/devices/system/cpu/online"

enum {
    NEW_TIME = 0x80,    /* CLONE_NEWTIME */
    RENEW_MS = 20,      /* a program that reads all the time costs no more than this */
    TEXT_BYTES = 16384, /* /proc/stat of 300 CPUs */
    CHUNK_BYTES = 4096,
    AFFINITY_BYTES = 1024,
    CPU_PERIOD_US = 100000,
    LOAD_SCALE = 16, /* bits of the fraction in struct sysinfo */
};

static const char *const paths[RESOURCE_FILES] = {
    [RESOURCE_MEMINFO] = "meminfo",
    [RESOURCE_LOADAVG] = "loadavg",
    [RESOURCE_STAT] = "stat",
    [RESOURCE_MEMORY_CURRENT] = CGROUP "memory.current",
    [RESOURCE_MEMORY_STAT] = CGROUP "memory.stat",
    [RESOURCE_MEMORY_EVENTS] = CGROUP "memory.events",
    [RESOURCE_PIDS_CURRENT] = CGROUP "pids.current",
};

static int files_make(struct resources *resources)
{
    static const char *const directories[] = { "sys",
                                               "sys/fs",
                                               "sys/fs/cgroup",
                                               "sys/devices",
                                               "sys/devices/system",
                                               "sys/devices/system/cpu" };
    static const struct {
        const char *path, *text;
    } constant[] = {
        { CGROUP "cgroup.controllers", "cpu memory pids\n" },
        { CGROUP "cgroup.type", "domain\n" },
        { CGROUP "memory.high", "max\n" },
        { CGROUP "memory.swap.max", "0\n" },
        { CGROUP "memory.swap.current", "0\n" },
        { CGROUP "cpu.weight", "100\n" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
        if (mkdirat(resources->dir_fd, directories[i], 0555) < 0)
            return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(constant); i++) {
        int r = file_create_at(resources->dir_fd, constant[i].path, 0444, constant[i].text);

        if (r < 0)
            return r;
    }
    for (int i = 0; i < RESOURCE_FILES; i++) {
        resources->files[i] =
            openat(resources->dir_fd, paths[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        if (resources->files[i] < 0)
            return -errno;
    }
    return 0;
}

/* Mounts a file or directory of the tmpfs over a path that exists. */
static int cover(const struct resources *resources, const char *path, const char *target)
{
    cleanup_close int mount_fd = mount_clone(resources->dir_fd, path, false);
    cleanup_close int mount_point = open(target, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r = mount_fd < 0 ? mount_fd : mount_set_attributes(mount_fd, READ_ONLY, false);

    if (r < 0)
        return r;
    return mount_point < 0 ? -errno : mount_attach(mount_fd, mount_point);
}

/* The path is that of the file which covers it by now. */
static void watch_reads(struct resources *resources, const char *path)
{
    if (resources->watch.fd >= 0)
        (void)inotify_add_watch(resources->watch.fd, path, IN_OPEN | IN_ACCESS);
}

static uint32_t cpus_count(void)
{
    unsigned char mask[AFFINITY_BYTES];
    long n = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask, SECCOMP_OWN_KEY);
    uint32_t count = 0;

    for (long i = 0; i < n; i++)
        count += (uint32_t)__builtin_popcount(mask[i]);
    return count;
}

int resources_make(int dir_fd, bool has_sysfs, struct resources *ret)
{
    int r;

    *ret = (struct resources){
        .watch = { .kind = WATCH_RESOURCES, .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) },
        .dir_fd = dir_fd,
        .meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC),
        .cpuinfo_fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC),
        .cpus = cpus_count(),
    };
    for (int i = 0; i < SIZE_COUNTERS; i++)
        ret->counters[i] = -EBADF;
    (void)unshare(NEW_TIME); /* for processes from now on; without it they see the host's time */
    r = files_make(ret);
    if (r == 0)
        r = cover(ret, has_sysfs ? "sys/fs" : "sys", has_sysfs ? "/sys/fs" : "/sys");
    if (r == 0)
        r = cover(ret, "meminfo", "/proc/meminfo");
    if (r == 0)
        r = cover(ret, "loadavg", "/proc/loadavg");
    watch_reads(ret, "/proc/meminfo");
    watch_reads(ret, "/proc/loadavg");
    watch_reads(ret, "/" CGROUP);
    return r;
}

/* Counts the time since now for processes, none of which runs yet. The file belongs to nobody while
 * this process is not dumpable. */
static void time_begin(struct resources *resources)
{
    struct timespec now;
    char text[64];

    if (resources->is_begun)
        return;
    resources->is_begun = true;
    resources->begun_ms = clock_boot_ms();
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    (void)snprintf(text, sizeof(text), "boottime -%lld %ld",
                   (long long)now.tv_sec + (now.tv_nsec > 0),
                   now.tv_nsec > 0 ? (long)NS_PER_S - now.tv_nsec : 0);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    (void)file_write_at(AT_FDCWD, "/proc/self/timens_offsets", text);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Returns the number of CPUs that processes see; 0: those of the host. */
static uint32_t cpus_shown(const struct resources *resources)
{
    uint32_t count = (resources->limits.cpu_millis + 999) / 1000;

    return count < resources->cpus ? count : 0;
}

static void text_write(int fd, const char *text)
{
    size_t len = strlen(text);
    struct stat info;

    if (pwrite(fd, text, len, 0) == (ssize_t)len && fstat(fd, &info) == 0 &&
        info.st_size > (off_t)len)
        (void)ftruncate(fd, (off_t)len);
}

/* Replaces the text of a file that rarely changes. */
static void limit_write(const struct resources *resources, const char *path, const char *text)
{
    cleanup_close int fd =
        openat(resources->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);

    if (fd >= 0)
        (void)write_all(fd, text, strlen(text));
}

static void number_write(const struct resources *resources, const char *path, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), value ? "%llu\n" : "max\n", (unsigned long long)value);
    limit_write(resources, path, text);
}

/* Copies what the kernel tells of the first CPUs: blocks of lines that end with an empty one. */
static void cpuinfo_write(const struct resources *resources, uint32_t count)
{
    cleanup_close int fd =
        openat(resources->dir_fd, "cpuinfo", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    char text[CHUNK_BYTES], last = '\n';
    off_t offset = 0;
    ssize_t n, used;

    while (fd >= 0 && count > 0 &&
           (n = pread(resources->cpuinfo_fd, text, sizeof(text), offset)) > 0) {
        for (used = 0; used < n && count > 0; used++) {
            count -= text[used] == '\n' && last == '\n' && offset + used > 0;
            last = text[used];
        }
        if (write_all(fd, text, (size_t)used) < 0)
            return;
        offset += n;
    }
}

static void online_write(const struct resources *resources, uint32_t count)
{
    char text[32];

    (void)snprintf(text, sizeof(text), count > 1 ? "0-%u\n" : "0\n", count - 1);
    limit_write(resources, ONLINE, text);
}

/* The kernel's own files are shown until there is a limit; then these, for good. */
static void cpus_write(struct resources *resources)
{
    uint32_t shown = cpus_shown(resources), count = shown ? shown : resources->cpus;

    online_write(resources, count);
    if (!shown && !resources->is_cpu_covered)
        return;
    cpuinfo_write(resources, count);
    if (resources->is_cpu_covered)
        return;
    resources->is_cpu_covered = true;
    (void)cover(resources, "cpuinfo", "/proc/cpuinfo");
    (void)cover(resources, "stat", "/proc/stat");
    (void)cover(resources, ONLINE, "/" ONLINE);
    watch_reads(resources, "/proc/stat");
}

static uint64_t counter_number(const struct resources *resources, enum size_counter which)
{
    char text[32];
    ssize_t n = pread(resources->counters[which], text, sizeof(text) - 1, 0);

    text[n < 0 ? 0 : n] = '\0';
    return resources_number(text);
}

/* Returns how many processes the kernel has killed in the control group for its memory limit. */
static uint64_t oom_kills_count(const struct resources *resources)
{
    char text[256];
    ssize_t n = pread(resources->counters[SIZE_MEMORY_EVENTS], text, sizeof(text) - 1, 0);

    text[n < 0 ? 0 : n] = '\0';
    return resources_read_oom_kills(text);
}

static void state_read(struct resources *resources, struct resource_state *ret)
{
    static char text[TEXT_BYTES];
    ssize_t n = pread(resources->counters[SIZE_MEMORY_STAT], text, sizeof(text) - 1, 0);

    *ret = (struct resource_state){
        .memory_limit = resources->limits.memory_bytes,
        .memory_used = counter_number(resources, SIZE_MEMORY_CURRENT),
        .processes = counter_number(resources, SIZE_PIDS_CURRENT),
        .cpus = cpus_shown(resources) ? cpus_shown(resources) : resources->cpus,
        .up_ms = resources->is_begun ? (uint64_t)(clock_boot_ms() - resources->begun_ms) : 0,
        .begun_s = clock_wall_ms() / 1000,
        .oom_kills = oom_kills_count(resources) - resources->oom_kills_before,
    };
    ret->begun_s -= ret->up_ms / 1000;
    text[n < 0 ? 0 : n] = '\0';
    resources_read_memory(text, ret);
    n = pread(resources->counters[SIZE_CPU_STAT], text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    resources_read_cpu(text, ret);
}

static void renew(struct resources *resources)
{
    static char text[TEXT_BYTES];
    struct resource_state state;
    uint64_t now_ms = clock_ms();
    ssize_t n;

    state_read(resources, &state);
    resources_load(resources->load, now_ms - resources->renewed_ms,
                   state.usage_us - resources->usage_us);
    memcpy(state.load, resources->load, sizeof(state.load));
    resources->renewed_ms = now_ms;
    resources->usage_us = state.usage_us;
    n = state.memory_limit ? 0 : pread(resources->meminfo_fd, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    if (n <= 0)
        resources_meminfo(&state, text, sizeof(text));
    text_write(resources->files[RESOURCE_MEMINFO], text);
    resources_loadavg(&state, text, sizeof(text));
    text_write(resources->files[RESOURCE_LOADAVG], text);
    resources_memory_stat(&state, text, sizeof(text));
    text_write(resources->files[RESOURCE_MEMORY_STAT], text);
    resources_memory_events(&state, text, sizeof(text));
    text_write(resources->files[RESOURCE_MEMORY_EVENTS], text);
    (void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)state.memory_used);
    text_write(resources->files[RESOURCE_MEMORY_CURRENT], text);
    (void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)state.processes);
    text_write(resources->files[RESOURCE_PIDS_CURRENT], text);
    if (!resources->is_cpu_covered)
        return;
    resources_stat(&state, text, sizeof(text));
    text_write(resources->files[RESOURCE_STAT], text);
}

void resources_set(struct resources *resources, const struct message_size *size, const int *fds)
{
    char text[48];
    size_t next = 0;

    if (resources->dir_fd < 0)
        return;
    for (int i = 0; i < SIZE_COUNTERS; i++) {
        if (!(size->counters & 1U << i))
            continue;
        (void)fd_close(resources->counters[i]);
        resources->counters[i] = fcntl(fds[next++], F_DUPFD_CLOEXEC, 3);
    }
    resources->limits = *size;
    if (size->counters)
        resources->oom_kills_before = oom_kills_count(resources);
    else
        time_begin(resources);
    number_write(resources, CGROUP "memory.max", size->memory_bytes);
    number_write(resources, CGROUP "pids.max", size->pids);
    if (size->cpu_millis)
        (void)snprintf(text, sizeof(text), "%llu %d\n",
                       (unsigned long long)size->cpu_millis * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
    limit_write(resources, CGROUP "cpu.max", size->cpu_millis ? text : "max 100000\n");
    cpus_write(resources);
    renew(resources);
}

void resources_renew(struct resources *resources)
{
    if (resources->is_begun && clock_ms() - resources->renewed_ms >= RENEW_MS)
        renew(resources);
}

void resources_ready(struct resources *resources)
{
    char events[4096];

    /* Once: programs that read all the time would keep this process here. */
    if (read(resources->watch.fd, events, sizeof(events)) > 0)
        resources_renew(resources);
}

/* Writes a result to the memory of the process, unless its call was interrupted: then the pid may
 * be another program's. */
static long result_give(const struct seccomp_notif *request, unsigned argument, void *data,
                        size_t len, int listener_fd)
{
    const struct iovec from = { .iov_base = data, .iov_len = len };
    const struct iovec to = { .iov_base = (void *)(uintptr_t)request->data.args[argument],
                              .iov_len = len };

    long n;

    if (syscall(SYS_ioctl, listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &request->id) < 0)
        return -ESRCH;
    n = syscall(SYS_process_vm_writev, request->pid, &from, 1, &to, 1, 0);
    if (n < 0)
        return -errno;
    return n == (long)len ? 0 : -EFAULT;
}

/* Leaves the first CPUs of those that the process may run on. */
static long affinity_answer(const struct resources *resources, const struct seccomp_notif *request,
                            int listener_fd)
{
    static unsigned char mask[AFFINITY_BYTES];
    uint32_t left = cpus_shown(resources);
    uint32_t pid = (uint32_t)request->data.args[0], wanted = (uint32_t)request->data.args[1];
    size_t size = wanted < sizeof(mask) ? wanted : sizeof(mask);
    long r,
        n = syscall(SYS_sched_getaffinity, pid ? pid : request->pid, size, mask, SECCOMP_OWN_KEY);

    if (n < 0)
        return -errno;
    for (long i = 0; i < n * 8; i++) {
        if (!(mask[i / 8] & 1 << i % 8))
            continue;
        if (left == 0)
            mask[i / 8] &= (unsigned char)~(1U << i % 8);
        else
            left--;
    }
    r = result_give(request, 2, mask, (size_t)n, listener_fd);
    return r < 0 ? r : n;
}

static long sysinfo_answer(struct resources *resources, const struct seccomp_notif *request,
                           int listener_fd)
{
    struct resource_state state;
    struct sysinfo info;

    if (syscall(SYS_sysinfo, &info, 0, 0, SECCOMP_OWN_KEY) < 0)
        return -errno;
    state_read(resources, &state);
    info.uptime = (long)(state.up_ms / 1000);
    for (int i = 0; i < 3; i++)
        info.loads[i] = (unsigned long)(resources->load[i] * (1 << LOAD_SCALE));
    info.mem_unit = 1;
    info.totalram = state.memory_limit;
    info.freeram =
        state.memory_used < state.memory_limit ? state.memory_limit - state.memory_used : 0;
    info.sharedram = state.shmem;
    info.bufferram = info.totalswap = info.freeswap = info.totalhigh = info.freehigh = 0;
    info.procs = (unsigned short)state.processes;
    return result_give(request, 0, &info, sizeof(info), listener_fd);
}

long resources_answer(struct resources *resources, const struct seccomp_notif *request,
                      int listener_fd, bool *ret_continue)
{
    bool is_affinity = request->data.nr == SYS_sched_getaffinity;
    long r = -EPERM;

    *ret_continue = false;
    if (is_affinity && cpus_shown(resources))
        r = affinity_answer(resources, request, listener_fd);
    else if (!is_affinity && resources->limits.memory_bytes)
        r = sysinfo_answer(resources, request, listener_fd);
    /* The kernel does not let this process write to some programs, such as unreadable ones. */
    *ret_continue = r == -EPERM || r == -EACCES;
    return r;
}
