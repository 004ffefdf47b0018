/* Zygotes: kernel/cgroup/cgroup.h explains why they exist, wire/zygote.h their protocol. They are
 * reused; all functions are thread-safe. */
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

/* Opens the set of zygotes; init_fd is the program that they run and start. */
int zygotes_open(struct cgroup_root *cgroups, int init_fd, struct zygotes **ret, struct err *err);

/* Ends and removes all zygotes, which must have been returned. Accepts NULL. */
void zygotes_close(struct zygotes *zygotes);

/* Returns a free zygote, or a new one. */
int zygote_take(struct zygotes *zygotes, struct zygote **ret, struct err *err);

/* Returns the name of its cgroups. */
const char *zygote_name(const struct zygote *zygote);

/* Starts a process in the zygote's cgroups, as a child of this process. */
int zygote_start_process(struct zygote *zygote, const struct zygote_start *start, pid_t *ret_pid,
                         int *ret_pidfd, struct err *err);

/* Makes the zygote free again, after its guest has ended. Accepts NULL. */
void zygote_return(struct zygotes *zygotes, struct zygote *zygote);

/* Ends the zygote; its guest stays in its cgroups. */
void zygote_release(struct zygote *zygote);
