/* Internals shared by the files of the store. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "store/store.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

struct disk;
struct image;
struct store_ops;
struct template_use; /* reference count of one template name */

struct store {
    int dir_fd;          /* the state directory */
    int templates_fd;    /* templates/NAME/... */
    int points_fd;       /* see store/template/mount_points.h */
    struct image *image; /* NULL: none */
    int image_fd;        /* root of the image, which owns it; or -1 */
    struct disk *disk;
    int scratch_fd; /* scratch/ID/..., in the state directory or the image */
    int volumes_fd; /* volumes/ID/..., in the state directory or the image; -1 for a whole backend
                     */
    const struct store_ops *ops; /* backend of persistent volumes */
    void *backend;               /* private to the backend */
    bool has_quota;              /* set by the backend, like shared_uid */
    bool is_quota_on;            /* quotas are enabled already; set by the backend, too */
    bool is_scratch_limited;     /* scratch volumes are subvolumes and may have a quota */
    uid_t shared_uid;
    char storage[320]; /* text of store_storage */
    uint64_t template_bytes_max;
    uint64_t template_files_max;

    struct lock lock; /* protects uses */
    struct template_use *uses;
};

struct volume {
    struct store *store;
    struct template *template; /* owned */
    char *id;
    uint32_t generation;      /* of the live tree; read by volume_generation */
    uint32_t last_generation; /* highest generation seen by this process */
    uint64_t quota_bytes;
    bool is_scratch;
    int dir_fd;                      /* of a scratch volume; else -1 */
    atomic_uint drops;               /* trees removed by this process */
    struct volume_codebase codebase; /* no id: none */
};

enum { STORE_TEMP_NAME_MAX = 32, TEMPLATE_FINGERPRINT_MAX = 64 };

/* Contents of a template's meta.json. */
struct template_meta {
    uint64_t size_bytes;
    uint64_t files;
    int64_t created_at;
    char fingerprint[TEMPLATE_FINGERPRINT_MAX + 1]; /* of the sources of the host template */
    char base[TEMPLATE_NAME_MAX + 1];               /* template below this one's layers; "": none */
    char digest[IMAGE_DIGEST_LEN + 1];              /* as in struct template_info */
};

/* Opens a directory of the store, creating it (0700) if it is missing. */
int store_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err);

/* Mounts the image unless it is mounted already. ERR_UNSUPPORTED if this host cannot. */
int store_image(struct store *store, const struct store_options *options, struct err *err);

/* Calls each for every name in a directory except "." and "..", until it returns a negative value.
 * Returns 0, that value, or -errno. */
int store_each_name(int dir_fd, int (*each)(void *context, const char *name), void *context);

/* Reads the space of the filesystem that contains a directory. */
int store_space_of(int dir_fd, struct store_space *ret, struct err *err);

/* Names what has run out when a call on the volumes fails with this errno. */
const char *store_shortage(const struct store *store, int errnum);

/* Writes a unique name ".PREFIX-XXXXXX". The next store_open removes files with such names. */
void store_temp_name(const char *prefix, char name[static STORE_TEMP_NAME_MAX]);

/* Creates a directory (0700) with a unique name. */
int store_temp_dir(int dir_fd, const char *prefix, char name[static STORE_TEMP_NAME_MAX],
                   struct err *err);

/* Fails if the name is not a valid template name or already exists. */
int template_name_check(const struct store *store, const char *name, struct err *err);

/* Keeps a template, or the name of one that is being created, from being removed. */
void template_hold(struct store *store, const char *name);
void template_hold_drop(struct store *store, const char *name);

int template_meta_read(int template_fd, struct template_meta *ret, struct err *err);
int template_meta_write(int template_fd, const struct template_meta *meta, struct err *err);

/* Makes the next template_open read the template again. Those that have it open keep it. */
void template_forget_open(struct store *store, const char *name);

/* Reads or writes settings by the template's directory: see store/template/settings.h. */
struct template_settings;
int template_settings_read_at(int template_fd, struct template_settings *ret, struct err *err);
int template_settings_write_at(int template_fd, const struct template_settings *settings,
                               struct err *err);

/* Creates or refreshes templates/host: a root with a generated /etc. /usr and similar directories
 * of the host are added when the template is opened. */
int template_host_refresh(struct store *store, struct err *err);

/* Returns whether this directory of templates/ is a replaced host template that a volume may still
 * have mounted. */
bool template_host_is_kept(const struct store *store, const char *name);

/* Adds the host's own directories to the open host template. */
int template_host_open(struct template *template, struct err *err);
