/* The seccomp filter of every process in a sandbox.
 *
 * It is compiled here rather than by libseccomp, because on installation the kernel runs the
 * filter once for every system call that it knows: the same policy took 120-190 us per process in
 * libseccomp's layout and about 45 us as a search tree over ranges, and every exec pays that. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

enum { SECCOMP_PROGRAM_MAX = 1024 };

/* Upper half of the family in holt-init's own calls for netlink sockets: see guest/net/netlink.h.
 */
#define SECCOMP_NETLINK_KEY 0x484f4c54

/* Fourth argument of holt-init's own calls of sysinfo and sched_getaffinity: see
 * guest/resources.h. A process that uses it gets the kernel's answer. */
#define SECCOMP_OWN_KEY 0x484f4c54

struct seccomp_program {
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    size_t len; /* instructions */
};

/* Builds the policy of Docker's default profile without extra capabilities, minus io_uring and
 * kernel keys: calls that create namespaces, mounts or modules, or reach kernel internals, fail
 * with EPERM; calls newer than this table and all foreign ABIs fail with ENOSYS. Packet and raw
 * sockets are refused, because no memory limit covers their queues; filters of programs, because
 * the machine has little memory for them. So a process installs this filter once. */
void seccomp_build(struct seccomp_program *ret);

/* Returns 0 if a sandbox can have a filter that asks holt-init, as netlink sockets need, or -errno.
 * Forks: only for a process with one thread. */
int seccomp_probe_listener(void);
