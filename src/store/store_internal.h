/* What the files of the store share. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "store/template.h"

struct store_ops;
struct template_use; /* one name and how many times it is open */

struct store {
    int dir_fd;                  /* the state directory */
    int templates_fd;            /* templates/NAME/{rootfs,meta.json} */
    int image_fd;                /* the mount of the image, which ends when this is closed; or -1 */
    int volumes_fd;              /* volumes/ID/..., here or in the image */
    const struct store_ops *ops; /* of volumes that stay */
    void *backend;               /* its own */
    char storage[320];           /* what store_storage says */
    uint64_t template_bytes_max;
    uint64_t template_files_max;

    pthread_mutex_t lock; /* over uses */
    struct template_use *uses;
};

struct volume {
    struct store *store;
    struct template *template; /* owned */
    char *id;
    uint32_t generation; /* of the live tree */
    uint64_t quota_bytes;
    bool is_scratch;
    int dir_fd; /* of a layered live tree, while it is open; or -1 */
};

/* The name of the template that is made from this machine. */
#define TEMPLATE_HOST "host"

enum { STORE_TEMP_NAME_MAX = 32, TEMPLATE_FINGERPRINT_MAX = 64 };

/* What meta.json of a template says. */
struct template_meta {
    uint64_t size_bytes;
    uint64_t files;
    int64_t created_at;
    char fingerprint[TEMPLATE_FINGERPRINT_MAX + 1]; /* of what the host template is made from */
};

/* Makes a directory ".PREFIX-XXXXXX" (0700), which the next store_open removes. */
int store_temp_dir(int dir_fd, const char *prefix, char name[static STORE_TEMP_NAME_MAX],
                   struct err *err);

int template_meta_read(int template_fd, struct template_meta *ret, struct err *err);
int template_meta_write(int template_fd, const struct template_meta *meta, struct err *err);

/* Makes or refreshes templates/host: a root with a generated /etc; /usr and the like are joined
 * from the host when the template is opened. */
int template_host_refresh(struct store *store, struct err *err);

/* Adds the host's own directories to the open host template. */
int template_host_open(struct template *template, struct err *err);
