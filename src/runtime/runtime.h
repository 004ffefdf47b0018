/* Runtimes: how holt-init comes to run behind a wall, with a byte stream to it.
 *
 * A backend is one file, runtime_<name>.c, exporting one const table. Everything that happens in a
 * sandbox goes through holt-init, so a backend only says how to start it; the front does the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_root;
struct err;
struct runtime;
struct zygote;

enum { RUNTIME_ID_MAX = 32, RUNTIME_IDS_PER_SANDBOX = 65536 };

struct runtime_ops {
    const char *name;        /* as written in the configuration */
    bool builds_root;        /* holt-init makes /proc, /dev and /sys itself */
    uint64_t namespaces;     /* CLONE_NEW* that holt-init, or what starts it, is born in */
    const char *const *args; /* NULL-terminated; what the zygote is to run, see wire/zygote.h */
    const char *go;          /* bytes the program waits for before its first frame */

    unsigned own_processes; /* that live as long as the sandbox, holt-init among them */

    /* Whether this machine can: 0, or ERR_UNSUPPORTED with cause and remedy. */
    int (*probe)(struct err *err);
};

extern const struct runtime_ops runtime_native, runtime_bwrap;

/* A running holt-init. Plain data; the owner calls runtime_guest_done. */
struct runtime_guest {
    const struct runtime_ops *ops;
    struct runtime *runtime;
    char id[RUNTIME_ID_MAX];           /* also the name of its control group */
    struct zygote *zygote;             /* what started it; NULL: adopted */
    char limits_group[RUNTIME_ID_MAX]; /* the control group that has its limits and accounts */
    uid_t first_uid;                   /* of the 65,536 that are its own */
    int pidfd;
    int stream_fd; /* frames; the caller may take it (TAKE_FD) */
    int userns_fd; /* its user namespace, for idmapped mounts */
};

/* Loads holt-init from path into sealed memory and compiles the filter. */
int runtime_open(struct cgroup_root *cgroups, const char *init_path, struct runtime **ret,
                 struct err *err);

/* Accepts NULL. */
void runtime_close(struct runtime *runtime);

/* The backend of this name, or ERR_INVALID that lists those there are. */
int runtime_find(const char *name, const struct runtime_ops **ret, struct err *err);

/* Starts a blank: its boot frame is on the way when this returns, its READY is not awaited. */
int runtime_start(struct runtime *runtime, const struct runtime_ops *ops, const char *id,
                  uid_t first_uid, struct runtime_guest *ret, struct err *err);

/* Takes over a guest that another life of the daemon has started: who it is, as that one noted it,
 * and a new connection to it (taken on success). Its zygote is gone, its groups are not.
 * ERR_NOT_FOUND when it has ended. */
struct runtime_adoption {
    const char *id;
    const char *limits_group;
    uid_t first_uid;
    int stream_fd;
};
int runtime_adopt(struct runtime *runtime, const struct runtime_ops *ops,
                  const struct runtime_adoption *adoption, struct runtime_guest *ret,
                  struct err *err);

/* Ends and removes what is left of a guest that nobody will adopt, were it nothing; limits_group
 * may be "". 0, or -errno when something could not be removed. */
int runtime_bury(struct runtime *runtime, const char *id, const char *limits_group);

/* How many processes of Holt and its helpers count against the sandbox's limit. */
unsigned runtime_guest_own_processes(const struct runtime_guest *guest);

/* Ends every process of the sandbox, holt-init first of all. */
void runtime_guest_kill(const struct runtime_guest *guest);

/* Kills, waits until nothing is left, removes its control groups, closes its descriptors. Accepts a
 * half-made guest. 0, or -errno when something could not be removed. */
int runtime_guest_done(struct runtime_guest *guest);

/* Lets go of a guest that is to go on without this daemon. */
void runtime_guest_release(struct runtime_guest *guest);
