/* The protocol between the daemon and a zygote: a process that starts others in its own
 * environment.
 *
 * Each request and each reply is one packet on a SOCK_SEQPACKET socket. A request is a struct
 * zygote_request, followed by the arguments of the program to execute, each with its NUL. Without
 * arguments there is no exec: the new process continues as holt-init. Two descriptors accompany
 * the request: the cgroup2 directory to start in, and descriptor 3 of the new process. The reply
 * is an int, the pid or -errno; a pidfd accompanies a pid. The new process is a child of the
 * daemon, not of the zygote. Both ends are from the same build, so numbers are in native byte
 * order. */
#pragma once

#include <stdint.h>

enum { ZYGOTE_PACKET_MAX = 2048, ZYGOTE_ARGS_MAX = 48 };

struct zygote_request {
    uint64_t namespaces; /* CLONE_NEW* */
    uint32_t owner;      /* uid that owns the new user namespace, see guest/zygote.c */
    uint32_t arg_count;
};
