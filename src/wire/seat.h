/* Between the daemon and a seat: an inhabitant of v1 control groups that starts others in them.
 *
 * Each request and each reply is one packet on a SOCK_SEQPACKET socket. A request is a struct
 * seat_request followed by the arguments of the program, each with its NUL; with it go two
 * descriptors, the cgroup2 directory to be born in and what the program will have as descriptor 3.
 * The reply is an int, the pid or -errno; a pidfd goes with a pid. The new process is the daemon's
 * child, not the seat's. Both ends are one build, so numbers are in the machine's own order. */
#pragma once

#include <stdint.h>

enum { SEAT_PACKET_MAX = 2048, SEAT_ARGS_MAX = 48 };

struct seat_request {
    uint64_t namespaces; /* CLONE_NEW* */
    uint32_t arg_count;
};
