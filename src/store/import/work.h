/* A template in the making, in templates/.import-*, with nothing left of it unless it is done. */
#pragma once

#include "store/import/import.h"
#include "store/import/root.h"
#include "store/store_internal.h"

struct import {
    struct store *store;
    char temp[STORE_TEMP_NAME_MAX]; /* the directory's name; "" when it is not ours to remove */
    int fd;                         /* of that directory */
    int root_fd;                    /* of rootfs in it */
    struct import_budget budget;
    struct import_root root;
};

#define IMPORT_INIT(store_, bytes_max_, files_max_)                                                \
    {                                                                                              \
        .store = (store_), .fd = -EBADF, .root_fd = -EBADF,                                        \
        .root = IMPORT_ROOT_INIT(-EBADF, NULL), .budget = {                                        \
            .bytes_max = (bytes_max_),                                                             \
            .files_max = (files_max_)                                                              \
        }                                                                                          \
    }

/* Makes the directory with an empty rootfs. */
int import_begin(struct import *import, struct err *err);

/* Makes a directory beside rootfs. */
int import_subdir(struct import *import, const char *name, mode_t mode, int *ret_fd,
                  struct err *err);

/* Writes meta.json and waits until all of it is on disk: a name that survives a power failure
 * while its files do not would be taken for a good template. Then it may be renamed. */
int import_seal(struct import *import, const struct template_meta *meta, struct err *err);

/* Removes the directory, unless temp is "" by now. */
void import_done(struct import *import);
