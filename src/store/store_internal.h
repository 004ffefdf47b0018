/* What the files of the store share. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "store/store.h"
#include "store/template/template.h"

struct store_ops;
struct template_use; /* one name and how many times it is open */

struct store {
    int dir_fd;                  /* the state directory */
    int templates_fd;            /* templates/NAME/... */
    int image_fd;                /* the mount of the image, which ends when this is closed; or -1 */
    int scratch_fd;              /* scratch/ID/..., here or in the image */
    int volumes_fd;              /* volumes/ID/..., here or in the image; -1 for a whole backend */
    const struct store_ops *ops; /* of volumes that stay */
    void *backend;               /* its own */
    bool has_quota;              /* set by the backend, as is shared_uid */
    uid_t shared_uid;
    char storage[320]; /* what store_storage says */
    uint64_t template_bytes_max;
    uint64_t template_files_max;

    struct lock lock; /* over uses */
    struct template_use *uses;
};

struct volume {
    struct store *store;
    struct template *template; /* owned */
    char *id;
    uint32_t generation;      /* of the live tree: volume_generation reads it */
    uint32_t last_generation; /* the largest there ever was in this life */
    uint64_t quota_bytes;
    bool is_scratch;
    int dir_fd;        /* of a scratch volume; else -1 */
    atomic_uint drops; /* trees removed in this life */
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
    char base[TEMPLATE_NAME_MAX + 1]; /* the template that this one's layers lie on; "": none */
};

/* Opens, and where it is missing makes (0700), a directory of the store. */
int store_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err);

/* Mounts the image, unless it is mounted: ERR_UNSUPPORTED where this host cannot. */
int store_image(struct store *store, const struct store_options *options, struct err *err);

/* Calls each for every name in a directory but "." and "..", until it returns less than 0. 0, that,
 * or -errno. */
int store_each_name(int dir_fd, int (*each)(void *context, const char *name), void *context);

/* The space of the filesystem that a directory is on. */
int store_space_of(int dir_fd, struct store_space *ret, struct err *err);

/* A name ".PREFIX-XXXXXX" that nobody has: what bears one, the next store_open removes. */
void store_temp_name(const char *prefix, char name[static STORE_TEMP_NAME_MAX]);

/* Makes a directory (0700) of such a name. */
int store_temp_dir(int dir_fd, const char *prefix, char name[static STORE_TEMP_NAME_MAX],
                   struct err *err);

/* Refuses what cannot be the name of a new template, or is one already. */
int template_name_check(const struct store *store, const char *name, struct err *err);

int template_meta_read(int template_fd, struct template_meta *ret, struct err *err);
int template_meta_write(int template_fd, const struct template_meta *meta, struct err *err);

/* Settings by the template's directory: see store/template/settings.h. */
struct template_settings;
int template_settings_read_at(int template_fd, struct template_settings *ret, struct err *err);
int template_settings_write_at(int template_fd, const struct template_settings *settings,
                               struct err *err);

/* Makes or refreshes templates/host: a root with a generated /etc; /usr and the like are joined
 * from the host when the template is opened. */
int template_host_refresh(struct store *store, struct err *err);

/* Whether this directory of templates/ is a host template of old that a volume may have mounted. */
bool template_host_is_kept(const struct store *store, const char *name);

/* Adds the host's own directories to the open host template. */
int template_host_open(struct template *template, struct err *err);
