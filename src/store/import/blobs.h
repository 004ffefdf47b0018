/* The blobs of images that an owner has pulled: images/OWNER/blobs/sha256/HEX, and HEX.part while
 * one is fetched. Owners share no blobs: to name a digest must not give access to its content. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/import/digest.h"

struct err;
struct store;

/* A blob that is being fetched. */
struct blob {
    char digest[sizeof("sha256:") + DIGEST_HEX_LEN];
    char part[DIGEST_HEX_LEN + 32]; /* name of its file */
    int fd;                         /* of its file; -1: the blob is complete */
    bool is_resumed;                /* an earlier pull wrote the first bytes */
};

/* Opens the directory of an owner, for template_source. */
int blobs_open(struct store *store, const char *owner, int *ret_fd, struct err *err);

/* Finds or begins a blob. A file that another pull is writing is left alone. Fails with
 * ERR_EXHAUSTED if the disk lacks the space for `bytes`. */
int blob_begin(int images_fd, const char *digest, uint64_t bytes, struct blob *ret,
               struct err *err);

/* Verifies a fetched blob and gives it its name. Returns 1, 0 if the bytes were those of an earlier
 * pull and are damaged (the file is empty now), or a negative errno. */
int blob_accept(int images_fd, struct blob *blob, struct err *err);

/* Closes the file; what was fetched stays for the next pull. */
void blob_end(int images_fd, struct blob *blob);

/* Makes a file for a blob that is written here; it has no name, and vanishes with its last
 * descriptor, until blob_name gives it that of its digest. */
int blob_new(int images_fd, int *ret_fd, struct err *err);
int blob_name(int images_fd, int fd, const char *digest, struct err *err);

/* Opens a complete blob for reading and verifies it. Fails with ERR_INVALID if there is none. */
int blob_open(int images_fd, const char *digest, int *ret_fd, struct err *err);

/* Removes the blobs that were used longest ago until at most max bytes are left. */
int blobs_prune(int images_fd, uint64_t max_bytes, uint64_t *ret_removed, struct err *err);

struct blobs_sweep {
    bool (*is_kept)(const void *context, const char *hex);
    const void *context;
    uint64_t older_ms; /* only what was used this long ago */
    bool is_dry;       /* remove nothing */
};

/* Removes all blobs, and parts of blobs that no pull holds, but those that are kept and those that
 * come into use meanwhile. Writes their bytes. */
int blobs_remove(int images_fd, const struct blobs_sweep *sweep, uint64_t *ret_removed,
                 struct err *err);
