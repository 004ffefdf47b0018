/* The file tree that a zygote runs in and its children inherit. */
#pragma once

struct err;

/* Moves this process, which is root on the host, from the host's mount namespace into a small tree
 * of its own: /proc, /sys, /dev and the files that bubblewrap needs. A child in a new mount
 * namespace then copies a dozen mounts instead of the host's whole table, keeps none of those
 * busy, and finds its /dev populated. */
int zygote_root_enter(struct err *err);
