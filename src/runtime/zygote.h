/* Seats: see kernel/cgroup/cgroup.h for why, wire/zygote.h for how. Kept and used again;
 * thread-safe. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cgroup_root;
struct err;
struct seat;
struct seats;

struct seat_start {
    uint64_t namespaces;
    uid_t owner;             /* of the new user namespace */
    const char *const *args; /* NULL-terminated */
    int cgroup_fd;
    int stream_fd;
};

/* init_fd is the program that seats run, and start. */
int seats_open(struct cgroup_root *cgroups, int init_fd, struct seats **ret, struct err *err);

/* Ends and removes all seats, which must have been returned. Accepts NULL. */
void seats_close(struct seats *seats);

/* A free seat, or a new one. */
int seat_take(struct seats *seats, struct seat **ret, struct err *err);

/* The name of its control groups. */
const char *seat_name(const struct seat *seat);

/* Starts a process in the seat's groups; it is this process's child. */
int seat_start_process(struct seat *seat, const struct seat_start *start, pid_t *ret_pid,
                       int *ret_pidfd, struct err *err);

/* Whoever sat there has ended. Accepts NULL. */
void seat_return(struct seats *seats, struct seat *seat);

/* Whoever sits there stays in its groups; the seat itself ends. */
void seat_release(struct seat *seat);
