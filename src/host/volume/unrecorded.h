/* Volumes without a row in the registry, and machines that still run on them. The row of a sandbox
 * or of a shared volume is on disk before its first resource exists and is removed after the last
 * one, so these mean that the registry was lost or replaced by an older one. They are kept until
 * the right registry is back, or until somebody adopts them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/sandbox/info.h"

struct cgroup_root;
struct err;
struct host;
struct recovery;
struct sandbox;

/* A machine whose sandbox has no row. */
struct unrecorded_machine {
    char sandbox[SANDBOX_ID_MAX];
    char machine[RUNTIME_ID_MAX]; /* "": none runs */
    char limits_group[RUNTIME_ID_MAX];
    unsigned uid_slot;
};

struct unrecorded_volume {
    char id[SHARED_VOLUME_ID_MAX + 1];
    bool is_shared; /* a shared volume; else the files of a sandbox */
    struct unrecorded_machine machine;
};

/* Notes on the machine's group that it belongs to a sandbox, or to none any more (NULL). */
void unrecorded_note_owner(struct host *host, const struct sandbox_info *info, const char *machine);

/* Finds the machines of sandboxes without a row, for recover_keeps. */
int unrecorded_find_machines(struct cgroup_root *cgroups, struct recovery *recovery,
                             struct err *err);

/* Finds the volumes without a row once all sandboxes are in the table, reports each by an event,
 * and reserves the uids of their machines. */
int unrecorded_find(struct host *host, const struct recovery *recovery, struct err *err);

/* Lists the volumes without a row. The caller frees the array. */
struct unrecorded_volume *unrecorded_list(struct host *host, size_t *ret_count);

/* What an adopted volume becomes. */
struct unrecorded_adoption {
    const char *volume;
    const char *name;     /* NULL: the one in the audit log, or none; a shared volume needs one */
    const char *template; /* NULL: the one in the audit log; not for a shared volume */
};

/* Records a volume again: the files of a sandbox as a stopped sandbox with all its snapshots (a
 * machine that runs on them ends), which is returned with a reference; a shared volume under its
 * name, with NULL in *ret_sandbox. */
int unrecorded_adopt(struct host *host, const struct unrecorded_adoption *adoption,
                     struct sandbox **ret_sandbox, struct err *err);

/* The file in the state directory that lists these volumes, one id in each line, for `holt doctor`,
 * which may run without the daemon. */
#define UNRECORDED_FILE "unrecorded"
