/* Zygotes: see kernel/cgroup/cgroup.h for why, wire/zygote.h for how. Kept and used again;
 * thread-safe. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cgroup_root;
struct err;
struct zygote;
struct zygotes;

struct zygote_start {
    uint64_t namespaces;
    uid_t owner;             /* of the new user namespace */
    const char *const *args; /* NULL-terminated */
    int cgroup_fd;
    int stream_fd;
};

/* init_fd is the program that zygotes run, and start. */
int zygotes_open(struct cgroup_root *cgroups, int init_fd, struct zygotes **ret, struct err *err);

/* Ends and removes all zygotes, which must have been returned. Accepts NULL. */
void zygotes_close(struct zygotes *zygotes);

/* A free zygote, or a new one. */
int zygote_take(struct zygotes *zygotes, struct zygote **ret, struct err *err);

/* The name of its control groups. */
const char *zygote_name(const struct zygote *zygote);

/* Starts a process in the zygote's groups; it is this process's child. */
int zygote_start_process(struct zygote *zygote, const struct zygote_start *start, pid_t *ret_pid,
                         int *ret_pidfd, struct err *err);

/* Whoever sat there has ended. Accepts NULL. */
void zygote_return(struct zygotes *zygotes, struct zygote *zygote);

/* Whoever sits there stays in its groups; the zygote itself ends. */
void zygote_release(struct zygote *zygote);
