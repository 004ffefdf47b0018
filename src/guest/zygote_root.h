/* The file tree that a zygote lives in and its children are born with. */
#pragma once

struct err;

/* Moves this process, which is root of the host, out of the host's mounts into a small tree of its
 * own: /proc, /sys and /dev, and what bubblewrap needs to run. A child in new namespaces copies a
 * dozen mounts instead of the host's whole table, holds none of them busy, and finds its /dev made.
 */
int zygote_root_enter(struct err *err);
