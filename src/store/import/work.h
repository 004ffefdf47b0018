/* A template being imported in templates/.import-*, removed unless the import completes. */
#pragma once

#include "store/import/import.h"
#include "store/import/root.h"
#include "store/store_internal.h"
#include "store/template/settings.h"

struct import {
    struct store *store;
    char temp[STORE_TEMP_NAME_MAX]; /* name of the directory; "": nothing to remove */
    int fd;                         /* of that directory */
    int root_fd;                    /* of its rootfs */
    struct import_budget budget;
    struct import_root root;
    char base[TEMPLATE_NAME_MAX + 1];  /* template below; "": none */
    struct image_layers *layers;       /* that are held; NULL: none */
    struct template_settings settings; /* of an image in an archive; object NULL: none */
};

#define IMPORT_INIT(store_, bytes_max_, files_max_)                                                \
    {                                                                                              \
        .store = (store_), .fd = -EBADF, .root_fd = -EBADF,                                        \
        .root = IMPORT_ROOT_INIT(-EBADF, NULL), .budget = {                                        \
            .bytes_max = (bytes_max_),                                                             \
            .files_max = (files_max_)                                                              \
        }                                                                                          \
    }

/* Creates the directory with an empty rootfs. */
int import_start(struct import *import, struct err *err);

/* Creates the directory with an empty layer for the root instead. */
int import_start_upper(struct import *import, struct err *err);

/* Creates a directory beside rootfs. */
int import_subdir(struct import *import, const char *name, mode_t mode, int *ret_fd,
                  struct err *err);

/* Writes meta.json and syncs everything, after which the directory may be renamed: a name that
 * survives a power failure without its files would look like a complete template. */
int import_seal(struct import *import, const struct template_meta *meta, struct err *err);

/* Removes the directory, unless temp is "". */
void import_done(struct import *import);
