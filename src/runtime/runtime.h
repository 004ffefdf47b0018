/* Runtimes: how holt-init is started in isolation, with a byte stream to it.
 *
 * A runtime is one file, runtime_<name>.c, that exports one const table. Everything in a sandbox is
 * done by holt-init, so a runtime only describes how to start it; the common code does the rest. */
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
    const char *name;    /* in the configuration */
    unsigned strength;   /* what it withstands: higher is stronger; equal ones replace each other */
    bool has_cells;      /* processes run in a container that holt-init starts: guest/cell/ */
    bool is_like_native; /* holt-init starts as in the native runtime, so a warm machine without a
                            container fits both */
    bool builds_root;    /* holt-init mounts /proc, /dev and /sys itself */
    uint64_t namespaces; /* CLONE_NEW* flags of holt-init, or of the program that starts it */
    const char *const
        *args;      /* NULL-terminated; the program that the zygote runs, see wire/zygote.h */
    const char *go; /* bytes that the program expects before its first frame */

    unsigned own_processes; /* that live as long as the sandbox, with holt-init */

    /* Returns 0 if this machine supports the runtime, otherwise ERR_UNSUPPORTED with cause and
     * remedy. */
    int (*probe)(struct err *err);
};

extern const struct runtime_ops runtime_native, runtime_bwrap, runtime_gvisor;

/* Returns the runtime at an index, NULL after the last one. */
const struct runtime_ops *runtime_at(size_t index);

/* What runtimes withstand: mistakes and ordinary attacks, or also attacks on the host's kernel. */
enum { RUNTIME_SHARES_KERNEL = 1, RUNTIME_OWN_KERNEL = 2 };

/* A running holt-init. Plain data; the owner calls runtime_guest_done. */
struct runtime_guest {
    const struct runtime_ops *ops;
    struct runtime *runtime;
    char id[RUNTIME_ID_MAX];           /* also the name of its cgroup */
    struct zygote *zygote;             /* the zygote that started it; NULL: adopted */
    char limits_group[RUNTIME_ID_MAX]; /* the cgroup that carries its limits and accounting */
    bool shares_limits;                /* that of another guest, which outlives this one */
    uid_t first_uid;                   /* of its 65,536 uids */
    pid_t pid;                         /* of holt-init, or of the program that starts it */
    int pidfd;                         /* the same */
    int stream_fd;                     /* frames; the caller may take it (TAKE_FD) */
};

/* Loads holt-init from path into a sealed memfd and compiles the seccomp filter. */
int runtime_open(struct cgroup_root *cgroups, const char *init_path, struct runtime **ret,
                 struct err *err);

/* Frees the runtime. Accepts NULL. */
void runtime_close(struct runtime *runtime);

/* Finds a runtime by name; ERR_INVALID lists the known ones. */
int runtime_find(const char *name, const struct runtime_ops **ret, struct err *err);

/* Starts a blank guest. Its boot frame is sent when this returns; its READY is still to come. */
int runtime_start(struct runtime *runtime, const struct runtime_ops *ops, const char *id,
                  uid_t first_uid, struct runtime_guest *ret, struct err *err);

/* Starts a blank guest with the uids and the limits of another one: id names a cgroup below that of
 * the other one, which outlives it. It shares no namespace with it. */
int runtime_start_beside(struct runtime *runtime, const struct runtime_ops *ops, const char *id,
                         const struct runtime_guest *first, struct runtime_guest *ret,
                         struct err *err);

/* Takes over a guest that an earlier daemon process started, from the recorded data and a new
 * connection to it (taken on success). Its zygote is gone, its cgroups are not. ERR_NOT_FOUND when
 * the guest has ended. */
struct runtime_adoption {
    const char *id;
    const char *limits_group;
    bool shares_limits;
    uid_t first_uid;
    int stream_fd;
};
int runtime_adopt(struct runtime *runtime, const struct runtime_ops *ops,
                  const struct runtime_adoption *adoption, struct runtime_guest *ret,
                  struct err *err);

/* Kills and removes the remains, if any, of a guest that is not adopted; limits_group may be "".
 * Returns 0, or -errno when something could not be removed. */
int runtime_bury(struct runtime *runtime, const char *id, const char *limits_group);

/* Returns the descriptor of holt-init's program, which stays open as long as the runtime. */
int runtime_init_fd(const struct runtime *runtime);

/* Opens the user namespace of a guest, for idmapped mounts. Returns a descriptor or -errno. */
int runtime_guest_open_userns(const struct runtime_guest *guest, struct err *err);

/* Opens the root directory of a guest (O_PATH). Everything below belongs to the sandbox. Returns a
 * descriptor or -errno. */
int runtime_guest_open_root(const struct runtime_guest *guest);

/* Opens the mount namespace of a guest. Returns a descriptor or -errno. */
int runtime_guest_open_mounts(const struct runtime_guest *guest);

/* Returns the number of Holt's own processes that count against the sandbox's limit. */
unsigned runtime_guest_own_processes(const struct runtime_guest *guest);

/* Kills every process of the sandbox. Returns 0, or -errno when only the first process could be
 * killed, and this should be called again; the others end with it in most runtimes. */
int runtime_guest_kill(const struct runtime_guest *guest);

/* The end of a guest in three steps, of which the first two do not wait, for a caller that ends
 * many at once. Returns whether a killed guest and all processes of its sandbox have ended. */
bool runtime_guest_has_ended(const struct runtime_guest *guest);

/* Removes the control group of an ended guest. Returns 0, or -errno to call again: -EBUSY for a
 * moment after the end. */
int runtime_guest_try_remove(const struct runtime_guest *guest);

/* Returns the zygote for use by another guest, and closes the descriptors. */
int runtime_guest_recycle(struct runtime_guest *guest);

/* Returns whether runtime_guest_recycle may take long. */
bool runtime_guest_is_heavy(const struct runtime_guest *guest);

/* Kills the guest, waits until all processes are gone, removes its cgroups and closes its
 * descriptors. Accepts a partly started guest. Returns 0, or -errno when something could not be
 * removed. */
int runtime_guest_done(struct runtime_guest *guest);

/* Frees the guest's data but leaves it running. */
void runtime_guest_release(struct runtime_guest *guest);
