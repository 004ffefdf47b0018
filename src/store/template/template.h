/* Templates: read-only trees that sandboxes start from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/text/image_ref.h"

struct err;
struct store;

enum { TEMPLATE_NAME_MAX = 64, TEMPLATE_TREES_MAX = 11, TEMPLATE_LAYERS_MAX = 30 };

/* Name of the template that is made from this machine. */
#define TEMPLATE_HOST "host"

struct template_info {
    char name[TEMPLATE_NAME_MAX + 1];
    bool is_host; /* made from the host's own /usr; cannot be removed */
    uint64_t size_bytes;
    uint64_t files;
    int64_t created_at;                /* seconds since 1970 */
    char digest[IMAGE_DIGEST_LEN + 1]; /* of the image that it was pulled from; "": none */
    char base[TEMPLATE_NAME_MAX + 1];  /* template below its layers; "": none */
    uint64_t shared_bytes;             /* only from owned_template_list */
};

/* One read-only tree and its mount point in the sandbox. "/" comes first. */
struct template_tree {
    const char *target; /* absolute, e.g. "/", "/usr" */
    const char *name;   /* file name of the volume's upper for this tree, e.g. "root", "usr" */
    int fd;             /* O_PATH directory: the bottom layer */
    int layers[TEMPLATE_LAYERS_MAX]; /* overlay layers of committed templates above it, topmost
                                        first */
    size_t layer_count;
};

/* An open template. It cannot be removed while it is open. All that have one open share it, so it
 * is not changed. */
struct template
{
    struct store *store;
    size_t refs; /* under the store's lock */
    char name[TEMPLATE_NAME_MAX + 1];
    bool allows_setuid; /* see store/template/settings.h */
    bool lacks_points;  /* see store/template/mount_points.h */
    struct template_tree trees[TEMPLATE_TREES_MAX];
    size_t tree_count;
};

/* How far an import is. */
struct template_progress {
    uint64_t bytes, files; /* unpacked */
    uint64_t source_bytes; /* read from the archive and from the layers of an image */
    uint64_t source_total; /* their size as far as it is known; 0: the source is a directory */
};

typedef void (*template_progress_fn)(const struct template_progress *progress, void *context);

/* A template to import. */
struct template_source {
    const char *name;                         /* name of the new template */
    const char *path;                         /* absolute path on this machine */
    const char *digest;                       /* instead of a path: the image with this digest... */
    int image_fd;                             /* ...in a directory of blobs_open... */
    const char *owner;                        /* ...of this owner, whose images share layers */
    const int *layer_fd;                      /* instead of both: one layer, to be read */
    const struct template_settings *settings; /* NULL: defaults */
    template_progress_fn progress;            /* may be NULL; called in the importing thread */
    void *context;
};

/* Names in the store: those that users give, which are also the names of root's templates, and
 * names that the host makes for templates of other owners: no user can give one, because of its
 * capital letter. */
#define TEMPLATE_MADE_PREFIX "T-"

/* Names of layers of images, which only templates are based on: the digest of all that is in them
 * follows. */
#define TEMPLATE_LAYER_PREFIX TEMPLATE_MADE_PREFIX "layer-"
bool template_is_store_name(const char *name);

/* Returns whether the store has a template of this name. */
bool template_exists(const struct store *store, const char *name);

/* Opens a template by name. ERR_NOT_FOUND if there is none. */
int template_open(struct store *store, const char *name, struct template **ret, struct err *err);

/* Closes a template. Accepts NULL. */
void template_close(struct template *template);
DEFINE_CLEANUP(template_close, struct template *);

/* Lists all templates sorted by name, including the host template. The caller frees *ret. */
int template_list(struct store *store, struct template_info **ret, size_t *ret_count,
                  struct err *err);

/* Reads what template_list says about one template. */
int template_get_info(struct store *store, const char *name, struct template_info *ret,
                      struct err *err);

/* Removes a template. Fails for the host template (ERR_DENIED) and for one that is in use or the
 * base of another (ERR_BUSY). */
int template_remove(struct store *store, const char *name, struct err *err);

/* Returns whether something has the template open. */
bool template_is_used(struct store *store, const char *name);

/* Removes the layers of images that no template is based on any more. */
void template_layers_collect(struct store *store);

/* Imports a directory, archive, OCI image layout or `docker save` archive under a new name. Leaves
 * nothing behind on failure. */
int template_import(struct store *store, const struct template_source *source,
                    struct template_info *ret, struct err *err);

struct volume;

/* Creates a template from a snapshot of a volume, with the settings of the volume's template. On
 * layered storage only the files written are copied, and the template below cannot be removed
 * before the new one; ERR_EXHAUSTED if that would be more than TEMPLATE_LAYERS_MAX layers. Leaves
 * nothing behind on failure. */
int template_commit(struct store *store, struct volume *volume, const char *snapshot,
                    const char *name, struct template_info *ret, struct err *err);
