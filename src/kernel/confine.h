/* Gives up the privileges of a helper program, before it reads what others wrote. The functions
 * return 0 or -errno; the program must end after a failure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sanitizers map terabytes, and make system calls of their own for each thread. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_IS_SANITIZED true
#else
#define CONFINE_IS_SANITIZED false
#endif

enum { CONFINE_NOBODY = 65534 };

/* What a program keeps. */
struct confine_privileges {
    uid_t uid; /* of a program that is started as root; another stays who it is */
    gid_t gid;
    uint64_t capabilities;
    size_t memory_max; /* bytes of data, unless it is sanitized; 0: no limit */
};

/* Gives up all other privileges of this process, which has one thread: users, groups, capabilities,
 * those that an exec would give, core dumps, and being traced by others of its user. */
int confine_privileges(const struct confine_privileges *kept);

/* What the arguments of a call decide. */
enum confine_group {
    CONFINE_INTERNET = 1 << 0, /* sockets, of IPv4 and IPv6 only */
    CONFINE_THREADS = 1 << 1,  /* clone, for threads only */
};

/* Refuses all system calls but a list and groups with EPERM, and kills the process at a call of
 * another architecture. A list in the order of use is faster. */
int confine_calls_allow(const int *calls, size_t count, unsigned groups);

/* Refuses a list of system calls with EPERM, and kills the process at a call of another
 * architecture. */
int confine_calls_refuse(const int *calls, size_t count);
