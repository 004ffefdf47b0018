/* The system call filter of every process in a sandbox.
 *
 * It is compiled here and not by libseccomp because the kernel, when a filter is installed, walks
 * it once for every system call it knows: the same policy took 120-190 us a process as libseccomp
 * lays it out and about 45 us as a search tree over ranges, and every exec pays that.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

enum { SECCOMP_PROGRAM_MAX = 1024 };

struct seccomp_program {
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    size_t len; /* instructions */
};

/* What Docker's default profile allows without extra capabilities, less io_uring and kernel keys:
 * calls that make namespaces, mounts or modules, or reach the kernel's insides, fail with EPERM;
 * calls newer than this table do not exist (ENOSYS), and neither does any foreign ABI. */
void seccomp_build(struct seccomp_program *ret);
