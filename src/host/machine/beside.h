/* The second machine of a sandbox: for processes that ask for a stronger runtime than the sandbox
 * has, over the same files.
 *
 * It is a machine like any other, with namespaces and a holt-init of its own, because the root of
 * the first machine owns the user namespace there and could take over what runs in it. It also has
 * a network namespace of its own: runsc listens on an abstract socket, and tells its callers from
 * others by their uid only. It has the uids of the first one, so that owners of files agree, and
 * its limits: its control group is below that of the first one.
 *
 * Its root is made of clones of the mounts of the first one. A second overlay on the same layers
 * would have caches of its own, and the kernel does not define what it shows. */
#pragma once

#include "runtime/runtime.h"

struct err;
struct machine;
struct volume;
struct volume_mounts;

/* Writes the id of the second machine of the one with this id, which is also that of its control
 * group. */
void machine_beside_id(const char *first, char ret[static RUNTIME_ID_MAX]);

/* Clones the mounts of a machine's root that belong to the volume, detached, and without what is
 * mounted on top. */
int machine_clone_mounts(const struct machine *first, const struct volume *volume,
                         struct volume_mounts *ret, struct err *err);
