/* Unpacks one tar archive, plain or compressed, into a tree. The archive is taken to be hostile. */
#pragma once

#include <stdbool.h>

struct err;
struct import_root;

struct extract_options {
    bool is_layer; /* of an image: .wh.NAME and .wh..wh..opq remove what lower layers have */

    /* Where not NULL: extraction ends at the first path this does not accept. */
    bool (*accepts)(const char *path);
};

/* Returns 0 when all of it is unpacked, 1 when it met a path that is not accepted. Reads fd from
 * where it stands. Errors name the entry. */
int extract_archive(int fd, struct import_root *root, const struct extract_options *options,
                    struct err *err);
