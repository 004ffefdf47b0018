/* The view of a machine: between the codebase of its sandbox and its processes, if the sandbox has
 * permissions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct host;
struct machine;
struct machine_files;
struct permissions;
struct sandbox;
struct view;
struct volume_mounts;

/* Starts and stops what watches the views of a host. */
int host_start_views(struct host *host, struct err *err);
void host_stop_views(struct host *host);

/* Puts a view in the place of the codebase among mounts; *ret stays NULL if the files have neither
 * a codebase nor rules. */
int machine_view_insert(struct machine *machine, const struct machine_files *files,
                        struct volume_mounts *mounts, struct view **ret, struct err *err);

/* Takes over the view of a sandbox that an earlier daemon has started. */
int sandbox_view_adopt(struct sandbox *sandbox, struct err *err);

/* Gives the view of a sandbox other rules; they are in force when this returns. *ret_open is how
 * many open files have more than they grant. */
int sandbox_view_set_rules(struct sandbox *sandbox, const struct permissions *permissions,
                           size_t *ret_open, struct err *err);
