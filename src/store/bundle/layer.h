/* Layers of a bundle: the difference between two states of a volume as a tar archive, in which
 * .wh.NAME stands for a file that the lower state has and the upper one has not, as in images of
 * OCI. */
#pragma once

#include <stdint.h>

struct err;
struct tar_out;
struct volume_view;

/* Writes the layer that makes `new` of `old`, without its end; both are of one volume and must not
 * change meanwhile. With old->trees[].count 0, the layer is all of `new`. taken_ms is the
 * wall-clock time of the older state; 0: it is not a snapshot. Sockets are left out.
 * ERR_UNSUPPORTED for files that no layer can have: names that begin with .wh., and paths that an
 * import would refuse. */
int layer_write(struct tar_out *out, const struct volume_view *old, const struct volume_view *new,
                uint64_t taken_ms, struct err *err);
