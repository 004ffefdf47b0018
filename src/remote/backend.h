/* A backend exports one const table. Calls are made only through remote.c, which
 * checks keys and sizes first. */
#pragma once

#include <stdbool.h>

#include "remote/remote.h"

struct remote {
    const struct remote_ops *ops;
    char *where;
};

struct remote_put {
    const char *key;
    const void *data;
    size_t len;
    bool is_absent; /* the key must have no object */
};

struct remote_list {
    const char *prefix;
    remote_found_fn *found;
    void *context;
};

struct remote_ops {
    const char *scheme; /* what the URL begins with */
    size_t size;        /* bytes of the backend's own struct, struct remote first */

    /* `place` is the URL without its scheme. */
    int (*open)(struct remote *remote, const struct remote_config *config, const char *place,
                struct err *err);
    void (*close)(struct remote *remote); /* accepts a half-opened one */
    int (*put)(struct remote *remote, const struct remote_put *put, struct err *err);
    int (*get)(struct remote *remote, const char *key, struct buf *ret, struct err *err);
    int (*size_of)(struct remote *remote, const char *key, uint64_t *ret, struct err *err);
    int (*remove)(struct remote *remote, const char *key, struct err *err);
    int (*list)(struct remote *remote, const struct remote_list *list, struct err *err);
};

extern const struct remote_ops remote_dir, remote_s3;

/* Returns whether a text can be a key; see remote.h. */
bool remote_key_is(const char *text);
