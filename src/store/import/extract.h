/* Unpacks one tar archive, plain or compressed, into a tree. The archive is not trusted. */
#pragma once

#include <stdbool.h>

struct err;
struct import_root;

struct extract_options {
    bool is_layer; /* an image layer: .wh.NAME and .wh..wh..opq remove files of lower layers */

    /* If not NULL, extraction stops at the first path for which this returns false. */
    bool (*accepts)(const char *path);
};

/* Unpacks from the current offset of fd. Returns 0 when the whole archive is unpacked, 1 if it
 * stopped at a path that is not accepted. Errors name the entry. */
int extract_archive(int fd, struct import_root *root, const struct extract_options *options,
                    struct err *err);
