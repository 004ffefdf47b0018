/* What programs see of the sandbox's memory and CPUs: its limits, not the host's.
 *
 * Programs read /proc, /sys/fs/cgroup, sysinfo(2) and sched_getaffinity(2) to choose the size of a
 * heap or the number of threads. The files are plain ones of a tmpfs, mounted over the kernel's; so
 * none can hang. holt-init writes them when a limit changes, and renews what changes by itself
 * (memory in use, load) when a process is started and after such a file was read. Both system calls
 * are answered by holt-init, see guest/net/netlink.h. The kernel itself counts the time since the
 * sandbox was created, in a time namespace. Everything here is best effort: what fails shows the
 * host's values. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guest/watch.h"
#include "wire/message.h"

struct seccomp_notif;

/* Files that are written again and again. */
enum resource_file {
    RESOURCE_MEMINFO,
    RESOURCE_LOADAVG,
    RESOURCE_STAT,
    RESOURCE_MEMORY_CURRENT,
    RESOURCE_MEMORY_STAT,
    RESOURCE_MEMORY_EVENTS,
    RESOURCE_PIDS_CURRENT,
    RESOURCE_FILES
};

struct resources {
    struct watch watch; /* an inotify instance: a file was read */
    int dir_fd;         /* root of the tmpfs */
    int files[RESOURCE_FILES];
    int counters[SIZE_COUNTERS];   /* of the control group, or negative */
    int meminfo_fd, cpuinfo_fd;    /* the kernel's own */
    struct message_size limits;    /* in force */
    uint32_t cpus;                 /* of the host, that the sandbox may use */
    bool is_cpu_covered;           /* files of /proc and /sys that tell of CPUs */
    bool is_begun;                 /* the sandbox was created */
    int64_t begun_ms;              /* then; of clock_boot_ms */
    uint64_t renewed_ms, usage_us; /* when the files were written last; CPU time until then */
    uint64_t oom_kills_before;     /* of the control group, which other sandboxes have used */
    double load[3];                /* CPUs in use, over 1, 5 and 15 minutes */
};

/* Creates the files in the tmpfs at dir_fd, which stays open, and mounts them; has_sysfs says
 * whether /sys is the kernel's. Returns 0 or -errno. */
int resources_make(int dir_fd, bool has_sysfs, struct resources *ret);

/* Takes new limits, and the counters in fds if the message has some. */
void resources_set(struct resources *resources, const struct message_size *size, const int *fds);

/* Renews the files, unless that was done a moment ago. */
void resources_renew(struct resources *resources);

/* Handles events of the watch. */
void resources_ready(struct resources *resources);

/* Answers sysinfo or sched_getaffinity of a process, which listener_fd has announced. Returns the
 * result of the call or -errno; *ret_continue says whether the kernel itself is to answer. */
long resources_answer(struct resources *resources, const struct seccomp_notif *request,
                      int listener_fd, bool *ret_continue);
