/* Between the daemon and a zygote: a process that starts others where it is itself.
 *
 * Each request and each reply is one packet on a SOCK_SEQPACKET socket. A request is a struct
 * zygote_request, followed by the arguments of the program to run, each with its NUL. With no
 * arguments there is no exec: the new process goes on as holt-init. With the request go two
 * descriptors: the cgroup2 directory to be born in, and what the new process has as descriptor 3.
 * The reply is an int, the pid or -errno; a pidfd goes with a pid. The new process is the daemon's
 * child, not the zygote's. Both ends are one build, so numbers are in the machine's own order. */
#pragma once

#include <stdint.h>

enum { ZYGOTE_PACKET_MAX = 2048, ZYGOTE_ARGS_MAX = 48 };

struct zygote_request {
    uint64_t namespaces; /* CLONE_NEW* */
    uint32_t owner;      /* uid that the new user namespace belongs to, see guest/zygote.c */
    uint32_t arg_count;
};
